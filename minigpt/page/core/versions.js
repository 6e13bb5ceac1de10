// All versions of the text in this visit, none of which is ever lost. Undo and Redo go along them in the order in which
// they were looked at.

import { sheetText, tokenAt, whatIsSame } from "./sheet_tokens.js";
import { changed, state } from "./state.js";

const BURST = 1500; // milliseconds: what is typed without a longer pause is one version
let newest = 0; // number of the newest version
let typing = null; // the version that is being typed, and when it was typed on last

/** Look at a version. */
function show(text) {
  Object.assign(state, { text, chosen: null, anchor: null, tints: null });
  typing = null;
  changed();
}

/** Look at another version; Undo comes back. */
export function visit(text) {
  if (text === state.text) return;

  state.past.push(state.text);
  state.future = [];
  show(text);
}

/** A new version is there, and is looked at. */
export function addVersion(text) {
  newest = Math.max(newest, ...state.texts.map(({ number }) => number)) + 1;
  text.number = newest;
  state.texts.push(text);
  visit(text);
}

/** Begin with a version: nothing was before it. */
export function begin(text) {
  addVersion(text);
  state.past = [];
}

/** A version that was typed; what is typed in one go becomes one version. */
export function addTyped(text) {
  const now = performance.now();
  const isSameBurst = typing?.text === state.text && now - typing.at < BURST;

  if (isSameBurst) {
    replaceVersion(typing.text, text);
    show(text);
  } else {
    addVersion(text);
  }
  typing = { text, at: now };
}

/** Put a text in the place of a version. */
export function replaceVersion(before, text) {
  text.number = before.number;
  const replaced = (texts) => texts.map((other) => (other === before ? text : other));
  for (const name of ["texts", "past", "future"]) state[name] = replaced(state[name]);
}

/** Take a version away that nothing was written in: it is as the one before it. */
export function takeAway(text) {
  state.texts = state.texts.filter((other) => other !== text);
  state.past = state.past.filter((other) => other !== text);
  state.future = state.future.filter((other) => other !== text);
  if (state.text === text) show(state.past.pop());
}

/** Back to the version before. */
export function undo() {
  if (state.past.length === 0) return;

  state.future.push(state.text);
  showChange(state.past.pop());
}

/** Forward again to the version that Undo has left. */
export function redo() {
  if (state.future.length === 0) return;

  state.past.push(state.text);
  showChange(state.future.pop());
}

/** Look at a version where it differs from the one before. */
function showChange(text) {
  const value = sheetText(text);
  const { end } = whatIsSame(sheetText(state.text), value);
  show(text);
  state.chosen = tokenAt(text, value.length - end);
}
