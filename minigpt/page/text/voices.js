// The voice of a text, where the model has learned in voices: its mark, the tokens of the voice's name in a line, stands
// hidden before the text and stays in the window when that is full.

import { model } from "./client.js";

/** @typedef {{name: string, ids: number[]}} Voice its name and its mark */

/** The voice of a text; undefined if it has none. @returns {Voice|undefined} */
export function voiceOf({ ids, hidden }) {
  return model.voices.find((voice) => hidden >= voice.ids.length && voice.ids.every((id, i) => ids[i] === id));
}

/** The mark of a text's voice; empty if it has none. @returns {number[]} */
export function voiceMark(text) {
  return voiceOf(text)?.ids ?? [];
}

/** How many tokens of a text stay in every window. */
export function keptOf(text) {
  return voiceMark(text).length;
}

/** The voice of this name; undefined if there is none. @returns {Voice|undefined} */
export function voiceNamed(name) {
  return model.voices.find((voice) => voice.name === name);
}
