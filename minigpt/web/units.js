// Numbers, sizes and times as they are read, in English.

import { string } from "./strings.js";

/** The English that the browser prefers: it says how numbers, dates and times are written. */
export const locale = navigator.languages.find((tag) => tag.startsWith("en")) ?? "en-US";

const formats = []; // by their digits: making one takes long

/** A number with so many digits behind the point. */
export function number(x, digits = 0) {
  const style = { maximumFractionDigits: digits, minimumFractionDigits: digits };
  formats[digits] ??= new Intl.NumberFormat(locale, style);
  return formats[digits].format(x).replace("-", "−");
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

/** So many of a unit, at least one. */
function counted(unit, amount) {
  const n = Math.max(1, Math.round(amount));
  return n === 1 ? string(`units.${unit}`) : string(`units.${unit}s`, { n: number(n) });
}
