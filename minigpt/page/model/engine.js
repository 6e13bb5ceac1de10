// The engine: the whole GPT in plain JavaScript, token ids in, logits out, nothing in between hidden.
// `Reading.read` is the model; vectors of T tokens lie one after another in a Float32Array, (T, d).

import { add, gelu, linear, norm, silu, softmax } from "./arithmetic.js";

/** @typedef {{data: Float32Array, rows: number, columns: number}} Matrix */

/** A trained GPT: its config and its weights, which have the names of the torch model's parameters. */
export class Engine {
  /** @param {object} config as in config.json @param {Map<string, Matrix>} weights by their names */
  constructor(config, weights) {
    const { token_embedding, position_embedding, blocks, final_norm, head } = nested(weights);
    this.config = config;
    this.centres = config.norm === "layer"; // whether the norms take the mean away
    this.embedding = token_embedding.weight;
    this.positions = position_embedding?.weight; // with learned positions
    this.blocks = Object.values(blocks); // their names are numbers, which an object keeps in order
    this.finalNorm = final_norm;
    this.head = head ?? token_embedding; // a tied head is the token embedding
  }

  /** So many tokens are read at once: in about a tenth of a second, so that the worker can be stopped. */
  get atOnce() {
    const { emb_dim } = this.config;
    const fitting = Math.floor(4e6 / (this.blocks.length * emb_dim * emb_dim));
    return 4 * Math.max(1, Math.min(8, fitting));
  }

  /** The norm of the config, of vectors as wide as the residual stream. */
  norm(x, part) {
    return norm(x, part, this.config.norm_eps, this.centres);
  }

  /** The embedding of each token, and with learned positions a vector for its place: (T, emb_dim). */
  embed(ids, start) {
    const { embedding, positions } = this;
    const d = embedding.columns;
    const x = new Float32Array(ids.length * d);

    ids.forEach((id, t) => {
      for (let i = 0; i < d; i++) {
        x[t * d + i] = embedding.data[id * d + i];
        if (positions) x[t * d + i] += positions.data[(start + t) * d + i];
      }
    });
    return x;
  }

  /** W_out gelu(W_in x) or, with a gate, W_out (silu(W_gate x) * W_in x). */
  feedForward(x, part) {
    return linear(this.units(x, part), part.out_proj);
  }

  /** The activations of a feed-forward's units, (T, ff_dim): gelu(W_in x) or silu(W_gate x) * W_in x. */
  units(x, { W_gate, W_in }) {
    const hidden = linear(x, W_in); // (T, ff_dim)

    if (this.config.feed_forward === "gelu") {
      for (let i = 0; i < hidden.length; i++) hidden[i] = gelu(hidden[i]);
    } else {
      const gate = linear(x, W_gate); // (T, ff_dim)
      for (let i = 0; i < hidden.length; i++) hidden[i] *= silu(gate[i]);
    }
    return hidden;
  }

  /** The logits (T, vocab_size) of a residual stream (T, emb_dim). */
  logits(x) {
    return linear(this.norm(x, this.finalNorm), this.head);
  }
}

/** Weights by names such as "blocks.0.attention.W_query.weight", as objects in objects. */
function nested(weights) {
  const all = {};
  for (const [name, matrix] of weights) {
    const path = name.split(".");
    const last = path.pop();

    let part = all;
    for (const key of path) part = part[key] ??= {};
    part[last] = matrix;
  }
  return all;
}

/** Tokens as the model has read them: the queries, keys, values and residual stream of each. */
export class Reading {
  /** @param {Engine} engine @param {Set<string>} off heads switched off, "layer.head"
   * @param {number?} hidden a token that no later one looks at, in any layer */
  constructor(engine, off = new Set(), hidden = null) {
    const { num_heads, kv_heads, head_size, emb_dim } = engine.config;
    this.engine = engine;
    this.off = off;
    this.hidden = hidden;
    this.ids = [];
    this.residual = Array.from({ length: engine.blocks.length + 1 }, () => new Rows(emb_dim));
    this.layers = engine.blocks.map(() => ({
      queries: new Rows(num_heads * head_size),
      keys: new Rows(kv_heads * head_size),
      values: new Rows(kv_heads * head_size),
      context: new Rows(num_heads * head_size),
      middle: new Rows(emb_dim), // the stream after attention, before the feed-forward
    }));
  }

  /** A second reading of the first `length` tokens, which goes its own way from there; with a head more off
   * it is to be computed anew from that head's layer on, by `through`. */
  branch(length, { off = this.off, hidden = this.hidden } = {}) {
    const other = new Reading(this.engine, off, hidden);
    other.ids = this.ids.slice(0, length);
    this.residual.forEach((rows, i) => other.residual[i].copy(rows, length));
    this.layers.forEach((layer, i) => {
      for (const [name, rows] of Object.entries(layer)) other.layers[i][name].copy(rows, length);
    });
    return other;
  }

  /** How many numbers it holds. */
  get size() {
    const rows = [...this.residual, ...this.layers.flatMap(Object.values)];
    return rows.reduce((sum, { data }) => sum + data.length, 0);
  }

  /** Read more tokens; of the last layer only the last `wanted` of them. */
  read(ids, wanted = ids.length) {
    const start = this.ids.length;
    const x = this.engine.embed(ids, start); // (T, emb_dim)

    this.residual[0].set(x, start);
    this.through(0, x, { start, wanted });
    for (const id of ids) this.ids.push(id);
  }

  /** The layers from `first` on add to the stream x (T, emb_dim) of the tokens from `start` on: attention, then
   * feed-forward, layer after layer; in the last layer to the stream of the last `wanted` tokens. */
  through(first, x, { start, wanted }) {
    const { blocks, config } = this.engine;
    const T = x.length / config.emb_dim;

    for (let i = first; i < blocks.length; i++) {
      const { attention_norm, feed_forward_norm, feed_forward } = blocks[i];
      const from = i + 1 < blocks.length ? 0 : T - Math.min(T, wanted);

      const attended = this.attend(i, this.engine.norm(x, attention_norm), { start, from });
      x = add(x.subarray(from * config.emb_dim), attended);
      this.layers[i].middle.set(x, start + from);
      x = add(x, this.engine.feedForward(this.engine.norm(x, feed_forward_norm), feed_forward));
      this.residual[i + 1].set(x, start + from);
    }
  }

  /** The attention of layer i: from its input x (T, emb_dim) to what it adds to the stream, (T - from, emb_dim): to
   * that of all of the T tokens but the first `from`. */
  attend(i, x, { start, from }) {
    const { positions, norm_eps, num_heads, head_size, emb_dim } = this.engine.config;
    const { W_query, W_key, W_value, query_norm, key_norm, out_proj } = this.engine.blocks[i].attention;
    const kept = this.layers[i];
    const T = x.length / emb_dim;

    let queries = linear(x.subarray(from * emb_dim), W_query); // (T - from, num_heads * head_size)
    let keys = linear(x, W_key); // (T, kv_heads * head_size)
    const values = linear(x, W_value); // (T, kv_heads * head_size)
    if (query_norm) {
      queries = norm(queries, query_norm, norm_eps); // an RMSNorm, always
      keys = norm(keys, key_norm, norm_eps);
    }
    if (positions === "rotary") {
      this.turn(queries, start + from, T - from);
      this.turn(keys, start, T);
    }
    kept.queries.set(queries, start + from);
    kept.keys.set(keys, start);
    kept.values.set(values, start);

    const context = new Float32Array(queries.length); // (T - from, num_heads * head_size)
    for (let t = from; t < T; t++) {
      for (let h = 0; h < num_heads; h++) {
        if (this.off.has(`${i}.${h}`)) continue; // its context vectors stay zero
        const place = ((t - from) * num_heads + h) * head_size;
        this.addContext(i, h, start + t, context.subarray(place, place + head_size));
      }
    }
    kept.context.set(context, start + from);
    return linear(context, out_proj);
  }

  /** Turn vectors by their position: components i and i + head_size / 2 by t base^(-2i / head_size). */
  turn(x, start, T) {
    const { head_size, rotary_base } = this.engine.config;
    const half = head_size / 2;
    const width = x.length / T;

    for (let t = 0; t < T; t++) {
      for (let i = 0; i < half; i++) {
        const angle = (start + t) * rotary_base ** ((-2 * i) / head_size);
        const cos = Math.cos(angle);
        const sin = Math.sin(angle);
        for (let p = t * width + i; p < (t + 1) * width; p += head_size) {
          const a = x[p];
          const b = x[p + half];
          x[p] = a * cos - b * sin;
          x[p + half] = b * cos + a * sin;
        }
      }
    }
  }

  /** softmax(q Kᵀ / sqrt(head_size)) V of the query at place t in one head, added to context (head_size). */
  addContext(i, h, t, context) {
    const { head_size } = this.engine.config;
    const { data, width } = this.layers[i].values;
    const offset = this.groupOf(h) * head_size;
    const weights = this.weights(i, h, t);

    for (let j = 0; j <= t; j++) {
      const value = j * width + offset;
      for (let c = 0; c < head_size; c++) context[c] += weights[j] * data[value + c];
    }
  }

  /** The key/value head that serves a query head. */
  groupOf(h) {
    const { num_heads, kv_heads } = this.engine.config;
    return Math.floor((h * kv_heads) / num_heads);
  }

  /** The attention scores q Kᵀ / sqrt(head_size) of the query at place t, (t + 1). */
  scores(i, h, t) {
    const { head_size } = this.engine.config;
    const { queries, keys } = this.layers[i];
    const query = queries.row(t).subarray(h * head_size, (h + 1) * head_size);
    const offset = this.groupOf(h) * head_size;

    const scores = new Float32Array(t + 1);
    for (let j = 0; j <= t; j++) {
      const key = j * keys.width + offset;
      let sum = 0;
      for (let c = 0; c < head_size; c++) sum += query[c] * keys.data[key + c];
      scores[j] = sum / Math.sqrt(head_size);
    }
    return scores;
  }

  /** What token t looks at in one head, (t + 1): later keys are not looked at. */
  weights(i, h, t) {
    const scores = this.scores(i, h, t);
    if (this.hidden !== null && this.hidden < t) scores[this.hidden] = -Infinity;
    return softmax(scores);
  }

  /** The attention weights of a head among the first T tokens, (T, T): row t is what token t looks at. */
  attention(i, h, T = this.ids.length) {
    const matrix = new Float32Array(T * T);
    for (let t = 0; t < T; t++) matrix.set(this.weights(i, h, t), t * T);
    return matrix;
  }

  /** The logits after the token at place t; after fewer layers, what the model would say by then. */
  logits(t = this.ids.length - 1, layer = this.layers.length) {
    return this.engine.logits(this.residual[layer].row(t));
  }
}

/** Rows of the same width that grow in number. */
class Rows {
  constructor(width) {
    this.width = width;
    this.data = new Float32Array(16 * width);
  }

  row(t) {
    return this.rows(t, t + 1);
  }

  /** The rows from `start` to before `end`. */
  rows(start, end) {
    return this.data.subarray(start * this.width, end * this.width);
  }

  /** Take over the first `length` rows of others. */
  copy(others, length) {
    this.set(others.rows(0, length), 0);
  }

  set(rows, start) {
    const end = start * this.width + rows.length;
    if (end > this.data.length) {
      const larger = new Float32Array(Math.max(end, 2 * this.data.length));
      larger.set(this.data);
      this.data = larger;
    }
    this.data.set(rows, start * this.width);
  }
}
