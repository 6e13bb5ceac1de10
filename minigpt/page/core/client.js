// What the page's file holds, read once: its words and the model; and the worker that runs the model.

import { addStrings, string } from "../../web/strings.js";
import { Dialogue } from "../model/dialogue.js";
import { markedOf } from "../model/sampler.js";
import { Tokenizer } from "../model/tokenizer.js";

const read = (id) => {
  const element = document.getElementById(id);
  const content = element.textContent;
  element.remove(); // the page keeps no second copy
  return content;
};

addStrings(JSON.parse(read("strings")));
export const model = JSON.parse(read("model"));
export const tokenizer = new Tokenizer(model.tokenizer);
/** The tokens that are never drawn, and where passages and words end. */
export const marked = markedOf(model);
/** Who speaks in the training text and how it writes a turn; null if nobody does. */
export const dialogue = model.dialogue && new Dialogue(model.dialogue);

const SPECIAL = new Map([
  [tokenizer.end, "tokens.end"],
  [tokenizer.speaker, "tokens.speaker"],
  [tokenizer.endOfTurn, "tokens.endOfTurn"],
]);

const worker = new Worker(URL.createObjectURL(new Blob([read("worker")], { type: "text/javascript" })));
const waiting = new Map(); // number of the question -> what to do with what is found and with its answer
let asked = 0;
let failure = null; // why the worker is gone

worker.onmessage = ({ data }) => {
  if (data.event) {
    waiting.get(data.question)?.hear(data);
    return;
  }

  const { resolve, reject } = waiting.get(data.id);
  waiting.delete(data.id);
  if ("error" in data) reject(sayError(data.error));
  else resolve(data.result);
};

worker.onerror = (event) => {
  event.preventDefault();
  const reason = event.message ?? string("client.noReason");
  failure = new Error(string("client.stopped", { reason }));
  for (const { reject } of waiting.values()) reject(failure);
  waiting.clear();
};

/** A token to look at; one that stands for no characters has a name. */
export function visibleToken(id) {
  return SPECIAL.has(id) ? string(SPECIAL.get(id)) : tokenizer.visible(id);
}

/** What went wrong, in words. */
function sayError({ name, message, values }) {
  return new Error(name === "UnknownCharacter" ? string("client.unknownCharacter", values) : message);
}

/** The token ids of a text, for scripts. */
export function encodeText(text) {
  try {
    return tokenizer.encode(text);
  } catch (error) {
    throw sayError(error);
  }
}

/** Ask the worker for one of its tasks. */
export function ask(name, ...args) {
  return askAndHear(() => {}, name, ...args);
}

/** Ask the worker, and hear of what it finds before it answers: the events of this question alone. */
export function askAndHear(hear, name, ...args) {
  if (failure) return Promise.reject(failure);

  asked += 1;
  const id = asked;
  const answer = new Promise((resolve, reject) => waiting.set(id, { hear, resolve, reject }));
  worker.postMessage({ id, name, args });
  return answer;
}

export const ready = ask("open", model, read("weights"));

/** The token that an empty prompt stands for. */
export const { firstToken } = model;

/** Why a text has its token at a place, 1 or later, as writer.explain in Python: {logit, probability, parts, words,
 * heads}, `words` by the index in the text. @param {string|number[]} text or its token ids */
export async function explainText(text, place) {
  await ready;
  const ids = typeof text === "string" ? encodeText(text) : text;
  if (!(place >= 1 && place < ids.length)) {
    throw new RangeError(`place must be between 1 and ${ids.length - 1}, got ${place}`);
  }

  const start = Math.max(0, place - model.config.context_length);
  const found = await ask("explainWhole", ids.slice(start, place), ids[place]);
  const words = Object.entries(found.words).map(([i, bits]) => [start + Number(i), bits]);
  return { ...found, words: Object.fromEntries(words) };
}
