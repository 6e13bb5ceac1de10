// The engine: the whole GPT in plain JavaScript, token ids in, logits out, nothing in between hidden.
// `Reading.read` is the model; vectors of T tokens lie one after another in a Float32Array, (T, d).

/** @typedef {{data: Float32Array, rows: number, columns: number}} Matrix */

/** A trained GPT: its config and its weights by their names. */
export class Engine {
  /** @param {object} config as in config.json @param {Map<string, Matrix>} weights */
  constructor(config, weights) {
    const linearNamed = (name) => ({ weight: weights.get(`${name}.weight`), bias: weights.get(`${name}.bias`) });
    const normNamed = (name) => ({ ...linearNamed(name), centres: config.norm === "layer" });
    const headNormNamed = (name) => ({ ...linearNamed(name), centres: false }); // an RMSNorm, always

    this.config = config;
    this.embedding = weights.get("token_embedding.weight");
    this.positions = weights.get("position_embedding.weight"); // with learned positions
    this.layers = Array.from({ length: config.num_layers }, (_, i) => ({
      attentionNorm: normNamed(`blocks.${i}.attention_norm`),
      query: linearNamed(`blocks.${i}.attention.W_query`),
      key: linearNamed(`blocks.${i}.attention.W_key`),
      value: linearNamed(`blocks.${i}.attention.W_value`),
      queryNorm: headNormNamed(`blocks.${i}.attention.query_norm`),
      keyNorm: headNormNamed(`blocks.${i}.attention.key_norm`),
      outProj: linearNamed(`blocks.${i}.attention.out_proj`),
      feedForwardNorm: normNamed(`blocks.${i}.feed_forward_norm`),
      gate: linearNamed(`blocks.${i}.feed_forward.W_gate`),
      into: linearNamed(`blocks.${i}.feed_forward.W_in`),
      out: linearNamed(`blocks.${i}.feed_forward.out_proj`),
    }));
    this.finalNorm = normNamed("final_norm");
    this.head = config.tie_embeddings ? { weight: this.embedding } : linearNamed("head");
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
  feedForward(x, layer) {
    const hidden = linear(x, layer.into); // (T, ff_dim)
    if (this.config.feed_forward === "gelu") {
      for (let i = 0; i < hidden.length; i++) hidden[i] = gelu(hidden[i]);
    } else {
      const gate = linear(x, layer.gate); // (T, ff_dim)
      for (let i = 0; i < hidden.length; i++) hidden[i] *= silu(gate[i]);
    }
    return linear(hidden, layer.out);
  }

  /** The logits (T, vocab_size) of a residual stream (T, emb_dim). */
  logits(x) {
    return linear(norm(x, this.finalNorm, this.config.norm_eps), this.head);
  }
}

/** A text as the model has read it: the queries, keys, values and residual stream of every token. */
export class Reading {
  /** @param {Engine} engine @param {Set<string>} off heads switched off, "layer.head" */
  constructor(engine, off = new Set()) {
    const { num_layers, num_heads, kv_heads, head_size, emb_dim } = engine.config;
    this.engine = engine;
    this.off = off;
    this.ids = [];
    this.residual = Array.from({ length: num_layers + 1 }, () => new Rows(emb_dim));
    this.layers = engine.layers.map(() => ({
      queries: new Rows(num_heads * head_size),
      keys: new Rows(kv_heads * head_size),
      values: new Rows(kv_heads * head_size),
      context: new Rows(num_heads * head_size),
    }));
  }

  /** Forget all but the first tokens. */
  truncate(length) {
    this.ids.length = Math.min(length, this.ids.length);
  }

  /** Read more tokens: attention and feed-forward add to the residual stream, layer after layer. */
  read(ids) {
    const { engine } = this;
    const { norm_eps } = engine.config;
    const start = this.ids.length;

    let x = engine.embed(ids, start); // (T, emb_dim)
    this.residual[0].set(x, start);

    engine.layers.forEach((layer, i) => {
      x = add(x, this.attend(i, norm(x, layer.attentionNorm, norm_eps), start));
      x = add(x, engine.feedForward(norm(x, layer.feedForwardNorm, norm_eps), layer));
      this.residual[i + 1].set(x, start);
    });
    this.ids.push(...ids);
  }

  /** The attention of layer i: from its input x (T, emb_dim) to what it adds to the stream. */
  attend(i, x, start) {
    const { positions, qk_norm, norm_eps, num_heads, head_size } = this.engine.config;
    const layer = this.engine.layers[i];
    const kept = this.layers[i];
    const T = x.length / this.engine.config.emb_dim;

    let queries = linear(x, layer.query); // (T, num_heads * head_size)
    let keys = linear(x, layer.key); // (T, kv_heads * head_size)
    const values = linear(x, layer.value); // (T, kv_heads * head_size)
    if (qk_norm) {
      queries = norm(queries, layer.queryNorm, norm_eps);
      keys = norm(keys, layer.keyNorm, norm_eps);
    }
    if (positions === "rotary") {
      this.turn(queries, start, T);
      this.turn(keys, start, T);
    }
    kept.queries.set(queries, start);
    kept.keys.set(keys, start);
    kept.values.set(values, start);

    const context = new Float32Array(queries.length); // (T, num_heads * head_size)
    for (let t = 0; t < T; t++) {
      for (let h = 0; h < num_heads; h++) {
        if (this.off.has(`${i}.${h}`)) continue; // its context vectors stay zero
        const place = (t * num_heads + h) * head_size;
        this.addContext(i, h, start + t, context.subarray(place, place + head_size));
      }
    }
    kept.context.set(context, start);
    return linear(context, layer.outProj);
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
    const weights = softmax(this.scores(i, h, t)); // (t + 1): later keys are not looked at

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

  /** The attention weights of a head, (T, T): row t is what token t looks at. */
  attention(i, h) {
    const T = this.ids.length;
    const matrix = new Float32Array(T * T);
    for (let t = 0; t < T; t++) matrix.set(softmax(this.scores(i, h, t)), t * T);
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
    return this.data.subarray(t * this.width, (t + 1) * this.width);
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

/** x Wᵀ + b, (T, d_in) -> (T, d_out); four tokens at a time, so that a weight is fetched once. */
export function linear(x, { weight: { data: W, rows, columns: d }, bias }) {
  const T = x.length / d;
  const y = new Float32Array(T * rows);
  let t = 0;

  for (; t + 4 <= T; t += 4) {
    for (let o = 0, w = 0; o < rows; o++) {
      let [s0, s1, s2, s3] = [0, 0, 0, 0];
      for (let i = t * d; i < (t + 1) * d; i++, w++) {
        s0 += W[w] * x[i];
        s1 += W[w] * x[i + d];
        s2 += W[w] * x[i + 2 * d];
        s3 += W[w] * x[i + 3 * d];
      }
      y[t * rows + o] = s0;
      y[(t + 1) * rows + o] = s1;
      y[(t + 2) * rows + o] = s2;
      y[(t + 3) * rows + o] = s3;
    }
  }

  for (; t < T; t++) {
    for (let o = 0, w = 0; o < rows; o++) {
      let [i, s0, s1, s2, s3] = [t * d, 0, 0, 0, 0];
      for (const end = i + d - 3; i < end; i += 4, w += 4) {
        s0 += W[w] * x[i];
        s1 += W[w + 1] * x[i + 1];
        s2 += W[w + 2] * x[i + 2];
        s3 += W[w + 3] * x[i + 3];
      }
      for (const end = (t + 1) * d; i < end; i++, w++) s0 += W[w] * x[i];
      y[t * rows + o] = s0 + s1 + s2 + s3;
    }
  }

  if (bias) for (let i = 0; i < y.length; i++) y[i] += bias.data[i % rows];
  return y;
}

/** RMSNorm, x / sqrt(mean(x²) + eps) * weight; or LayerNorm, which centres x first and may add a bias. */
export function norm(x, { weight: { data: weight }, bias, centres }, eps) {
  const d = weight.length;
  const y = new Float32Array(x.length);

  for (let start = 0; start < x.length; start += d) {
    let mean = 0;
    if (centres) for (let i = 0; i < d; i++) mean += x[start + i] / d;

    let square = 0;
    for (let i = 0; i < d; i++) square += (x[start + i] - mean) ** 2 / d;
    const scale = 1 / Math.sqrt(square + eps);

    for (let i = 0; i < d; i++) {
      y[start + i] = (x[start + i] - mean) * scale * weight[i] + (bias ? bias.data[i] : 0);
    }
  }
  return y;
}

/** exp(x) / sum(exp(x)). */
export function softmax(x) {
  let largest = -Infinity;
  for (const value of x) largest = Math.max(largest, value);

  const y = new Float32Array(x.length);
  let sum = 0;
  for (let i = 0; i < x.length; i++) sum += y[i] = Math.exp(x[i] - largest);
  for (let i = 0; i < x.length; i++) y[i] /= sum;
  return y;
}

/** x / (1 + exp(-x)). */
function silu(x) {
  return x / (1 + Math.exp(-x));
}

/** x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x³))). */
function gelu(x) {
  return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x)));
}

function add(a, b) {
  return a.map((value, i) => value + b[i]);
}
