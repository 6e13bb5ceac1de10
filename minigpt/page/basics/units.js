// Sizes and times as they are read.

import { say } from "./strings.js";

/** 2,100,000 as "2.1 MB". */
export function bytesOf(count) {
  if (count < 1000) return say("units.bytes", { count }).join("");

  const isMany = count >= 999_500;
  const amount = count / (isMany ? 1e6 : 1000);
  const shown = amount.toFixed(amount < 10 ? 1 : 0);
  return say(isMany ? "units.megabytes" : "units.kilobytes", { count: shown }).join("");
}

/** A time in seconds in words. */
export function durationOf(seconds) {
  const [unit, length] = seconds < 90 ? ["seconds", 1] : seconds < 5400 ? ["minutes", 60] : ["hours", 3600];
  const count = Math.max(1, Math.round(seconds / length));
  return say(count === 1 ? `units.${unit.slice(0, -1)}` : `units.${unit}`, { count }).join("");
}
