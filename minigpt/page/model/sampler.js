// From logits to a token: filters in the order of minigpt/generation/sampler.py, then a draw.
// Logits that are left out become -Infinity. The random numbers of a token depend on seed and place alone.

const COLDEST = 1e-5; // below, dividing by the temperature overflows

/** @typedef {{temperature: number, topK: number?, topP: number?, minP: number?, repetitionPenalty: number}} Settings */

/** Logits after the penalty, the temperature and the filters that are set.
 * @param {Float32Array} logits @param {Settings} settings @param {Iterable<number>} seen tokens so far */
export function filtered(logits, settings, seen) {
  const { temperature, topK, topP, minP, repetitionPenalty } = settings;
  let kept = penaliseRepetition(logits, seen, repetitionPenalty ?? 1);
  if (temperature < COLDEST) return keepTopK(kept, 1);
  kept = kept.map((logit) => logit / temperature);
  if (topK) kept = keepTopK(kept, topK);
  if (topP) kept = keepTopP(kept, topP);
  if (minP) kept = keepMinP(kept, minP);
  return kept;
}

/** Positive logits of the tokens seen are divided by the penalty, negative ones multiplied. */
export function penaliseRepetition(logits, seen, penalty) {
  const penalised = logits.slice();
  if (penalty === 1) return penalised;
  for (const id of new Set(seen)) penalised[id] *= logits[id] < 0 ? penalty : 1 / penalty;
  return penalised;
}

/** The k largest; ties at the edge stay. */
export function keepTopK(logits, k) {
  const smallest = sorted(logits)[Math.min(k, logits.length) - 1];
  return logits.map((logit) => (logit < smallest ? -Infinity : logit));
}

/** The fewest tokens whose probabilities together reach p; among equal ones the first. */
export function keepTopP(logits, p) {
  if (p >= 1) return logits;
  const largest = sorted(logits);
  const weights = largest.map((logit) => Math.exp(logit - largest[0]));
  const all = weights.reduce((a, b) => a + b);
  let count = 0;
  for (let before = 0; count < weights.length && before < p; count++) before += weights[count] / all;
  const smallest = largest[count - 1];
  let equals = count - largest.indexOf(smallest);
  return logits.map((logit) => (logit > smallest || (logit === smallest && equals-- > 0) ? logit : -Infinity));
}

/** Tokens at least p times as likely as the likeliest. */
export function keepMinP(logits, p) {
  const smallest = sorted(logits)[0] + Math.log(p);
  return logits.map((logit) => (logit < smallest ? -Infinity : logit));
}

/** A token: each gets a time E / p with exponentially distributed E, and the smallest wins. */
export function draw(logits, settings, seen, place) {
  const kept = filtered(logits, settings, seen);
  if (settings.temperature < COLDEST) return kept.findIndex((logit) => logit > -Infinity);
  const largest = kept.reduce((a, b) => Math.max(a, b));
  const random = uniform(settings.seed, place);
  let token = 0;
  let best = -1;
  kept.forEach((logit, id) => {
    const weight = Math.exp(logit - largest) / -Math.log(random());
    if (weight > best) [token, best] = [id, weight];
  });
  return token;
}

/** Random numbers between 0 and 1, both left out (sfc32, the counter starts from seed and place). */
export function uniform(seed, place) {
  let a = seed >>> 0;
  let b = Math.floor(seed / 2 ** 32) >>> 0;
  let c = place >>> 0;
  let counter = 1;
  const next = () => {
    const sum = (a + b + counter++) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return ((sum >>> 0) + 0.5) / 2 ** 32;
  };
  for (let i = 0; i < 12; i++) next();
  return next;
}

function sorted(logits) {
  return logits.slice().sort().reverse();
}
