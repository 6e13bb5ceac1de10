// What a run is doing, in words.

import { string } from "../../../web/strings.js";
import { clockOf, durationOf } from "../../../web/units.js";
import { failureOf } from "./refusals.js";

/** The states of a run whose training goes on. */
export const ACTIVE = ["reading", "measuring", "learning", "stopping"];

/** The kind of problem of one that somebody has stopped before its first step. */
export const CANCELLED = "nothing";

/** The state of a run: "learning, about 3 minutes left". */
export function stateOf(run, now = Date.now() / 1000) {
  if (run.state === "waiting") return waitingOf(run);
  if (run.state === "learning" && run.ends_at !== null)
    return string("states.learningLeft", { left: durationOf(run.ends_at - now) });
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
