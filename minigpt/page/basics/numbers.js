// The numbers of the model: chances, from 0 to 1, that its logits are, and how each number stands on the screen.

import { h } from "../../web/dom.js";
import { number } from "../../web/units.js";

/** softmax, where -Infinity gives 0. */
export function probabilities(logits) {
  const most = largest(logits);
  const weights = Float64Array.from(logits, (logit) => Math.exp(logit - most));
  const sum = weights.reduce((a, b) => a + b);
  return weights.map((weight) => weight / sum);
}

/** The largest of many numbers. */
export function largest(numbers) {
  return numbers.reduce((a, b) => Math.max(a, b));
}

/** Token ids in the order in which a draw lays them side by side: the largest value first, of equals the smallest id. */
export function largestFirst(values) {
  const sorted = Float64Array.from(values).sort().reverse(); // 50,000 numbers sort much faster than ids by a function

  const places = new Map(); // of each value: where the next token that has it goes
  sorted.forEach((value, place) => {
    if (!places.has(value)) places.set(value, place);
  });

  const order = new Array(values.length);
  values.forEach((value, id) => {
    const place = places.get(value);
    order[place] = id;
    places.set(value, place + 1);
  });
  return order;
}

/** The uncertainty of these chances in bits: 0 if one is certain, 1 for a coin. */
export function entropy(chances) {
  return -chances.reduce((sum, p) => sum + (p > 0 ? p * Math.log2(p) : 0), 0);
}

/** How many bits one gives away who expects `less` where `whole` is true (Kullback-Leibler divergence). */
export function divergence(whole, less) {
  const bits = whole.map((p, i) => (p > 1e-12 ? p * Math.log2(p / Math.max(less[i], 1e-12)) : 0));
  return Math.max(
    0,
    bits.reduce((a, b) => a + b),
  );
}

/** A number of the model on the screen: `value` exactly, `shown` as it is read. `about` says which number it is:
 * the kinds are probability, whole (with all heads on), after (temperature and filters), bits, entropy, weight, part,
 * parts (a sum of several), logit, rank, word, without, lens, divergence, norm, unit, similarity, cell (the weight of
 * any row of a window), and the numbers of "By numbers": query, key, value, product (q · k), score, context, joined,
 * output, stream, added (the length of the output). A test computes each with the glass engine. */
export function fact(what, value, about, shown) {
  const marks = { className: "fact", value, "data-what": what, "data-about": JSON.stringify(about) };
  return h("data", marks, shown);
}

/** The same of a chance, which is read in percent. */
export function chance(what, p, about) {
  return fact(what, p, about, percent(p));
}

/** A chance as it is read: "12.3 %". */
export function percent(p) {
  if (p >= 0.9995 || p === 0) return `${(100 * p).toFixed(0)} %`;
  return p < 0.0001 ? "< 0.01 %" : `${(100 * p).toFixed(p < 0.01 ? 2 : 1)} %`;
}

/** A number with two digits and its sign. */
export function signed(x) {
  return x > 0 ? `+${number(x, 2)}` : number(x, 2);
}
