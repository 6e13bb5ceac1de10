// What is done to texts: type, write, write from here, again, take an alternative, stop. Each makes a new version.

import { h } from "../../web/dom.js";
import { string } from "../../web/strings.js";
import { number } from "../../web/units.js";
import { ask, askAndHear, ready, tokenizer, visibleToken } from "./client.js";
import { SETTINGS, seedFrom } from "./settings.js";
import { addToken, beginningOf, cutAfterTurn, edited, readable, sheetText, unfinished } from "./sheet_tokens.js";
import { changed, give, headsOff, offKey, onChange, settingsWith, state } from "./state.js";
import { turnGoingOn } from "./turns.js";
import { addTyped, addVersion, redo, replaceVersion, takeAway, undo, visit } from "./versions.js";

export const READ = 3000; // tokens at the end of a long text whose surprise is measured
let reading = null; // the text that the model is reading, for its surprise
let stopped = null; // the text whose writing was stopped

/** What of a text can be read. */
export function shownText(text = state.text) {
  return readable(sheetText(text)) + unfinished(text);
}

/** A token in a sentence. */
export function tokenName(id) {
  return h("b", { className: "token" }, visibleToken(id));
}

/** The sheet was edited and reads `value` now; `base` is what it read before. */
export function typeText(value, base = state.text) {
  if (value === sheetText(base)) return;

  leaveWriting();
  sayNothing();
  state.problem = "";
  addTyped(edited(base, value));
}

/** Write after the first `kept` tokens of a text, or after `token` in the place behind them; if `isTurn`, until that of
 * the speaker is over. `isNew` says that `from` is a version of its own, also if nothing is written. */
export async function write(options = {}) {
  const { from = state.text, kept = from.ids.length, token = null, isNew = token !== null } = options;
  const { count = state.settings.maxNewTokens, pace = state.pace, isTurn = state.look === "talk" } = options;
  leaveWriting();

  const text = beginningOf(from, kept);
  if (token !== null) addToken(text, token, "typed");
  text.begun = text.ids.length;
  addVersion(text);

  const draw = { settings: { ...state.settings }, given: state.given, off: headsOff() };
  Object.assign(state, { busy: true, writing: text, status: string("writing.now"), problem: "", speed: "" });
  const isEnd = token === tokenizer.end;
  const turnFrom = isTurn ? turnGoingOn(text) : null;
  const reason = await writeOn(text, isEnd ? 0 : count, { draw, pace, turnFrom });
  const whole = reason === "turn" ? endTurn(text, turnFrom) : text;
  finish(whole, isEnd ? "takenEnd" : reason, isNew);
}

/** Have the model write so many tokens after a text; returns why it ended. */
async function writeOn(text, count, { draw, pace, turnFrom }) {
  const { settings, off } = draw;
  let first = 0; // when the first token came

  const hear = ({ id, bits, start }) => {
    if (first === 0) first = performance.now();
    addToken(text, id, "written", { bits, start, draw });
    const written = text.ids.length - text.begun - 1;
    const seconds = (performance.now() - first) / 1000;
    if (written > 4 && pace === 0) state.speed = string("writing.speed", { n: number(written / seconds) });
    changed();
  };
  const next = (n) => askAndHear(hear, "write", { ...plain(text), turnFrom }, n, settings, off);

  try {
    await ready;
    if (pace === 0 || count === 0) return await next(count);

    for (let i = 0; i < count; i++) {
      const reason = await next(1);
      if (reason !== "length") return reason;
      await new Promise((resolve) => setTimeout(resolve, state.pace || pace));
      if (state.writing !== text || stopped === text) return "stopped";
    }
    return "length";
  } catch (error) {
    state.problem = error.message;
    return "failed";
  }
}

/** What the page says when a text has been written, or as much of it as there will be. */
function finish(text, reason, isNew) {
  const count = text.ids.length - text.begun;
  if (count === 0 && !isNew) takeAway(text);
  if (state.writing !== text) return changed(); // something else is being done already

  const written = string(count === 1 ? "writing.one" : "writing.many", { n: number(count) });
  const why = { ended: "ended", stopped: "stopped", takenEnd: "takenEnd", turn: "turnOver" }[reason];
  Object.assign(state, { busy: false, writing: null, status: why ? string(`writing.${why}`, { written }) : written });
  changed();
}

/** A turn is over: what is written behind its end is cut off. */
function endTurn(text, from) {
  const cut = cutAfterTurn(text, from);
  if (cut === text) return text;

  cut.begun = text.begun;
  replaceVersion(text, cut);
  if (state.text === text) state.text = cut;
  if (state.writing === text) state.writing = cut;
  return cut;
}

/** Something else is done: what is being written stays as it is. */
export function leaveWriting() {
  if (!state.busy) return;

  Object.assign(state, { busy: false, writing: null, status: "", speed: "" });
  ask("stop");
}

/** What was said is about another text. */
export function sayNothing() {
  Object.assign(state, { status: "", speed: "" });
}

/** Stop at once; what is written stays. */
export async function stop() {
  stopped = state.writing;
  await ask("stop");
}

/** Write on after the chosen token, in place of what follows it. */
export function writeFromHere() {
  const { chosen, text } = state;
  return write(chosen === null ? {} : { kept: Math.max(chosen + 1, text.hidden) });
}

/** From where on the text on view was written in one go; null if its end was not written. */
export function lastWritten(text = state.text) {
  if (text.begun !== null) return text.begun;

  let begun = text.ids.length;
  while (begun > 1 && text.origin[begun - 1] === "written") begun--;
  return begun < text.ids.length ? begun : null;
}

/** The last stretch again, with other settings than it was written with. */
export function rewrite() {
  const kept = lastWritten();
  return write(kept === null ? {} : { kept });
}

/** The last stretch again with another seed. */
export function again() {
  if (lastWritten() === null) return undefined;

  const [, largestSeed] = SETTINGS.seed;
  give({ ...state.given, seed: (state.settings.seed + 1) % (largestSeed + 1) });
  return rewrite();
}

/** Go on from an alternative token at a place. */
export function branch(place, token) {
  return write({ kept: place, token });
}

/** Look at another version. */
export function lookAt(text) {
  leaveWriting();
  sayNothing();
  visit(text);
}

/** Back to the version before. */
export function undoLast() {
  leaveWriting();
  sayNothing();
  undo();
}

/** Forward to the version that was undone. */
export function redoLast() {
  leaveWriting();
  sayNothing();
  redo();
}

/** What the worker needs of a text. */
function plain({ ids, hidden, starts, origin, nextStart }) {
  return { ids, hidden, starts, origin, nextStart };
}

// The model reads what is on view as soon as nothing is written, so that the surprise of every token is known.
// With other heads off every number is another.
onChange(() => {
  const { text } = state;
  const key = offKey();

  if (text.readBy !== undefined && text.readBy !== key) {
    text.bits.fill(NaN);
    leaveWriting();
  }
  text.readBy = key;

  const isAsked = text.unread === key || (reading?.text === text && reading.by === key);
  if (!state.busy && !isAsked && firstUnread(text) < text.ids.length) readText(text, key);
});

/** The first token whose surprise is to be measured. */
export function firstUnread(text) {
  const { bits } = text;
  let place = Math.max(1, bits.length - READ);
  while (place < bits.length && !Number.isNaN(bits[place])) place++;
  return place;
}

async function readText(text, key) {
  const mine = { text, by: key };
  reading = mine;

  const hear = ({ place, bits }) => {
    if (text.readBy !== key || place >= text.ids.length) return;
    text.bits[place] = bits;
    changed();
  };

  try {
    await ready;
    const unread = { ...plain(text), from: firstUnread(text) };
    await askAndHear(hear, "read", unread, headsOff());
  } catch (error) {
    state.problem = error.message;
    text.unread = key; // it is not asked again
  }
  if (reading === mine) reading = null;
  changed();
}

/** A prompt and what the model writes after it, for scripts: with the settings of a page at its start, but for those that
 * are given. What is on view is not touched, and writing goes on. */
export async function generate(prompt, { off = [], ...options } = {}) {
  await ready;
  const settings = settingsWith(options);
  settings.seed = seedFrom(settings.seed);
  const written = await ask("generate", prompt, settings.maxNewTokens, settings, off);
  return prompt + tokenizer.decode(written);
}
