// What is done in a talk: say something, let somebody speak, say an earlier turn otherwise, begin anew. What was said so
// far is the text on view; each of these makes a new version of it, and `writing.js` writes the answer.

import { cleanText } from "../model/dialogue.js";
import { dialogue, model } from "./client.js";
import { retyped, tokensOf } from "./sheet_tokens.js";
import { changed, state } from "./state.js";
import { talkText, turnsOf } from "./turns.js";
import { addVersion } from "./versions.js";
import { leaveWriting, sayNothing, write } from "./writing.js";

/** Who answers. */
export function answerer() {
  return state.answerer ?? dialogue.usualAnswerer(talkText(state.text));
}

/** As whom one speaks. */
export function asker() {
  const other = answerer();
  if (state.asker !== null && state.asker !== other) return state.asker;
  return dialogue.askerOf(saidSoFar(), other);
}

/** Speak as somebody; if that is who answers, another one does. */
export function speakAs(speaker) {
  if (answerer() === speaker) state.answerer = dialogue.mostFrequent([speaker]);
  else state.answerer = answerer();
  state.asker = speaker;
  changed();
}

/** Let somebody answer. */
export function letAnswer(speaker) {
  state.asker = asker() === speaker ? null : asker();
  state.answerer = speaker;
  changed();
}

/** The turns so far as the model reads them, without those in which nothing is said.
 * @returns {import("../model/dialogue.js").Turn[]} */
function saidSoFar(turns = turnsOf(state.text)) {
  const said = turns.map(({ speaker, text }) => ({ speaker: speaker ?? nameless(), text: cleanText(text) }));
  return said.filter(({ text }) => text);
}

/** Whose turn a text is that begins without a name. */
function nameless() {
  return dialogue.askerOf([], answerer());
}

/** Who speaks if nothing is typed: the one who answers or, after that one, the other. */
export function nextSpeaker() {
  const last = saidSoFar().at(-1);
  return last?.speaker === answerer() ? asker() : answerer();
}

/** Say something and have it answered. A line that begins with a speaker's name is that one's turn. If nothing is typed,
 * the next one speaks. */
export function sayTurn(typed, options = {}) {
  const speaker = typed.trim() ? answerer() : nextSpeaker();
  const turns = dialogue.added(saidSoFar(), typed, { answerer: answerer(), asker: asker() });
  return speak(turns, speaker, options);
}

/** Have the next turn written, as a speaker. */
function speak(turns, speaker, options = {}) {
  state.answerer = answerer();
  const contextLength = model.config.context_length;
  const { maxNewTokens } = state.settings;
  const count = (text) => tokensOf(text).ids.length;
  const first = dialogue.firstInSight(turns, speaker, count, { contextLength, maxNewTokens });

  const unseen = dialogue.write(turns.slice(0, first));
  const seen = dialogue.write(turns.slice(first)) + dialogue.opening(speaker);
  const from = retyped(state.text, unseen, seen);
  return write({ from, isNew: true, ...options });
}

/** A new talk that begins with what a text says. */
export function beginTalk(text) {
  const turns = dialogue.added([], text, { answerer: answerer() });
  state.answerer = dialogue.usualAnswerer(text);
  return speak(turns, state.answerer);
}

/** Say a turn otherwise. What followed it is left to the version before; if it is not the answerer's, it is answered. */
export function sayOtherwise(index, typed) {
  const turns = turnsOf(state.text);
  const speaker = turns[index].speaker ?? nameless();
  const before = saidSoFar(turns.slice(0, index));
  const said = dialogue.added(before, typed, { answerer: answerer(), asker: speaker });
  if (said.length > before.length && said.at(-1).speaker !== answerer()) return speak(said, answerer());

  return leaveIt(said);
}

/** Forget all that was said; Undo brings it back. */
export function newTalk() {
  state.answerer = answerer();
  return leaveIt([]);
}

/** The talk consists of these turns now, and nobody answers. */
function leaveIt(turns) {
  leaveWriting();
  sayNothing();
  addVersion(retyped(state.text, "", dialogue.write(turns)), state.text);
}
