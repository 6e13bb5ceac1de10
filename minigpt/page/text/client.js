// The model as the page knows it: what the file says of it, and the worker that runs it.

import { Tokenizer } from "../model/tokenizer.js";

const read = (id) => {
  const element = document.getElementById(id);
  const content = element.textContent;
  element.remove(); // the page keeps no second copy
  return content;
};

export const model = JSON.parse(read("model"));
export const tokenizer = new Tokenizer(model.tokenizer);
const trainingText = JSON.parse(read("training-text"));
export const hasText = trainingText !== null;

const worker = new Worker(URL.createObjectURL(new Blob([read("worker")], { type: "text/javascript" })));
const waiting = new Map(); // number of the question -> what to do with its answer
const listeners = {};
let asked = 0;

worker.onmessage = ({ data }) => {
  if (data.event) return listeners[data.event]?.(data);
  const { resolve, reject } = waiting.get(data.id);
  waiting.delete(data.id);
  if ("error" in data) reject(new Error(data.error));
  else resolve(data.result);
};
worker.onerror = (event) => {
  event.preventDefault();
  for (const { reject } of waiting.values()) reject(new Error(`The model has stopped: ${event.message}`));
  waiting.clear();
};

/** Ask the worker for one of its tasks. */
export function ask(name, ...args) {
  const id = ++asked;
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    worker.postMessage({ id, name, args });
  });
}

/** Hear of the tokens that the worker reads or writes meanwhile. */
export function listen(event, listener) {
  listeners[event] = listener;
}

export const ready = ask("open", model, read("weights"), trainingText);

/** The token that an empty prompt stands for: a new line, if the tokenizer has it. */
export const firstToken =
  tokenizer.data.kind === "bpe" || tokenizer.ids.has("\n") ? tokenizer.encode("\n")[0] : tokenizer.end;
