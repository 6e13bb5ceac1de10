// Sizes and times as they are read.

import { string } from "./strings.js";

/** 2,100,000 as "2.1 MB". */
export function bytesOf(count) {
  if (count < 1000) return string("units.bytes", { count });

  const isMany = count >= 999_500;
  const amount = count / (isMany ? 1e6 : 1000);
  const shown = amount.toFixed(amount < 10 ? 1 : 0);
  return string(isMany ? "units.megabytes" : "units.kilobytes", { count: shown });
}

/** A time in seconds in words. */
export function durationOf(seconds) {
  if (seconds < 90) return counted("second", seconds);
  if (seconds < 5400) return counted("minute", seconds / 60);
  return counted("hour", seconds / 3600);
}

/** So many of a unit, at least one. */
function counted(unit, amount) {
  const count = Math.max(1, Math.round(amount));
  return string(count === 1 ? `units.${unit}` : `units.${unit}s`, { count });
}
