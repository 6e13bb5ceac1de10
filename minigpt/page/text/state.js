// The one state of the page, and what it is about: the text on view, the chosen token, the question
// asked about it. Whoever changes it calls `changed`; all is drawn anew at most once a frame.

import { nextWindow, windowsOf } from "../model/window.js";
import { model } from "./client.js";

/** @typedef {{ids: number[], pieces: string[], origin: ("typed"|"written")[], bits: number[], starts: number[],
 * draws: object[], hidden: number, parent: object?}} Text
 * the tokens, what each adds to the text, who it is from, its surprise (NaN: not known yet), the first token that
 * the model saw when it predicted it, and how it was drawn; the first `hidden` tokens are not shown */

export const state = {
  text: emptyText(), // the text on view
  texts: [], // all versions of this visit; each knows its parent
  chosen: null, // index of the chosen token; null: none
  anchor: null, // the other end of a selection of tokens
  hovered: null,
  question: "why", // why the chosen token was written, or what comes "next" after it
  view: "draw", // the id of the open view
  focus: { layer: 0, head: 0 }, // the head or layer that views look at, from 0
  settings: { temperature: 0.8, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1, seed: 1, maxNewTokens: 200 },
  off: new Set(), // heads switched off, "layer.head" from 0: for all numbers of the page and all writing
  tints: null, // what another view wants to show in the text: index -> 0 to 1
  busy: false, // whether a text is being written
  status: "",
  speed: "",
  problem: "",
};

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

export function emptyText() {
  const tokens = { ids: [], pieces: [], origin: [], bits: [], starts: [], draws: [] };
  return { ...tokens, prompt: 0, hidden: 0, parent: null, decoder: null };
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
  state.tints = null;
  Object.assign(state.focus, focus);
  changed();
}
