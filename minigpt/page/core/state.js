// The one state of the page, and what it is about: the text on view, the chosen token, the question
// asked about it. Whoever changes it calls `changed`; all is drawn anew at most once a frame.

import { nextWindow, windowsOf } from "../model/window.js";
import { dialogue, model } from "./client.js";

/** The settings of the penalty on repeated passages. */
export const OF_PASSAGES = ["dryMultiplier", "dryBase", "dryAllowedLength"];

/** How tokens are drawn: as is usual with the model, but for what is given. Whoever gives the temperature 0 or 1 asks for
 * the likeliest tokens, or for the model's own chances: no penalty acts then that is not given, as in
 * SampleConfig.with_given. */
export function drawWith(given = {}) {
  const settings = { ...model.usual, ...given };
  if (given.temperature !== 0 && given.temperature !== 1) return settings;

  if (!("repetitionPenalty" in given)) settings.repetitionPenalty = 1;
  if (!OF_PASSAGES.some((name) => name in given)) settings.dryMultiplier = 0;
  return settings;
}

/** All settings of a page in which somebody has given these. */
export function settingsWith(given = {}) {
  return { seed: 1, maxNewTokens: 200, ...drawWith(given) };
}

/** @typedef {{ids: number[], pieces: string[], origin: ("typed"|"written")[], bits: number[], starts: number[],
 * draws: object[], hidden: number, nextStart: number?, begun: number?}} Text
 * the tokens, what each adds to the sheet, who it is from, its surprise (NaN: not known yet), the first token that the
 * model saw when it predicted it, and the {settings, given, off} it was drawn with (null: not drawn). The first `hidden` tokens
 * are an empty beginning. `nextStart` is the first token that the model sees when it predicts the next one, if that was
 * decided (null: the usual one). The tokens from `begun` on were written at once. */

export const state = {
  text: emptyText(), // the text on view
  texts: [], // all versions of this visit, the newest last
  past: [], // versions that Undo goes back to, the newest last
  future: [], // versions that Redo goes forward to, the next last
  chosen: null, // index of the chosen token; null: none
  anchor: null, // the other end of a selection of tokens
  question: "why", // why the chosen token was written, or what comes "next" after it
  view: "draw", // the id of the open view
  followsChoice: false, // whether the view is the one that answers the question, until another is opened
  // The head or layer that views look at, from 0; until one is chosen it is the head that did the most for the token.
  focus: { layer: 0, head: 0, follows: true },
  theme: "light", // or "dark"
  look: dialogue ? "talk" : "sheet", // how the text is shown: as the turns of a talk or on the sheet
  asker: null, // in the talk, as whom one speaks; null: the other one
  answerer: null, // and who answers; null: whoever usually does
  settings: settingsWith(),
  given: {}, // the settings that somebody has given; the others follow from these, see `give`
  off: new Set(), // heads switched off, "layer.head" from 0: for all numbers of the page and all writing
  tints: null, // how much the tokens of the text are looked at, if a view shows that: index -> 0 to 1
  busy: false, // whether a text is being written
  writing: null, // the text that is being written
  pace: 0, // milliseconds between two tokens that are written; 0: as fast as it goes
  status: "",
  speed: "",
  problem: "",
};

/** Let these be all the settings that somebody has given. */
export function give(given) {
  state.given = given;
  Object.assign(state.settings, settingsWith(given));
}

const drawings = [];
let isDue = false;

/** Call `draw` whenever something has changed. */
export function onChange(draw) {
  drawings.push(draw);
}

export function changed() {
  if (isDue) return;

  isDue = true;
  const drawAll = () => {
    isDue = false;
    for (const draw of drawings) draw();
  };

  if (document.hidden) {
    setTimeout(drawAll, 250); // no frame comes then
  } else {
    requestAnimationFrame(drawAll);
  }
}

/** A text without tokens. */
export function emptyText() {
  const tokens = { ids: [], pieces: [], origin: [], bits: [], starts: [], draws: [] };
  return { ...tokens, hidden: 0, nextStart: null, begun: null };
}

/** What all views are about: the place of a token, the row that predicts it, the token (undefined if it
 * is not there yet), the window that the model saw, and the question. At place 0 nothing is predicted. */
export function subject() {
  const { text, chosen } = state;
  const question = chosen === null ? "next" : state.question;

  let place = text.ids.length;
  if (chosen !== null) place = question === "why" ? chosen : chosen + 1;

  return { place, row: place - 1, token: text.ids[place], window: windowOf(place), question };
}

/** The tokens that the model sees when it predicts the token at a place, and where they begin. */
export function windowOf(place) {
  const { text } = state;
  const { context_length } = model.config;
  let start = text.starts[place];
  if (place >= text.ids.length) start = nextWindow(text, context_length);
  start ??= windowsOf(text.ids, text.starts, context_length)[place]; // not read yet
  return { ids: text.ids.slice(start, place), start };
}

/** Open a view; `focus` names the layer and head that it is about, from 0. */
export function openView(id, focus = {}) {
  state.view = id;
  state.followsChoice = false;
  state.tints = null;
  Object.assign(state.focus, focus);
  if ("head" in focus) state.focus.follows = false;
  changed();
}

/** Whether a head is switched off. */
export function isOff(layer, head) {
  return state.off.has(`${layer}.${head}`);
}

/** Switch a head off, or on again. */
export function switchHead(layer, head) {
  const key = `${layer}.${head}`;
  if (!state.off.delete(key)) state.off.add(key);
  changed();
}

export function allHeadsOn() {
  state.off.clear();
  changed();
}

/** Which heads are off, in order: all numbers are of the model without them. */
export function headsOff() {
  return [...state.off].sort();
}

/** The same as one string. */
export function offKey(off = headsOff()) {
  return off.join(" ");
}

/** The names of the heads that are off, as they are read: "1.2, 3.1". */
export function offNames() {
  const names = headsOff().map((key) => headNumber(...key.split(".").map(Number)));
  return names.join(", ");
}

/** "1.2" is the second head of the first layer; `layer` and `head` are from 0. */
export function headNumber(layer, head) {
  return `${layer + 1}.${head + 1}`;
}

/** The layer and head of "1.2", from 0. */
export function headOf(name) {
  const [layer, head] = name.split(".").map((part) => Number(part) - 1);
  return { layer, head };
}
