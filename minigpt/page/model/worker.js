// The worker: it alone holds the weights. The page asks it by name ({id, name, args}) and gets one
// answer ({id, result} or {id, error}); while it reads and writes, tokens come as {event: ...}.
import { Engine, linear, Reading, softmax } from "./engine.js";
import { Passages } from "./passages.js";
import { draw } from "./sampler.js";
import { Tokenizer } from "./tokenizer.js";

/** @typedef {{ids: number[], prompt: number, hidden: number}} Text token ids; so many were the prompt,
 * and the first one is hidden if the prompt is empty */

const AT_ONCE = 32; // tokens of a prompt between two looks at the messages that came meanwhile
const THUMBNAIL = 48; // pixels
const channel = new MessageChannel();
let engine, tokenizer, documents, passages;
let writer, viewer; // what the model has read: the text that is written, and another that is looked at
let job = 0; // counts the tasks that may be stopped

const tasks = {
  open(model, weights, text) {
    const numbers = decodeWeights(weights, model.dtype);
    let start = 0;
    const matrices = model.tensors.map(([name, shape]) => {
      const size = shape.reduce((a, b) => a * b);
      const matrix = { data: numbers.subarray(start, (start += size)), rows: shape[0], columns: shape[1] };
      return [name, matrix];
    });
    engine = new Engine(model.config, new Map(matrices));
    tokenizer = new Tokenizer(model.tokenizer);
    documents = text;
  },

  encode: (text) => tokenizer.encode(text),

  /** Read a text; the surprise of each of its tokens comes as an event, in bits. */
  async read(text) {
    const mine = ++job;
    await advance(text, mine, true);
    return mine === job;
  },

  /** Write until `count` tokens are written, the model ends the text or another task comes. */
  async write(text, count, settings, off = []) {
    const mine = ++job;
    const ids = text.ids.slice();
    for (let i = 0; i < count; i++) {
      await advance({ ...text, ids }, mine, false, off);
      if (mine !== job) return "stopped";
      const logits = writer.reading.logits();
      const token = draw(logits, settings, ids.slice(text.hidden), ids.length);
      postMessage({ event: "token", id: token, surprise: bits(logits, token) });
      if (token === tokenizer.end) return "ended";
      ids.push(token);
      await breath();
      if (mine !== job) return "stopped";
    }
    return "length";
  },

  stop: () => void job++,

  /** The logits of the token at `place`, given those before it. */
  logits(text, place, off = []) {
    const { reading, start } = view(text, place, off);
    return reading.logits(place - start - 1);
  },

  /** The logits after each token, for scripts. */
  allLogits(ids) {
    const reading = new Reading(engine);
    for (let i = 0; i < ids.length; i += AT_ONCE) reading.read(ids.slice(i, i + AT_ONCE));
    return ids.map((_, t) => reading.logits(t));
  },

  /** A small picture of every head, (num_layers, num_heads) of side * side bytes. */
  thumbnails(text, place) {
    const { reading, start } = view(text, place + 1);
    const T = reading.ids.length;
    const side = Math.min(T, THUMBNAIL);
    const heads = engine.layers.map((_, i) =>
      Array.from({ length: engine.config.num_heads }, (_, h) => shrink(reading.attention(i, h), T, side)),
    );
    return { start, T, side, heads };
  },

  /** The attention weights of a head, (T, T); the first token read is token `start` of the text. */
  attention(text, place, layer, head) {
    const { reading, start } = view(text, place + 1);
    return { start, T: reading.ids.length, weights: reading.attention(layer, head) };
  },

  /** How much each head looks where, on average, in random tokens that come twice. */
  headScores() {
    const { context_length, vocab_size, num_heads } = engine.config;
    const n = Math.min(48, Math.floor(context_length / 2));
    if (n < 2) return null;

    let state = 12345;
    const once = Array.from({ length: n }, () => (state = (state * 48271) % 2147483647) % (vocab_size - 1));
    const reading = new Reading(engine);
    reading.read([...once, ...once]);

    return engine.layers.map((_, i) =>
      Array.from({ length: num_heads }, (_, h) => {
        const weights = reading.attention(i, h);
        const mean = (place) => {
          let sum = 0;
          for (let t = n; t < 2 * n; t++) sum += weights[t * 2 * n + place(t)] / n;
          return sum;
        };
        return {
          "previous token": mean((t) => t - 1),
          "first token": mean(() => 0),
          itself: mean((t) => t),
          "same token before": mean((t) => t - n),
          induction: mean((t) => t - n + 1),
        };
      }),
    );
  },

  /** All numbers of one query in one head, from its vectors to what the layer adds to the stream. */
  query(text, place, layer, head) {
    const { reading, start } = view(text, place + 1);
    const { kv_heads, num_heads, head_size } = engine.config;
    const { queries, keys, values, context } = reading.layers[layer];
    const t = place - start;

    const part = (rows, j, h) => rows.row(j).slice(h * head_size, (h + 1) * head_size);
    const group = Math.floor((head * kv_heads) / num_heads);
    const places = Array.from({ length: t + 1 }, (_, j) => j);
    const scores = reading.scores(layer, head, t);

    return {
      start,
      query: part(queries, t, head),
      keys: places.map((j) => part(keys, j, group)),
      values: places.map((j) => part(values, j, group)),
      scores,
      weights: softmax(scores),
      context: part(context, t, head),
      joined: context.row(t).slice(),
      output: linear(context.row(t), engine.layers[layer].outProj),
      stream: reading.residual[layer].row(t).slice(),
    };
  },

  /** What the model would say after each layer, for the tokens after places `from` to `to`. */
  lens(text, from, to) {
    const { reading, start } = view(text, to + 1);
    const first = Math.max(from, start);
    const rows = reading.residual.map((_, layer) =>
      Array.from({ length: to - first + 1 }, (_, i) => {
        const weights = softmax(reading.logits(first + i - start, layer));
        const id = weights.reduce((best, weight, id) => (weight > weights[best] ? id : best), 0);
        const next = text.ids[first + i + 1];
        return { id, probability: weights[id], next: next === undefined ? null : weights[next] };
      }),
    );
    return { from: first, rows };
  },

  /** Where the training text has something like the characters from `start` to `end`. */
  sources(text, start, end) {
    passages ??= new Passages(documents);
    const near = text.slice(Math.max(0, start - 120), Math.min(text.length, end + 60));
    return { copy: passages.around(text, start, end), nearest: passages.nearest(near) };
  },

  copies(text, least) {
    passages ??= new Passages(documents);
    return passages.copies(text, least);
  },
};

onmessage = async ({ data: { id, name, args } }) => {
  try {
    postMessage({ id, result: await tasks[name](...args) });
  } catch (error) {
    postMessage({ id, error: error.message });
  }
};

/** Where the model's window begins when it has read n tokens: it forgets the earlier half when full. */
function windowStart(prompt, n) {
  const size = engine.config.context_length;
  let start = Math.max(0, prompt - size);
  while (n - start > size) start += Math.floor(size / 2) + 1;
  return start;
}

/** Whether `kept` is a reading of the first `n` of these tokens, as far as it goes. */
function fits(kept, ids, n, start, off) {
  if (!kept || kept.start !== start || String([...kept.reading.off]) !== String(off)) return false;
  const length = Math.min(kept.reading.ids.length, n - start);
  for (let i = 0; i < length; i++) if (kept.reading.ids[i] !== ids[start + i]) return false;
  return true;
}

/** Let the writer read a text to its end, in pieces, unless a newer task stops it. */
async function advance(text, mine, tellSurprise, off = []) {
  const { ids, prompt } = text;
  const start = windowStart(prompt, ids.length);
  if (!fits(writer, ids, ids.length, start, off)) {
    let common = 0;
    if (writer?.start === start && String([...writer.reading.off]) === String(off)) {
      while (writer.reading.ids[common] === ids[start + common]) common++;
      writer.reading.truncate(common);
    } else writer = { reading: new Reading(engine, new Set(off)), start };
  }

  const { reading } = writer;
  reading.truncate(ids.length - start);
  if (tellSurprise) tell(reading, start, 0);

  while (reading.ids.length < ids.length - start) {
    const done = reading.ids.length;
    reading.read(ids.slice(start + done, start + done + AT_ONCE));
    if (tellSurprise) tell(reading, start, done);
    if (reading.ids.length < ids.length - start) await breath();
    if (mine !== job) return;
  }
}

/** The surprises of the tokens from `from` on that the reading has read. */
function tell(reading, start, from) {
  const surprises = [];
  for (let t = from; t < reading.ids.length; t++) {
    surprises.push(t ? bits(reading.logits(t - 1), reading.ids[t]) : NaN);
  }
  if (surprises.length) postMessage({ event: "surprises", from: start + from, surprises });
}

/** A reading in which the first `n` tokens of a text are read, as they were when it was written. */
function view({ ids, prompt }, n, off = []) {
  const start = windowStart(prompt, n);
  const done = [writer, viewer].find((kept) => fits(kept, ids, n, start, off) && kept.reading.ids.length >= n - start);
  if (done) return done;

  viewer = { reading: new Reading(engine, new Set(off)), start };
  const end = Math.min(start + engine.config.context_length, ids.length);
  for (let i = start; i < end; i += AT_ONCE) viewer.reading.read(ids.slice(i, Math.min(i + AT_ONCE, end)));
  return viewer;
}

/** The largest weight of each small square, as bytes; the square root, so that small ones show. */
function shrink(weights, T, side) {
  const bytes = new Uint8Array(side * side);
  for (let t = 0; t < T; t++) {
    for (let j = 0; j <= t; j++) {
      const at = Math.floor((t * side) / T) * side + Math.floor((j * side) / T);
      bytes[at] = Math.max(bytes[at], 255 * Math.sqrt(weights[t * T + j]));
    }
  }
  return bytes;
}

/** -log2 of the probability of a token. */
function bits(logits, token) {
  const largest = logits.reduce((a, b) => Math.max(a, b));
  const sum = logits.reduce((total, logit) => total + Math.exp(logit - largest), 0);
  return (Math.log(sum) - (logits[token] - largest)) / Math.LN2;
}

/** A moment in which messages are received. */
function breath() {
  return new Promise((resolve) => {
    channel.port1.onmessage = resolve;
    channel.port2.postMessage(null);
  });
}

/** Base64 to Float32Array. */
function decodeWeights(base64, dtype) {
  const bytes = Uint8Array.fromBase64?.(base64) ?? Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  if (dtype === "float32") return new Float32Array(bytes.buffer);
  const halves = new Uint16Array(bytes.buffer);
  const table = Float32Array.from({ length: 1 << 16 }, (_, half) => {
    const [sign, exponent, fraction] = [half >> 15 ? -1 : 1, (half >> 10) & 31, half & 1023];
    return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : fraction * 2 ** -24);
  });
  return Float32Array.from(halves, (half) => table[half]);
}
