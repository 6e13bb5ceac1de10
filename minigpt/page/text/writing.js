// What is done to texts: read, write, stop, undo, again, branch.

import { h } from "../basics/dom.js";
import { ask, askAndHear, firstToken, ready, tokenizer } from "./client.js";
import { changed, emptyText, state } from "./state.js";

/** A text that begins with the first `n` tokens of another one. */
function startOf(text, n, parent) {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const start = { ...text, parent, prompt: Math.min(text.prompt, n), decoder };
  start.ids = text.ids.slice(0, n);
  for (const name of ["origin", "bits", "starts", "draws"]) start[name] = text[name].slice(0, n);
  start.pieces = start.ids.map((id) => start.decoder.decode(tokenizer.bytes(id), { stream: true }));
  return start;
}

function add(text, id, origin, { bits = NaN, start, draw = null } = {}) {
  text.ids.push(id);
  text.origin.push(origin);
  text.bits.push(bits);
  text.starts.push(start);
  text.draws.push(draw);
  text.pieces.push(text.decoder.decode(tokenizer.bytes(id), { stream: true }));
}

/** Let the model read a text, all of it anew; what it says of each token is kept with it. */
async function readAll(text) {
  const hear = ({ place, bits, start }) => {
    text.bits[place] = bits;
    text.starts[place] = start;
    changed();
  };
  const { ids, hidden } = text;
  return askAndHear(hear, "read", { ids, hidden }, [...state.off]);
}

/** What of a text can be read, without the token that an empty prompt stands for. */
export function shownText(text = state.text) {
  const rest = text.ids.slice(text.hidden);
  return tokenizer.decode(rest.at(-1) === tokenizer.end ? rest.slice(0, -1) : rest);
}

/** A token in a sentence. */
export function tokenName(id) {
  return h("b", { className: "token" }, tokenizer.visible(id));
}

/** What the worker needs of a text. */
export function plain(text = state.text) {
  const { ids, hidden, starts, origin } = text;
  return { ids, hidden, starts, origin };
}

/** The chosen place; without a choice that of the next token. With `last`, one that is written. */
export function chosenPlace(last = !["draw", "heads"].includes(state.view)) {
  const { ids } = state.text;
  const place = state.hovered ?? state.chosen ?? ids.length;
  return Math.min(place, last ? ids.length - 1 : ids.length);
}

/** A new text from a prompt; false, and a sentence, if the model does not know a character. */
export async function setPrompt(prompt) {
  let ids;
  try {
    ids = await ask("encode", prompt);
  } catch (error) {
    state.problem = error.message;
    changed();
    return false;
  }
  state.problem = "";
  const text = { ...emptyText(), hidden: ids.length ? 0 : 1, decoder: new TextDecoder("utf-8", { ignoreBOM: true }) };
  for (const id of ids.length ? ids : [firstToken]) add(text, id, "typed");
  text.prompt = text.ids.length;
  show(text);
  await ready;
  await readAll(text);
  if (state.text === text) changed();
  return true;
}

/** Look at one of the texts. */
export function show(text) {
  Object.assign(state, { text, chosen: null, anchor: null, hovered: null, tints: null });
  changed();
}

/** Write after the first `n` tokens of the text, or after `token` in their place. */
export async function write(
  n = state.text.ids.length,
  { token = null, parent = state.text, from = state.text, off = [...state.off] } = {},
) {
  await stop();
  const text = startOf(from, n, parent);

  const { settings } = state;
  if (token !== null) add(text, token, "typed");
  state.texts.push(text);
  show(text);
  Object.assign(state, { busy: true, writing: text, status: "Writing.", problem: "", speed: "" });
  changed();

  const begun = (text.begun = text.ids.length);
  let start = performance.now();
  let reason;

  try {
    await ready;
    if (text.bits.slice(1).some(Number.isNaN)) await readAll(text);

    const hear = ({ id, bits, start: window }) => {
      if (text.ids.length === begun) start = performance.now();
      add(text, id, "written", { bits, start: window, draw: { settings: { ...settings }, off } });
      const seconds = (performance.now() - start) / 1000;
      const count = text.ids.length - begun - 1;
      if (count > 4) state.speed = `${(count / seconds).toFixed(0)} tokens a second`;
      changed();
    };
    const count = token === tokenizer.end ? 0 : settings.maxNewTokens;
    reason = await askAndHear(hear, "write", plain(text), count, settings, off);
  } catch (error) {
    state.problem = error.message;
  }

  if (state.writing !== text) return; // another text is being written already

  const count = text.ids.length - begun;
  const why = reason === "ended" ? ": the model ended the text" : reason === "stopped" ? ", stopped" : "";
  Object.assign(state, { busy: false, status: `${count} tokens written${why}.` });
  changed();
}

/** Stop at once; what is written stays. */
export async function stop() {
  await ask("stop");
}

/** Back to the text before the last was written. */
export function undo() {
  if (state.text.parent) show(state.text.parent);
}

/** The same again with another seed. */
export function again() {
  const { begun, parent } = state.text;
  if (begun === undefined) return;
  state.settings.seed += 1;
  write(begun, { parent });
}

/** Go on from an alternative token at a place; the text left behind stays among the texts. */
export function branch(place, token) {
  if (!state.texts.includes(state.text)) state.texts.push(state.text);
  return write(place, { token });
}

/** A continuation of a prompt, without touching what is on view: for scripts. */
export async function generate(prompt, options = {}) {
  await ready;
  await stop();
  const ids = await ask("encode", prompt);
  const settings = { ...state.settings, temperature: 0.8, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1, ...options };
  const hidden = ids.length ? 0 : 1;
  const text = { ids: hidden ? [firstToken] : ids, hidden };
  const written = [];
  const hear = ({ id }) => written.push(id);
  await askAndHear(hear, "write", text, settings.maxNewTokens, settings, options.off ?? []);
  if (written.at(-1) === tokenizer.end) written.pop();
  return prompt + tokenizer.decode(written);
}
