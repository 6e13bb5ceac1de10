// Between what stands on the sheet and tokens. On the sheet, every token is what it adds to the text; the end of a
// text is a mark, a carriage return another one (a textarea would drop it). What the model has no token for stays
// on the sheet, behind the token before it, and the model does not see it.

import { nextWindow, windowsOf } from "../model/window.js";
import { dialogue, firstToken, model, tokenizer } from "./client.js";
import { emptyText } from "./state.js";

const END_MARK = "∎";
const RETURN_MARK = "␍";
const SPEAKER_MARK = "▸"; // the token before a turn, of a model that has one
const starts = new WeakMap(); // text -> where each of its tokens starts on the sheet

/** What stands on the sheet. */
export function sheetText(text) {
  return text.pieces.join("");
}

/** What a token adds to the sheet. */
export function onSheet(id, piece) {
  if (id === tokenizer.end) return END_MARK;
  return isSpeaker(id) ? SPEAKER_MARK : piece.replaceAll("\r", RETURN_MARK);
}

function isSpeaker(id) {
  return tokenizer.speaker !== null && id === tokenizer.speaker;
}

/** What can be read of a text: without the marks of the sheet. */
export function readable(onSheet) {
  return withoutSpeakers(onSheet).replaceAll(END_MARK, "").replaceAll(RETURN_MARK, "\r");
}

function withoutSpeakers(onSheet) {
  return tokenizer.speaker === null ? onSheet : onSheet.replaceAll(SPEAKER_MARK, "");
}

/** What is shown of a character that the last tokens have begun and not finished. */
export function unfinished(text) {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  for (const id of text.ids.slice(-4)) decoder.decode(tokenizer.bytes(id), { stream: true });
  return decoder.decode();
}

/** Where on the sheet each token starts, and where the last one ends. */
export function startsOnSheet(text) {
  if (!starts.has(text)) starts.set(text, [0]);

  const found = starts.get(text);
  for (let i = found.length - 1; i < text.pieces.length; i++) found.push(found[i] + text.pieces[i].length);
  return found;
}

/** The token that has a character of the sheet; null behind the last one. */
export function tokenAt(text, offset) {
  const found = startsOnSheet(text);
  if (offset >= found.at(-1)) return null;

  let low = 0;
  let high = text.pieces.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (found[middle] <= offset) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The characters of a text that the model has no token for, each once. */
export function unknownCharacters(text) {
  if (tokenizer.knowsAll) return [];

  const characters = new Set(readable(sheetText(text)));
  return [...characters].filter((character) => !tokenizer.knows(character));
}

/** The tokens of what stands on a sheet, what each adds to it, and what stands before the first one. */
export function tokensOf(shown, isInTurn = false) {
  const found = { ids: [], pieces: [], before: "" };

  // The tokens before turns are put where the model has them, whatever marks stand there.
  for (const part of withoutSpeakers(shown)
    .split(END_MARK)
    .flatMap((part, i) => (i ? [END_MARK, part] : [part]))) {
    if (part === END_MARK) {
      found.ids.push(tokenizer.end);
      found.pieces.push(END_MARK);
      continue;
    }

    for (const { characters, isKnown } of stretches(part.replaceAll(RETURN_MARK, "\r"))) {
      if (isKnown) {
        const ids = tokenizer.encode(characters, { isInTurn: isInTurn && found.ids.length === 0 });
        const pieces = tokenizer.pieces(ids);
        ids.forEach((id, i) => {
          found.ids.push(id);
          found.pieces.push(onSheet(id, pieces[i]));
        });
      } else if (found.pieces.length) {
        found.pieces[found.pieces.length - 1] += characters;
      } else {
        found.before += characters;
      }
    }
  }
  return found;
}

/** A text in pieces that the model knows and pieces that it does not. */
function stretches(text) {
  if (tokenizer.knowsAll) return [{ characters: text, isKnown: true }];

  const found = [];
  for (const character of text) {
    const isKnown = tokenizer.knows(character);
    if (found.at(-1)?.isKnown === isKnown) found.at(-1).characters += character;
    else found.push({ characters: character, isKnown });
  }
  return found;
}

/** A new version of a text, the sheet of which reads `value` after an edit. Tokens before and after the words that were
 * edited stay as they are, and so does who they are from; of the first ones, also what the model said. */
export function edited(text, value) {
  const old = sheetText(text);
  const { first, last, from, to } = wordsEdited(text, old, value);
  const before = text.ids[first - 1];
  const isInTurn = first > 0 && before !== tokenizer.end && before !== tokenizer.endOfTurn;
  const found = tokensOf(value.slice(from, to), isInTurn);

  const next = emptyText();
  next.hidden = first > 0 ? text.hidden : 0;
  next.ids = [...text.ids.slice(0, first), ...found.ids, ...text.ids.slice(last)];
  next.pieces = [...text.pieces.slice(0, first), ...found.pieces, ...text.pieces.slice(last)];
  hideBeginning(next);

  if (first > 0) next.pieces[first - 1] += found.before;
  else next.pieces[0] = found.before + next.pieces[0];

  next.origin = originAfter(next, text, old, sheetText(next));
  keepPredictions(next, text);
  return next;
}

/** A new version of a text, which reads otherwise: what the model sees no more, and then `seen`, with exactly the tokens
 * that it has alone. Where it is as before, what the model said stays. */
export function retyped(text, unseen, seen) {
  const alone = tokensOf(seen);
  let all = tokensOf(unseen + seen);
  if (String(all.ids.slice(all.ids.length - alone.ids.length)) !== String(alone.ids)) {
    const before = tokensOf(unseen);
    all = { ids: [...before.ids, ...alone.ids], pieces: [...before.pieces, ...alone.pieces], before: before.before };
  }

  const next = { ...emptyText(), ids: all.ids, pieces: all.pieces };
  hideBeginning(next);
  next.pieces[0] = all.before + next.pieces[0];
  next.origin = originAfter(next, text, sheetText(text), sheetText(next));
  const same = keepPredictions(next, text);

  // What is new is predicted in the window of what follows.
  const n = next.ids.length;
  const size = model.config.context_length;
  const start = next.hidden ? 0 : n - alone.ids.length;
  for (let place = Math.max(same, start + 1); place < Math.min(n, start + size + 1); place++)
    next.starts[place] = start;
  next.nextStart = Math.max(start, n - size);
  return next;
}

/** A text without tokens begins with a hidden one. */
function hideBeginning(text) {
  if (text.ids.length > 0) return;

  text.hidden = 1;
  text.ids = [firstToken];
  text.pieces = [""];
}

/** A text without what is written behind the end of its last turn, the text of which begins at the token `from`. */
export function cutAfterTurn(text, from) {
  const found = startsOnSheet(text);
  const shown = sheetText(text);
  const end = found[from] + dialogue.stopIn(shown.slice(found[from])) + dialogue.end.length;
  if (end >= shown.length) return text;

  let kept = from;
  while (found[kept + 1] <= end) kept++;
  const cut = beginningOf(text, kept);
  return found[kept] < end ? edited(cut, shown.slice(0, end)) : cut;
}

/** Which words an edit has touched: tokens `first` to `last` of the old text are now the characters `from` to `to`. */
function wordsEdited(text, old, value) {
  const { same, end } = whatIsSame(old, value);
  const found = startsOnSheet(text);
  const n = text.ids.length;

  let first = tokenAt(text, same) ?? n;
  while (
    first > 0 &&
    !(found[first] <= same && isBetweenWords(old, found[first]) && isBetweenWords(value, found[first]))
  ) {
    first--;
  }
  while (first > 0 && found[first - 1] === found[first]) first--; // pieces of a character that was never finished
  if (first <= text.hidden) first = 0;

  const lastStart = old.length - end;
  let last = tokenAt(text, lastStart) ?? n;
  while (last < n && !(found[last] > lastStart && isBetweenWords(old, found[last]))) last++;
  if (end === 0 && lastStart < old.length) last = n; // the end was replaced, with a character that was never finished
  last = Math.max(first, last);

  return { first, last, from: first > 0 ? found[first] : 0, to: value.length - (old.length - found[last]) };
}

/** How many characters two strings have in common at the beginning, and then at the end. */
export function whatIsSame(a, b) {
  const shorter = Math.min(a.length, b.length);
  let same = 0;
  while (same < shorter && a[same] === b[same]) same++;

  let end = 0;
  while (end < shorter - same && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  return { same, end };
}

/** Whether tokenizers surely cut a text at this character: what is before it has the same tokens without what follows. */
function isBetweenWords(text, at) {
  if (at === 0 || tokenizer.data.kind === "char") return true;
  if (text[at - 1] === END_MARK || text[at] === END_MARK) return true;
  if (text[at - 1] === SPEAKER_MARK) return false; // it belongs to what follows
  return text[at] === " " && /\S/.test(text[at - 1]) && /\S/.test(text[at + 1] ?? " ");
}

/** Who each token of an edited text is from: it is written if all its characters were. */
function originAfter(next, text, old, value) {
  const { same, end } = whatIsSame(old, value);
  const oldStarts = startsOnSheet(text);
  const found = startsOnSheet(next);
  const isWritten = new Uint8Array(old.length);
  text.origin.forEach((origin, i) => {
    if (origin === "written") isWritten.fill(1, oldStarts[i], oldStarts[i + 1]);
  });

  const wasWritten = (at) => {
    if (at < same) return isWritten[at];
    return at >= value.length - end && isWritten[at - value.length + old.length];
  };

  const origin = [];
  for (let i = next.ids.length - 1; i >= 0; i--) {
    let isAll = found[i] < found[i + 1];
    for (let at = found[i]; at < found[i + 1] && isAll; at++) isAll = Boolean(wasWritten(at));
    const isOnlyPart = found[i] === found[i + 1]; // of a character that the next token completes
    if (isOnlyPart) isAll = i >= next.hidden && origin.at(-1) === "written";
    origin.push(isAll ? "written" : "typed");
  }
  return origin.reverse();
}

/** What the model said of the tokens before the first one that has changed stays; returns how many there are. */
function keepPredictions(next, text) {
  const n = next.ids.length;
  let same = 0;
  if (next.hidden === text.hidden) while (same < n && next.ids[same] === text.ids[same]) same++;

  const size = model.config.context_length;
  next.starts = windowsOf(next.ids, text.starts.slice(0, same), size);
  for (let i = 0; i < n; i++) {
    next.bits.push(i < same ? text.bits[i] : NaN);
    next.draws.push(i < same ? text.draws[i] : null);
  }
  next.readBy = text.readBy;
  return same;
}

/** A text that begins with the first `n` tokens of another one. */
export function beginningOf(text, n) {
  const start = { ...emptyText(), hidden: Math.min(text.hidden, n), readBy: text.readBy };
  if (n === text.ids.length) start.nextStart = text.nextStart;
  else if (text.draws[n]) start.nextStart = text.starts[n]; // in which the token behind them was drawn
  for (const name of ["ids", "pieces", "origin", "bits", "starts", "draws"]) start[name] = text[name].slice(0, n);

  // The bytes of a character that the last tokens have begun.
  start.decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  for (const id of start.ids.slice(-4)) start.decoder.decode(tokenizer.bytes(id), { stream: true });
  return start;
}

/** Add a token to a text. */
export function addToken(text, id, origin, { bits = NaN, start = null, draw = null } = {}) {
  text.starts.push(start ?? nextWindow(text, model.config.context_length));
  text.ids.push(id);
  text.origin.push(origin);
  text.bits.push(bits);
  text.draws.push(draw);
  text.nextStart = null;
  text.pieces.push(onSheet(id, text.decoder.decode(tokenizer.bytes(id), { stream: true })));
}
