// The names of heads: their numbers, counted from 1, and what they do if that is known.

import { percent } from "../basics/dom.js";
import { say } from "../basics/strings.js";
import { ask } from "../text/client.js";
import { changed } from "../text/state.js";

const NAMED = 0.25; // a head is named after what takes at least this share of its attention
let headScores = null; // by layer and head; undefined while they are measured

/** "1.2" is the second head of the first layer; `layer` and `head` are from 0. */
export function headNumber(layer, head) {
  return `${layer + 1}.${head + 1}`;
}

/** The layer and head of "1.2", from 0. */
export function headOf(name) {
  const [layer, head] = name.split(".").map((part) => Number(part) - 1);
  return { layer, head };
}

/** What a head does on random tokens that come twice, and how much of its attention; empty if nothing stands out. */
export function headName(layer, head) {
  const best = bestScore(layer, head);
  return best ? say("headNames.tested", { role: best[0], share: percent(best[1]) }).join("") : "";
}

/** The same without the score. */
export function headRole(layer, head) {
  return bestScore(layer, head)?.[0] ?? "";
}

/** Measure the heads, if that has not been done; the page is drawn again then. */
export function measureHeads() {
  if (headScores !== null) return;

  headScores = undefined;
  const keep = (scores) => {
    headScores = scores ?? undefined;
    changed();
  };
  // Without names the heads have their numbers alone.
  ask("headScores").then(keep, () => {});
}

function bestScore(layer, head) {
  if (!headScores) return null;

  const scores = Object.entries(headScores[layer][head]);
  const best = scores.reduce((a, b) => (b[1] > a[1] ? b : a));
  return best[1] >= NAMED ? best : null;
}
