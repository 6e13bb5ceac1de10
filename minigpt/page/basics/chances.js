// Chances: what the model's logits say of each token, as numbers from 0 to 1.

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
