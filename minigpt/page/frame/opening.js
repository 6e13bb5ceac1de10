// The first ten seconds: openings to try, and the first of them written on at once, slowly enough to watch.

import { button, byId, h } from "../../web/dom.js";
import { string } from "../../web/strings.js";
import { model } from "../core/client.js";
import { state } from "../core/state.js";
import { sayTurn } from "../core/talking.js";
import { stop, write } from "../core/writing.js";

const COUNT = 40; // tokens
const PACE = 140; // milliseconds between two of them
const ACTIONS = ["pointerdown", "keydown", "beforeinput", "wheel"]; // whatever a person does

/** The text that a page shows which holds no other. */
export const firstOpening = model.openings[0] ?? "";

/** A button for each opening; `begin(opening)` writes on from it. */
export function makeOpenings(begin) {
  const box = byId("openings");
  box.hidden = model.openings.length === 0;
  const label = h("span", {}, string("opening.hint"));
  const buttons = model.openings.map((opening) => button(opening, () => begin(opening), { className: "opening" }));
  box.append(label, ...buttons);
}

/** Write on from the text on view, slowly, until it is long enough or somebody does something. */
export async function playOpening() {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;

  const end = () => {
    for (const action of ACTIONS) removeEventListener(action, end, true);
    if (state.writing === played) stop();
  };
  for (const action of ACTIONS) addEventListener(action, end, { capture: true, passive: true });
  const slowly = { count: COUNT, pace: PACE };
  const playing = state.look === "talk" ? sayTurn("", slowly) : write(slowly);
  const played = state.writing;
  await playing;
  for (const action of ACTIONS) removeEventListener(action, end, true);
}
