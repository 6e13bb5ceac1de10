// What heads do, if that is known: they are named after it.

import { string } from "../../web/strings.js";
import { percent } from "../basics/numbers.js";
import { ask } from "../text/client.js";
import { changed } from "../text/state.js";

const NAMED = 0.25; // a head is named after what takes at least this share of its attention
let isMeasured = false; // whether somebody has asked what the heads do
let headScores = null; // by layer and head, once that is known

/** What a head does on random tokens that come twice, and how much of its attention; empty if nothing stands out. */
export function headName(layer, head) {
  const best = bestScore(layer, head);
  return best ? string("headNames.tested", { role: headRole(layer, head), share: percent(best[1]) }) : "";
}

/** The same without the score. */
export function headRole(layer, head) {
  const best = bestScore(layer, head);
  return best ? string(`headNames.${best[0]}`) : "";
}

/** Measure the heads, if that has not been done; the page is drawn again then. */
export function measureHeads() {
  if (isMeasured) return;

  isMeasured = true;
  const keep = (scores) => {
    headScores = scores;
    changed();
  };
  // Without names the heads have their numbers alone.
  ask("headScores").then(keep, () => {});
}

function bestScore(layer, head) {
  if (headScores === null) return null;

  const scores = Object.entries(headScores[layer][head]);
  const best = scores.reduce((a, b) => (b[1] > a[1] ? b : a));
  return best[1] >= NAMED ? best : null;
}
