// Why a token was likely, as the worker finds it: asked once for what the page is about, and kept for all views.

import { probabilities } from "../basics/numbers.js";
import { ask, askAndHear, model } from "../core/client.js";
import { changed, headsOff, offKey, subject } from "../core/state.js";

const MOST = 24; // explanations that are kept
const ATTEMPTS = 5; // an explanation ends when a text is written: how often it is asked for again
const explanations = new Map(); // by what they are about, the one used last at the end

/** @typedef {object} Explanation
 * @property {number} place of the token in the text
 * @property {number} start the first token in the model's sight
 * @property {number|undefined} token the one that is explained: what is there or, if nothing is, what is likeliest
 * @property {Float64Array|null} probabilities of all tokens (vocab_size)
 * @property {Float32Array|null} weights the attention of the row that predicts (num_layers * num_heads * T)
 * @property {number} T how many tokens were in sight
 * @property {object|null} parts what each part adds to `logit`
 * @property {object} heads by name, the probability without that head, as far as it is known
 * @property {Map<number, number>} words by index in the text, the change in bits without that token
 * @property {boolean} isWhole whether all heads and words are known
 * @property {Promise<void>} looked when `probabilities`, `token` and `weights` are there
 * @property {Promise<void>} begun when `parts` are there */

/** What is known so far of the token that the page is about; null at place 0, which is not predicted. More becomes
 * known later, and `changed` is called then. @returns {Explanation|null} */
export function explained() {
  const found = seen();
  if (found === null) return null;

  const isEnded = !found.isAsked && !found.isWhole && found.attempts < ATTEMPTS;
  if (isEnded) {
    found.begun = explain(found);
    found.begun.catch(() => {}); // the view that waits for it says what is wrong
  }
  return found;
}

/** The same without the explanation, which takes longer: `probabilities`, `token` and `weights`. */
export function seen() {
  const about = subject();
  if (about.window.ids.length === 0) return null;

  const off = headsOff();
  const key = [about.window.start, about.window.ids, about.token, offKey()].join(" ");
  const found = explanations.get(key) ?? unexplained(about, off);

  explanations.delete(key);
  explanations.set(key, found);
  if (explanations.size > MOST) explanations.delete(explanations.keys().next().value);

  if (found.looked === null) {
    found.looked = look(found);
    found.looked.catch(() => (found.looked = null)); // the view that waits for it says what is wrong
  }
  return found;
}

function unexplained({ place, token, window }, off) {
  const about = { place, token, off, ids: window.ids, start: window.start, T: window.ids.length };
  const known = { probabilities: null, weights: null, parts: null, heads: {}, words: new Map() };
  return { ...about, ...known, isWhole: false, isAsked: false, attempts: 0, looked: null, begun: null };
}

/** Ask for the chances of all tokens and for what the heads look at. */
async function look(found) {
  found.probabilities = probabilities(await ask("logits", found.ids, found.off));
  found.token ??= likeliest(found.probabilities);
  found.weights = (await ask("rows", found.ids, found.off)).weights;
  changed();
}

/** Ask for the explanation; the promise is kept when the parts are there, or another task has ended this one. */
async function explain(found) {
  found.isAsked = true;
  found.attempts += 1;
  try {
    await found.looked;
  } catch (error) {
    found.isAsked = false;
    throw error;
  }

  await new Promise((resolve, reject) => {
    const hear = (news) => {
      take(found, news);
      resolve();
    };
    const end = (answer) => {
      found.isAsked = false;
      found.isWhole = answer !== null;
      if (answer !== null) take(found, answer);
      changed();
      resolve();
    };
    askAndHear(hear, "explain", found.ids, found.token, found.off).then(end, reject);
  });
}

/** Add what has been found to what is known. */
function take(found, { logit, probability, parts, heads = {}, words = {} }) {
  if (parts) Object.assign(found, { logit, probability, parts });
  Object.assign(found.heads, heads);
  for (const [i, bits] of Object.entries(words)) found.words.set(found.start + Number(i), bits);
  changed();
}

/** The token that is likeliest, of several the first. */
function likeliest(probabilities) {
  return probabilities.reduce((best, p, id) => (p > probabilities[best] ? id : best), 0);
}

/** What a head looks at from the row that predicts: for each token in sight, by its index in the text, its weight. */
export function weightsOf({ weights, start, T }, { layer, head }) {
  const first = (layer * model.config.num_heads + head) * T;
  return Array.from(weights.subarray(first, first + T), (weight, i) => ({ to: start + i, weight }));
}

/** The token that a head looks at the most, and its weight: {to, weight}. */
export function mostLookedAt(found, focus) {
  return weightsOf(found, focus).reduce((a, b) => (b.weight > a.weight ? b : a));
}
