// What a reading shows of the model's inside, for the views: of the first T tokens of it, in the shapes in which they
// draw it. The last of these tokens is the one that predicts.

import { linear, softmax } from "./arithmetic.js";
import { Reading } from "./engine.js";

const THUMBNAIL = 48; // pixels
const SHOWN_UNITS = 12;
const SHOWN_TOKENS = 8; // that a unit makes likelier
const SHOWN_PLACES = 5; // where else a unit fires

/** The logits after the last token. */
export function lastLogits(reading, T) {
  return reading.logits(T - 1);
}

/** The attention weights of the last row in every head: {weights: (num_layers * num_heads * T)}. */
export function lastRows(reading, T) {
  const { blocks, config } = reading.engine;
  const weights = new Float32Array(blocks.length * config.num_heads * T);
  blocks.forEach((_, i) => {
    for (let h = 0; h < config.num_heads; h++) {
      weights.set(reading.weights(i, h, T - 1), (i * config.num_heads + h) * T);
    }
  });
  return { weights };
}

/** What the map of the model shows of the last token: its vector (emb_dim), the lengths of its stream (num_layers + 1),
 * what it looks at (num_layers * num_heads * T), and how the units fire (num_layers * ff_dim). */
export function overview(reading, T) {
  const { blocks } = reading.engine;
  const ofLayers = blocks.map((_, layer) => unitsAt(reading, T - 1, layer));
  const units = new Float32Array(ofLayers.length * ofLayers[0].length);
  ofLayers.forEach((ofLayer, layer) => units.set(ofLayer, layer * ofLayer.length));

  const vector = reading.residual[0].row(T - 1).slice();
  return { vector, norms: streamNorms(reading, T), ...lastRows(reading, T), units };
}

/** How the units of a layer's feed-forward fire at token t, (ff_dim). */
function unitsAt(reading, t, layer) {
  const { engine, layers } = reading;
  const { feed_forward, feed_forward_norm } = engine.blocks[layer];
  return engine.units(engine.norm(layers[layer].middle.row(t), feed_forward_norm), feed_forward);
}

/** The attention weights of a head, (T, T). */
export function headAttention(reading, T, layer, head) {
  return { T, weights: reading.attention(layer, head, T) };
}

/** A small picture of every head, (num_layers, num_heads) of side * side bytes. */
export function thumbnails(reading, T) {
  const { blocks, config } = reading.engine;
  const side = Math.min(T, THUMBNAIL);
  const heads = blocks.map((_, i) =>
    Array.from({ length: config.num_heads }, (_, h) => shrunk(reading.attention(i, h, T), T, side)),
  );
  return { T, side, heads };
}

/** The largest weight of each small square, as bytes; the square root, so that small ones show. */
function shrunk(weights, T, side) {
  const bytes = new Uint8Array(side * side);
  for (let t = 0; t < T; t++) {
    for (let j = 0; j <= t; j++) {
      const at = Math.floor((t * side) / T) * side + Math.floor((j * side) / T);
      bytes[at] = Math.max(bytes[at], 255 * Math.sqrt(weights[t * T + j]));
    }
  }
  return bytes;
}

/** All numbers of the last query in one head, from its vectors to what the layer adds to the stream. */
export function lastQuery(reading, T, layer, head) {
  const { head_size } = reading.engine.config;
  const { queries, keys, values, context } = reading.layers[layer];
  const t = T - 1;

  const part = (rows, j, h) => rows.row(j).slice(h * head_size, (h + 1) * head_size);
  const group = reading.groupOf(head);
  const places = Array.from({ length: T }, (_, j) => j);

  return {
    query: part(queries, t, head),
    keys: places.map((j) => part(keys, j, group)),
    values: places.map((j) => part(values, j, group)),
    scores: reading.scores(layer, head, t),
    weights: reading.weights(layer, head, t),
    context: part(context, t, head),
    joined: context.row(t).slice(),
    output: linear(context.row(t), reading.engine.blocks[layer].attention.out_proj),
    stream: reading.residual[layer].row(t).slice(),
  };
}

/** What the model would say after each layer (the logit lens), at the last `count` of the T tokens: rows of
 * {id, probability, next}, the likeliest token and the probability of the one that follows; after the last one of the
 * window follows `following`, if there is one, otherwise null. A generator, which yields after each row. */
export function* lens(reading, T, count, following = null) {
  const first = Math.max(0, T - count);
  const rows = [];

  for (let layer = 0; layer < reading.residual.length; layer++) {
    const row = [];
    for (let t = first; t < T; t++) {
      const probabilities = softmax(reading.logits(t, layer));
      const id = indexOfLargest(probabilities);
      const next = t + 1 < T ? reading.ids[t + 1] : following;
      row.push({ id, probability: probabilities[id], next: next === null ? null : probabilities[next] });
    }
    rows.push(row);
    yield;
  }
  return rows;
}

/** The length of the last token's stream: of the embedding, then after each layer, (num_layers + 1). */
export function streamNorms(reading, T) {
  return Float32Array.from(reading.residual, (rows) => lengthOf(rows.row(T - 1)));
}

/** The units of a feed-forward that fire most at the last token, with either sign: {units: [{unit, activation, adds,
 * places}]}. `adds` are the tokens that they make likelier there, `places` the other tokens of the window at which they
 * fire most, in the same direction: [{place, activation}]. */
export function firingUnits(reading, T, layer) {
  const { engine } = reading;
  const { feed_forward, feed_forward_norm } = engine.blocks[layer];
  const last = unitsAt(reading, T - 1, layer); // (ff_dim,)
  const shown = indicesOfLargest(last.map(Math.abs), SHOWN_UNITS);

  const stream = reading.layers[layer].middle.rows(0, T);
  const only = rowsOfUnits(feed_forward, shown);
  const everywhere = engine.units(engine.norm(stream, feed_forward_norm), only); // (T, shown)

  const units = shown.map((unit, n) => {
    const sign = Math.sign(last[unit]) || 1;
    const firing = (t) => sign * everywhere[t * shown.length + n];
    const others = Array.from({ length: T - 1 }, (_, t) => t).filter((t) => firing(t) > 0);
    const places = others.sort((a, b) => firing(b) - firing(a)).slice(0, SHOWN_PLACES);
    return {
      unit,
      activation: last[unit],
      adds: raisedTokens(engine, columnOf(feed_forward.out_proj.weight, unit), sign),
      places: places.map((place) => ({ place, activation: sign * firing(place) })),
    };
  });
  return { units };
}

/** A feed-forward that has these of its units alone. */
function rowsOfUnits({ W_gate, W_in }, units) {
  const only = ({ weight, bias }) => {
    const data = new Float32Array(units.length * weight.columns);
    units.forEach((unit, n) =>
      data.set(weight.data.subarray(unit * weight.columns, (unit + 1) * weight.columns), n * weight.columns),
    );
    return {
      weight: { data, rows: units.length, columns: weight.columns },
      bias: bias && { data: Float32Array.from(units, (unit) => bias.data[unit]) },
    };
  };
  return { W_gate: W_gate && only(W_gate), W_in: only(W_in) };
}

/** The tokens whose logits rise the most if the stream moves in a direction; the scale of the final norm, the same for
 * all tokens, is left out. */
function raisedTokens(engine, direction, sign) {
  const { emb_dim } = engine.config;
  const mean = engine.centres ? direction.reduce((sum, x) => sum + x / emb_dim, 0) : 0;
  const weight = engine.finalNorm.weight.data;
  const after = direction.map((x, i) => sign * (x - mean) * weight[i]);
  const logits = linear(after, { weight: engine.head.weight }); // (vocab_size,)
  return indicesOfLargest(logits, SHOWN_TOKENS);
}

function columnOf({ data, rows, columns }, column) {
  return Float32Array.from({ length: rows }, (_, row) => data[row * columns + column]);
}

/** The tokens whose vectors in the embedding have the smallest angle to a token's: [{id, similarity}], by cosine. */
export function nearestTokens(engine, token, count) {
  const { data, rows, columns: d } = engine.embedding;
  const vectorOf = (id) => data.subarray(id * d, (id + 1) * d);
  const own = vectorOf(token);
  const ownLength = lengthOf(own);

  const similarities = linear(own, { weight: { data, rows, columns: d } }); // (vocab_size,), not divided yet
  for (let id = 0; id < rows; id++) similarities[id] /= ownLength * lengthOf(vectorOf(id)) || 1;
  const nearest = indicesOfLargest(similarities, count + 1).filter((id) => id !== token);
  return nearest.slice(0, count).map((id) => ({ id, similarity: similarities[id] }));
}

/** How much each head looks where, on average, in random tokens that come twice: (num_layers, num_heads) of objects;
 * null if the context is too short. A generator, which yields while it reads. */
export function* headScores(engine) {
  const { context_length, vocab_size, num_heads } = engine.config;
  const n = Math.min(48, Math.floor(context_length / 2));
  if (n < 2) return null;

  let state = 12345;
  const once = [];
  while (once.length < n) {
    state = (state * 48271) % 2147483647;
    once.push(state % (vocab_size - 1));
  }

  const twice = [...once, ...once];
  const reading = new Reading(engine);
  for (let i = 0; i < twice.length; i += engine.atOnce) {
    reading.read(twice.slice(i, i + engine.atOnce));
    yield;
  }
  return engine.blocks.map((_, i) => Array.from({ length: num_heads }, (_, h) => scoresOf(reading.attention(i, h), n)));
}

/** The mean weight with which the second n of 2 n tokens look at certain places. */
function scoresOf(weights, n) {
  const meanWeight = (place) => {
    let sum = 0;
    for (let t = n; t < 2 * n; t++) sum += weights[t * 2 * n + place(t)] / n;
    return sum;
  };
  return {
    previousToken: meanWeight((t) => t - 1),
    firstToken: meanWeight(() => 0),
    itself: meanWeight((t) => t),
    sameTokenBefore: meanWeight((t) => t - n),
    induction: meanWeight((t) => t - n + 1),
  };
}

function lengthOf(vector) {
  return Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0));
}

function indexOfLargest(values) {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i] > values[best]) best = i;
  return best;
}

/** The indices of the largest values, largest first, of equals the smallest index first. */
function indicesOfLargest(values, count) {
  const best = [];
  for (let i = 0; i < values.length; i++) {
    if (best.length === count && values[i] <= values[best[count - 1]]) continue;

    let at = best.length;
    while (at > 0 && values[best[at - 1]] < values[i]) at--;
    best.splice(at, 0, i);
    if (best.length > count) best.pop();
  }
  return best;
}
