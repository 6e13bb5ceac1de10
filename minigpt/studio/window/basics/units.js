// Sizes, times and numbers as they are read, in English.

import { string } from "./strings.js";

/** The English that the browser prefers: it says how dates and times are written. */
const locale = navigator.languages.find((tag) => tag.startsWith("en")) ?? "en-US";

export function number(x, digits = 0) {
  return x.toLocaleString(locale, { maximumFractionDigits: digits, minimumFractionDigits: digits });
}

export function percent(share, digits = 0) {
  const style = { style: "percent", maximumFractionDigits: digits, minimumFractionDigits: digits };
  return share.toLocaleString(locale, style);
}

/** 2,100,000 as "2.1 MB". */
export function bytesOf(count) {
  if (count < 1000) return string("units.bytes", { n: number(count) });
  if (count < 999_500) return string("units.kilobytes", { n: number(count / 1000, count < 9950 ? 1 : 0) });
  if (count < 999_500_000) return string("units.megabytes", { n: number(count / 1e6, count < 9.95e6 ? 1 : 0) });
  return string("units.gigabytes", { n: number(count / 1e9, 1) });
}

/** Seconds as a clock: "2:14", or "1:02:14". */
export function clockOf(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const two = (n) => String(n).padStart(2, "0");
  const minutes = Math.floor(whole / 60) % 60;
  const hours = Math.floor(whole / 3600);
  return `${hours > 0 ? `${hours}:${two(minutes)}` : minutes}:${two(whole % 60)}`;
}

/** Seconds in words, at least one second: "4 minutes". */
export function durationOf(seconds) {
  if (seconds < 90) return counted("second", seconds);
  if (seconds < 5400) return counted("minute", seconds / 60);
  return counted("hour", seconds / 3600);
}

/** The same where there is little room: "4 min". */
export function shortDurationOf(seconds) {
  if (seconds < 90) return string("units.s", { n: number(Math.max(1, Math.round(seconds))) });
  if (seconds < 5400) return string("units.min", { n: number(Math.round(seconds / 60)) });
  return string("units.h", { n: number(Math.round(seconds / 3600)) });
}

function counted(unit, amount) {
  const n = Math.max(1, Math.round(amount));
  return n === 1 ? string(`units.${unit}`) : string(`units.${unit}s`, { n: number(n) });
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
  if (count >= 9.95e6) return string("units.million", { n: number(count / 1e6) });
  if (count >= 1e6) return string("units.million", { n: number(count / 1e6, 1) });
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
