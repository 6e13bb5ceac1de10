// The worker: it alone holds the weights. The page asks it by name ({id, name, args}) and gets one answer ({id, result}
// or {id, error}); what it finds meanwhile comes as {event, question}, where `question` is the id of what was asked.
//
// Tasks that take long are generators that yield now and then, so that messages are received. Of reading and writing
// one goes on at a time: a newer one ends the older. So it is with explanations, which end when a text is written or
// stopped, too. What is ended is answered at once.

import { Dialogue } from "./dialogue.js";
import { Engine } from "./engine.js";
import { explainToken, logProbability } from "./explanation.js";
import {
  firingUnits,
  headAttention,
  headScores,
  lastLogits,
  lastQuery,
  lastRows,
  lens,
  nearestTokens,
  overview,
  streamNorms,
  thumbnails,
} from "./inside.js";
import { ReadingCache } from "./reading_cache.js";
import { dieNumber, drawn, markedOf } from "./sampler.js";
import { Tokenizer } from "./tokenizer.js";
import { readWeights } from "./weights.js";
import { movedWindow, nextWindow, windowsOf } from "./window.js";

/** @typedef {{ids: number[], hidden?: number, starts?: number[], origin?: ("typed"|"written")[], nextStart?: number?,
 * from?: number, turnFrom?: number?}} Text
 * A text: its tokens, of which the first `hidden` stand for an empty beginning; where the windows of its first tokens
 * begin, and that of the next one, if that is known; whether a token was typed or written. Its tokens from `from` on are
 * to be read. What is written ends with the turn of a speaker, the text of which begins at `turnFrom`, if that is given. */

const ENDED = Symbol("ended");
const channel = new MessageChannel();
const resting = []; // who waits for a moment to pass, in the order of the messages sent to oneself
let engine;
let readings;
let tokenizer;
let firstToken; // which an empty prompt stands for
let marked; // tokens that are never drawn, and where passages and words end
let dialogue; // how turns are written; null: nobody speaks in the training text
let writing = 0; // counts what reads and writes the text
let explaining = 0; // counts explanations

/** Tasks that tell what they find, by `hear`, before they answer. */
const tellingTasks = {
  /** Read a text: {event: "token", place, id, bits, start} tells of each of its tokens the surprise in bits, and the
   * first token of the window in which it was predicted. The first token of all is not predicted: NaN bits.
   * False if it was ended. @param {Text} text @param {Iterable<string>} off */
  async read(hear, text, off) {
    const mine = ++writing;
    const found = await inMoments(readText(text, off), { isOver: () => mine !== writing, hear });
    return found !== ENDED;
  },

  /** Write after a text until so many tokens are written ("length"), the model ends the text ("ended"), the turn is over
   * ("turn") or another task comes ("stopped"); each token is told of as in `read`.
   * @param {Text} text @param {Iterable<string>} off */
  async write(hear, text, count, settings, off) {
    const mine = ++writing;
    explaining++;
    const steps = writeText(text, count, settings, off);
    const reason = await inMoments(steps, { isOver: () => mine !== writing, hear });
    return reason === ENDED ? "stopped" : reason;
  },

  /** Why `token` is likely after a window, or not: {logit, probability, parts, heads, words}, as writer.explain in
   * Python; `words` by the index in `ids`. What is found so far comes as {event: "explained"} with some of these names,
   * first all but heads and words. Null if it was ended. */
  async explain(hear, ids, token, off) {
    const mine = ++explaining;
    const steps = explainWindow(ids, token, off);
    const found = await inMoments(steps, { isOver: () => mine !== explaining, hear });
    return found === ENDED ? null : found;
  },
};

const tasks = {
  open(model, weights) {
    engine = new Engine(model.config, readWeights(weights));
    readings = new ReadingCache(engine);
    tokenizer = new Tokenizer(model.tokenizer);
    firstToken = model.firstToken;
    marked = markedOf(model);
    dialogue = model.dialogue && new Dialogue(model.dialogue);
  },

  /** End what is written and explained. */
  stop() {
    writing++;
    explaining++;
  },

  /** As `explain`, for scripts: nothing ends it. */
  explainWhole: (ids, token, off) => inMoments(explainWindow(ids, token, off)),

  /** The tokens that the model writes after a prompt, for scripts: it ends nothing, and nothing ends it. */
  async generate(prompt, count, settings, off) {
    const ids = tokenizer.encode(prompt);
    const text = ids.length ? { ids } : { ids: [firstToken], hidden: 1 };
    const written = [];
    const hear = ({ id }) => written.push(id);
    const reason = await inMoments(writeText(text, count, settings, off), { hear });
    return reason === "ended" ? written.slice(0, -1) : written;
  },

  /** The logits after each token, for scripts. */
  async allLogits(ids, off) {
    const reading = await inMoments(readWith(ids, off));
    return ids.map((_, t) => reading.logits(t));
  },

  // What inside.js shows of a window, the last row of which predicts.
  logits: (ids, off) => shown(lastLogits, ids, off),
  overview: (ids, off) => shown(overview, ids, off),
  rows: (ids, off) => shown(lastRows, ids, off),
  attention: (ids, layer, head, off) => shown(headAttention, ids, off, layer, head),
  thumbnails: (ids, off) => shown(thumbnails, ids, off),
  query: (ids, layer, head, off) => shown(lastQuery, ids, off, layer, head),
  feedForward: (ids, layer, off) => shown(firingUnits, ids, off, layer),
  norms: (ids, off) => shown(streamNorms, ids, off),
  lens: async (ids, count, off, following) => inMoments(await shown(lens, ids, off, count, following)),

  // Of the model alone.
  headScores: () => inMoments(headScores(engine)),
  nearest: (token, count) => nearestTokens(engine, token, count),
};

onmessage = async ({ data: { id, name, args } }) => {
  const hear = (found) => postMessage({ ...found, question: id });
  try {
    const result = await (name in tellingTasks ? tellingTasks[name](hear, ...args) : tasks[name](...args));
    postMessage({ id, result });
  } catch (error) {
    const { name, message, values } = error;
    postMessage({ id, error: { name, message, values } });
  }
};

/** Run the steps of a generator, with a moment for messages after each; ENDED if it is over before its last one. */
async function inMoments(steps, { isOver = () => false, hear = () => {} } = {}) {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    if (value !== undefined) hear(value);
    await moment();
    if (isOver()) return ENDED;
  }
}

/** A moment in which messages are received. */
function moment() {
  return new Promise((resolve) => {
    resting.push(resolve);
    channel.port2.postMessage(null);
  });
}
channel.port1.onmessage = () => resting.shift()();

/** The steps of reading a window; they return the reading. @param {Iterable<string>} [off] */
function readWith(ids, off) {
  return readings.read(ids, new Set(off));
}

/** What one of the views of inside.js shows of a window. */
async function shown(view, ids, off, ...rest) {
  const reading = await inMoments(readWith(ids, off));
  return view(reading, ids.length, ...rest);
}

/** The steps of reading a text: each token of it is told of. */
function* readText({ ids, starts: known = [], from = 0 }, off) {
  const { atOnce, config } = engine;
  const starts = windowsOf(ids, known, config.context_length);
  if (from === 0 && ids.length > 0) yield { event: "token", place: 0, id: ids[0], bits: NaN, start: 0 };

  for (let place = Math.max(1, from); place < ids.length; ) {
    // Those that are predicted in the same window, as many as are read at once.
    const start = starts[place];
    let end = place + 1;
    while (end < ids.length && starts[end] === start && end < place + atOnce) end++;

    const reading = yield* readWith(ids.slice(start, end - 1), off);
    for (; place < end; place++) {
      const bits = surprise(reading.logits(place - start - 1), ids[place]);
      yield { event: "token", place, id: ids[place], bits, start };
    }
  }
}

/** The steps of writing. */
function* writeText({ hidden = 0, turnFrom = null, ...text }, count, settings, off) {
  const { context_length } = engine.config;
  const ids = text.ids.slice();
  let start = nextWindow(text, context_length);

  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const characters = (id) => decoder.decode(tokenizer.bytes(id), { stream: true });
  let turn = turnFrom === null ? "" : ids.slice(turnFrom).map(characters).join("");

  for (let i = 0; i < count; i++) {
    const place = ids.length;
    const reading = yield* readWith(ids.slice(start), off);
    const logits = reading.logits(place - start - 1);

    const number = dieNumber(settings.seed, place, ids);
    const id = drawn(logits, settings, ids.slice(hidden), number, marked);
    yield { event: "token", place, id, bits: surprise(logits, id), start };
    if (id === tokenizer.end) return "ended";

    turn += characters(id);
    if (turnFrom !== null && dialogue.stopIn(turn) >= 0) return "turn";

    ids.push(id);
    start = movedWindow(start, ids.length, context_length);
  }
  return "length";
}

/** The steps of explaining; all that was found comes at the end. */
function* explainWindow(ids, token, off) {
  const reading = yield* readWith(ids, off);
  const all = { heads: {}, words: {} };

  for (const found of explainToken(reading, ids.length, token)) {
    const { heads, words, ...rest } = found ?? {};
    Object.assign(all, rest);
    Object.assign(all.heads, heads);
    Object.assign(all.words, words);
    yield found && { event: "explained", ...found };
  }
  return all;
}

/** -log2 of the probability of a token. */
function surprise(logits, token) {
  return -logProbability(logits, token) / Math.LN2;
}
