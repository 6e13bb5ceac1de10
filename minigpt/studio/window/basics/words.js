// Runs, their moments, and amounts in words, besides those of web/units.js.

import { string } from "../../../web/strings.js";
import { clockOf, durationOf, locale, number } from "../../../web/units.js";
import { failureOf } from "./told.js";

/** The states of a run whose training goes on. */
export const ACTIVE = ["reading", "measuring", "learning", "stopping"];

/** The kind of problem of one that somebody has stopped before its first step. */
export const CANCELLED = "nothing";

/** The state of a run: "learning, about 3 minutes left". */
export function stateOf(run, now = Date.now() / 1000) {
  if (run.state === "waiting") return waitingOf(run);
  if (run.state === "learning" && run.ends_at !== null)
    return string("states.learningLeft", { left: durationOf(run.ends_at - now) });
  if (run.state === "stopped" && run.problem !== null)
    return string("states.stoppedBecause", { why: failureOf(run.problem) });
  if (run.state === "stopped" && run.elapsed !== null)
    return string("states.stoppedAfter", { time: clockOf(run.elapsed) });
  if (run.state === "failed" && run.problem?.kind === CANCELLED) return string("states.cancelled");
  if (run.state === "failed" && run.problem !== null) {
    return string("states.failedBecause", { why: failureOf(run.problem) });
  }
  return string(`states.${run.state}`);
}

/** "Second in line; starts in about 6 minutes". */
function waitingOf(run) {
  if (run.place === null) return string("states.waiting");
  const names = ["first", "second", "third"];
  const name = names[run.place - 1];
  const place = name === undefined ? string("states.later", { n: run.place }) : string(`states.${name}`);
  if (run.starts_in === null) return place;
  return string("states.startsIn", { place, time: durationOf(run.starts_in) });
}

// Moments of a training

/** When a row of a run was written: "after 2:14, step 512", or "before its first step". The last text is written when
 * the training has ended, which is its moment. */
export function momentOf(row, run) {
  if (row.step === 0) return string("learning.beforeFirst");
  const hasEnded = !ACTIVE.includes(run.state) && run.elapsed !== null;
  const seconds = hasEnded ? Math.min(row.seconds, run.elapsed) : row.seconds;
  return string("learning.moment", { time: clockOf(seconds), step: number(row.step) });
}

/** "Its first guess is right for 4 pieces in 10.": always in 10, so that one can be compared with the next. */
export function guessOf(share, hasLetters) {
  const n = Math.round(10 * (hasLetters ? 1 - share : share));
  if (n === 0) return string(hasLetters ? "curve.lettersRight" : "curve.noneRight");
  if (n === 10) return string(hasLetters ? "curve.noneRight" : "curve.allRight");
  if (hasLetters) return string(n === 1 ? "curve.letterWrong" : "curve.lettersWrong", { n });
  return string(n === 1 ? "curve.pieceRight" : "curve.piecesRight", { n });
}

// Amounts

export function percent(share, digits = 0) {
  const style = { style: "percent", maximumFractionDigits: digits, minimumFractionDigits: digits };
  return share.toLocaleString(locale, style);
}

/** Seconds in words where there is little room: "4 min". */
export function shortDurationOf(seconds) {
  if (seconds < 90) return string("amounts.s", { n: number(Math.max(1, Math.round(seconds))) });
  if (seconds < 5400) return string("amounts.min", { n: number(Math.round(seconds / 60)) });
  return string("amounts.h", { n: number(Math.round(seconds / 3600)) });
}

/** The time of day of a moment in seconds since 1970: "14:32". */
export function timeOf(moment) {
  return new Date(1000 * moment).toLocaleTimeString(locale, { hour: "numeric", minute: "2-digit" });
}

/** The day of a moment in seconds since 1970: "today", "yesterday", "3 May 2026". */
export function dayOf(moment) {
  const midnight = new Date().setHours(0, 0, 0, 0);
  const days = Math.round((midnight - new Date(1000 * moment).setHours(0, 0, 0, 0)) / 86_400_000);
  if (days < 0 || days > 6) return new Date(1000 * moment).toLocaleDateString(locale, { dateStyle: "medium" });
  return new Intl.RelativeTimeFormat(locale, { numeric: "auto" }).format(-days, "day");
}

/** A large number: "1.3 million", "812,000". */
export function roughly(count) {
  if (count >= 9.95e6) return string("amounts.million", { n: number(count / 1e6) });
  if (count >= 1e6) return string("amounts.million", { n: number(count / 1e6, 1) });
  return number(count >= 10_000 ? 1000 * Math.round(count / 1000) : count);
}

/** Among how many letters: "2.3", or "140". */
export function lettersOf(letters) {
  return number(letters, letters < 100 ? 1 : 0);
}

/** Two of them that are compared: with more digits where they would look alike. */
export function bothLettersOf(one, other) {
  let digits = Math.max(one, other) < 100 ? 1 : 0;
  while (digits < 4 && number(one, digits) === number(other, digits)) digits += 1;
  return [number(one, digits), number(other, digits)];
}
