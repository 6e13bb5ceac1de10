// Why a token was likely: what each part of the model adds to its logit, and what changes if no head may look at an
// earlier token, or if a head is off. The same as minigpt/generation/explanation.py, which says what each number means.

import { softmax, statistics } from "./arithmetic.js";

/** Explains the prediction of `token` after the first T tokens of a reading. A generator of what is found, in the order
 * in which it is found: {logit, probability, parts}, then often {heads: {...}} or {words: {...}}; undefined if nothing
 * new is found yet. The heads that add the most and the tokens that are looked at the most come first, in turn.
 * @param {import("./engine.js").Reading} reading */
export function* explainToken(reading, T, token) {
  const logits = reading.logits(T - 1);
  const parts = partsOf(reading, T - 1, token);
  yield { logit: logits[token] - mean(logits), probability: softmax(logits)[token], parts };

  const heads = headsBySize(reading, parts);
  const words = tokensByAttention(reading, T);
  words.unshift(T - 1);

  for (let i = 0; i < Math.max(heads.length, words.length); i++) {
    if (i < heads.length) {
      const { layer, head } = heads[i];
      const probability = yield* withoutHead(reading, T, token, heads[i]);
      yield { heads: { [headName(layer, head)]: probability } };
    }
    if (i < words.length) {
      const bits = yield* bitsWithout(reading, T, token, words[i]);
      yield { words: { [words[i]]: bits } };
    }
  }
}

/** "1.2" is the second head of the first layer. */
function headName(layer, head) {
  return `${layer + 1}.${head + 1}`;
}

/** What each part adds to the centred logit of the token at row t. The stream is a sum, and the final norm is linear
 * once its scale is frozen: so each part's share is its dot product with one direction. */
function partsOf(reading, t, token) {
  const { engine, off } = reading;
  const { num_heads, head_size } = engine.config;
  const above = aboveTheMean(engine, token); // (emb_dim,), after the final norm
  const direction = beforeTheNorm(engine, above, reading.residual.at(-1).row(t)); // (emb_dim,)
  const parts = { embedding: dot(reading.residual[0].row(t), direction) };

  const normBias = engine.finalNorm.bias;
  let bias = normBias ? dot(normBias.data, above) : 0;

  engine.blocks.forEach(({ attention: { out_proj } }, i) => {
    const context = reading.layers[i].context.row(t); // (num_heads * head_size,)
    const along = transposed(out_proj.weight, direction); // (num_heads * head_size,)
    for (let h = 0; h < num_heads; h++) {
      const place = [h * head_size, (h + 1) * head_size];
      const isOff = off.has(`${i}.${h}`);
      parts[headName(i, h)] = isOff ? 0 : dot(context.subarray(...place), along.subarray(...place));
    }
    if (out_proj.bias) bias += dot(out_proj.bias.data, direction);

    const before = reading.layers[i].middle.row(t);
    const after = reading.residual[i + 1].row(t);
    parts[`${i + 1} feed-forward`] = dot(after, direction) - dot(before, direction);
  });

  parts.bias = bias;
  return parts;
}

/** The direction after the final norm in which the token's logit rises above the mean logit. */
function aboveTheMean(engine, token) {
  const { data, rows, columns: d } = engine.head.weight;
  const direction = new Float64Array(d);
  for (let i = 0; i < data.length; i++) direction[i % d] -= data[i] / rows;
  for (let i = 0; i < d; i++) direction[i] += data[token * d + i];
  return direction;
}

/** The same direction before the final norm, with the scale that the norm has at x. */
function beforeTheNorm(engine, direction, x) {
  const { scale } = statistics(x, engine.config.norm_eps, engine.centres);
  const weight = engine.finalNorm.weight.data;
  const before = direction.map((value, i) => value * weight[i] * scale);

  // (part - mean(part)) · direction  =  part · (direction - mean(direction))
  const centre = engine.centres ? mean(before) : 0;
  return before.map((value) => value - centre);
}

/** All heads, those first that add or take away the most. */
function headsBySize(reading, parts) {
  const { blocks, config } = reading.engine;
  const all = blocks.flatMap((_, layer) => Array.from({ length: config.num_heads }, (_, head) => ({ layer, head })));
  const size = ({ layer, head }) => Math.abs(parts[headName(layer, head)]);
  return all.sort((a, b) => size(b) - size(a));
}

/** The tokens before the last, those first that the last looks at the most, all heads together. */
function tokensByAttention(reading, T) {
  const attention = new Float64Array(T - 1);
  reading.engine.blocks.forEach((_, i) => {
    for (let h = 0; h < reading.engine.config.num_heads; h++) {
      if (reading.off.has(`${i}.${h}`)) continue;
      const weights = reading.weights(i, h, T - 1);
      for (let j = 0; j < T - 1; j++) attention[j] += weights[j];
    }
  });
  return Array.from(attention.keys()).sort((a, b) => attention[b] - attention[a]);
}

/** The token's probability if a head is off at all tokens. The layers below it stay as they are. */
function* withoutHead(reading, T, token, { layer, head }) {
  const { atOnce } = reading.engine;
  const other = reading.branch(T, { off: new Set(reading.off).add(`${layer}.${head}`) });

  for (let start = 0; start < T; start += atOnce) {
    const end = Math.min(T, start + atOnce);
    const x = reading.residual[layer].rows(start, end).slice();
    other.through(layer, x, { start, wanted: end === T ? 1 : 0 });
    yield;
  }
  return softmax(other.logits(T - 1))[token];
}

/** How many bits the token's log-probability changes by, if no later token may look at the token at place j. What is
 * computed at that one and before it stays as it is. */
function* bitsWithout(reading, T, token, j) {
  if (j === T - 1) return 0; // none comes after the last one

  const { atOnce } = reading.engine;
  const other = reading.branch(j + 1, { hidden: j });
  for (let start = j + 1; start < T; start += atOnce) {
    const end = Math.min(T, start + atOnce);
    other.read(reading.ids.slice(start, end), end === T ? 1 : 0);
    yield;
  }
  return (logProbability(other.logits(T - 1), token) - logProbability(reading.logits(T - 1), token)) / Math.LN2;
}

/** The log-probability of a token, in nats. */
export function logProbability(logits, token) {
  const largest = logits.reduce((a, b) => Math.max(a, b));
  const sum = logits.reduce((total, logit) => total + Math.exp(logit - largest), 0);
  return logits[token] - largest - Math.log(sum);
}

/** Wᵀ x. */
function transposed({ data, rows, columns }, x) {
  const y = new Float64Array(columns);
  for (let o = 0; o < rows; o++) {
    for (let i = 0; i < columns; i++) y[i] += data[o * columns + i] * x[o];
  }
  return y;
}

function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

function mean(x) {
  return x.reduce((sum, value) => sum + value / x.length, 0);
}
