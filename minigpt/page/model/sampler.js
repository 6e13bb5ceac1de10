// From logits to a token: filters in the order of minigpt/generation/sampler.py, then a draw.
// Logits that are left out become -Infinity. The die falls anew for each place and each text before it.

const COLDEST = 1e-5; // below, dividing by the temperature overflows

const LARGEST = 1e4; // a penalty on a repeated passage

/** @typedef {{temperature: number, topK: number?, topP: number?, minP: number?, repetitionPenalty: number?,
 * dryMultiplier: number?, dryBase: number?, dryAllowedLength: number?}} Settings
 * @typedef {{separators: Set<number>, beginWithLetter: Set<number>, endWithLetter: Set<number>}} Boundaries tokens over
 * which no repeated passage goes on, and those that begin or end with a letter of a word
 * @typedef {{forbidden?: number[], boundaries?: Boundaries}} Marked tokens that the training text cannot have had, and
 * where passages and words end */

/** What is marked among the tokens of the model that a page holds. @returns {Marked} */
export function markedOf({ forbidden, boundaries }) {
  return { forbidden, boundaries: boundariesOf(boundaries) };
}

/** The boundaries of the tokens of a model, of which a page holds lists. */
function boundariesOf({ separators = [], beginWithLetter = [], endWithLetter = [] } = {}) {
  return {
    separators: new Set(separators),
    beginWithLetter: new Set(beginWithLetter),
    endWithLetter: new Set(endWithLetter),
  };
}

/** Whether a die is thrown at this temperature; below it the likeliest token is taken. */
export function isThrownAt(temperature) {
  return temperature >= COLDEST;
}

/** Logits after the penalties, the temperature and the filters that are set.
 * @param {Float32Array} logits @param {Settings} settings @param {number[]} seen tokens so far @param {Marked} marked */
export function filtered(logits, settings, seen, { forbidden = [], boundaries = boundariesOf() } = {}) {
  const { temperature, topK, topP, minP, repetitionPenalty } = settings;
  let kept = penaliseRepetition(logits, seen, repetitionPenalty ?? 1);
  penalisePassages(kept, seen, settings, boundaries);
  for (const id of forbidden) kept[id] = -Infinity;

  if (!isThrownAt(temperature)) return keepTopK(kept, 1);

  kept = kept.map((logit) => logit / temperature);
  if (topK) kept = keepTopK(kept, topK);
  if (topP) kept = keepTopP(kept, topP);
  if (minP) kept = keepMinP(kept, minP);
  return kept;
}

/** Positive logits of the tokens seen are divided by the penalty, negative ones multiplied. */
function penaliseRepetition(logits, seen, penalty) {
  const penalised = logits.slice();
  if (penalty === 1) return penalised;
  for (const id of new Set(seen)) penalised[id] *= logits[id] < 0 ? penalty : 1 / penalty;
  return penalised;
}

/** A token that would repeat a passage has its logit lowered, in place: by more the longer the passage before it is, as
 * in minigpt/generation/repetition.py. */
function penalisePassages(logits, seen, settings, { separators, beginWithLetter, endWithLetter }) {
  const { dryMultiplier: multiplier = 0, dryBase: base = 1.75, dryAllowedLength: allowed = 2 } = settings;
  if (!(multiplier > 0)) return;

  const isInsideWord = endWithLetter.has(seen.at(-1));
  const longest = new Map(); // by token: how many tokens before it are the same as at the end of the text
  for (let place = 0; place < seen.length; place++) {
    let length = 0;
    while (length < place && isSame(seen, place, length) && !separators.has(seen[place - 1 - length])) length++;
    const token = seen[place];
    const isFree = !separators.has(token) && !(isInsideWord && beginWithLetter.has(token));
    if (length >= allowed && isFree) longest.set(token, Math.max(length, longest.get(token) ?? 0));
  }
  for (const [token, length] of longest) {
    logits[token] -= Math.min(multiplier * base ** (length - allowed), LARGEST);
  }
}

/** Whether the token so far before a place is the one so far before the end. */
function isSame(ids, place, length) {
  return ids[place - 1 - length] === ids[ids.length - 1 - length];
}

/** The k largest; ties at the edge stay. */
function keepTopK(logits, k) {
  const smallest = sorted(logits)[Math.min(k, logits.length) - 1];
  return logits.map((logit) => (logit < smallest ? -Infinity : logit));
}

/** The fewest tokens whose probabilities together reach p; among equal ones the first. */
function keepTopP(logits, p) {
  if (p >= 1) return logits;

  const largest = sorted(logits);
  const weights = largest.map((logit) => Math.exp(logit - largest[0]));
  const all = weights.reduce((a, b) => a + b);
  const probabilities = weights.map((weight) => weight / all); // in float32, as in the package

  let count = 0;
  for (let before = 0; count < weights.length && before < p; count++) before += probabilities[count];
  const smallest = largest[count - 1];
  let equals = count - largest.indexOf(smallest);
  return logits.map((logit) => (logit > smallest || (logit === smallest && equals-- > 0) ? logit : -Infinity));
}

/** Tokens at least p times as likely as the likeliest. */
function keepMinP(logits, p) {
  const smallest = sorted(logits)[0] + Math.log(p);
  return logits.map((logit) => (logit < smallest ? -Infinity : logit));
}

/** The token on which the die falls: the tokens lie one after another, likeliest first and of equals the smallest id
 * first, each as long as it is probable after penalty, temperature and filters; the number says where the die falls.
 * @param {number} number from 0 to 1, as of `dieNumber` */
export function drawn(logits, settings, seen, number, marked = {}) {
  const kept = filtered(logits, settings, seen, marked);
  if (!isThrownAt(settings.temperature)) return kept.findIndex((logit) => logit > -Infinity);

  const largest = sorted(kept);
  const weights = Float64Array.from(largest, (logit) => Math.exp(logit - largest[0]));
  const all = weights.reduce((a, b) => a + b);

  let i = 0;
  for (let end = weights[0]; end <= number * all && weights[i + 1] > 0; end += weights[i]) i++;

  // The token with this logit; of several, the one in its turn.
  let turn = i - largest.indexOf(largest[i]);
  return kept.findIndex((logit) => logit === largest[i] && turn-- === 0);
}

/** The number that the die shows, between 0 and 1: it depends on the seed, the place and all tokens before it. */
export function dieNumber(seed, place, ids) {
  let low = 0x9e3779b9;
  let high = 0x243f6a88;
  for (let i = 0; i < place; i++) {
    low = mixed(low ^ ids[i]);
    high = mixed((high + low) | 0);
  }

  // sfc32, which begins with the seed, the place and the tokens.
  let a = (seed ^ low) >>> 0;
  let b = (Math.floor(seed / 2 ** 32) ^ high) >>> 0;
  let c = place >>> 0;
  let sum = 0;
  for (let counter = 1; counter <= 12; counter++) {
    sum = (a + b + counter) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
  }
  return ((sum >>> 0) + 0.5) / 2 ** 32;
}

/** Another whole number of 32 bits, in which every bit depends on all bits of the given one (the end of MurmurHash3). */
function mixed(x) {
  let y = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  y = Math.imul(y ^ (y >>> 13), 0xc2b2ae35);
  return y ^ (y >>> 16);
}

function sorted(logits) {
  return logits.slice().sort().reverse();
}
