// The first ten seconds: openings to try, and the first of them written on at once, slowly enough to watch.

import { button, h } from "../basics/dom.js";
import { string } from "../basics/strings.js";
import { model } from "../text/client.js";
import { state } from "../text/state.js";
import { stop, write } from "../text/writing.js";

const SLOW = { maxNewTokens: 40, pause: 140 }; // milliseconds between two tokens
const ACTIONS = ["pointerdown", "keydown", "beforeinput", "wheel"]; // whatever a person does

/** The text that a page shows which holds no other. */
export const firstOpening = model.openings[0] ?? "";

/** A button for each opening; `begin(opening)` writes on from it. */
export function makeOpenings(begin) {
  const box = document.getElementById("openings");
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
    if (state.busy) stop();
  };
  for (const action of ACTIONS) addEventListener(action, end, { capture: true, passive: true });
  await write(state.text.ids.length, { settings: { ...state.settings, ...SLOW } });
  end();
}
