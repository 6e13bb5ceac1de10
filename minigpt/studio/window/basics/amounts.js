// What the window says of amounts besides web/units.js: shares, letters, times of day.

import { string } from "../../../web/strings.js";
import { locale, number } from "../../../web/units.js";

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
  return new Date(1000 * moment).toLocaleTimeString(locale, { hour: "2-digit", minute: "2-digit" });
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
