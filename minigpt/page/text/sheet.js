// The sheet: a textarea, and below it the same text in the same type, a span a token, tinted by how much the token
// surprised the model or by what a view wants to show in it. The letters that are seen are those of the spans.

import { byId, fill, h } from "../../web/dom.js";
import { say } from "../../web/strings.js";
import { model, tokenizer } from "../core/client.js";
import { beginningOf, sheetText, startsOnSheet, unknownCharacters } from "../core/sheet_tokens.js";
import { state, subject } from "../core/state.js";
import { firstUnread, READ } from "../core/writing.js";
import { addLook, drawLooks, followingEnd, tokenElement } from "./spans.js";

const ON_BOTH_SIDES = READ / 2; // spans around a token that is far from the end
const MOST_SPANS = READ + 1000; // as the text grows, before the first ones become plain text
const LONG = 20_000; // characters: of a longer text the textarea waits until it is written

const paper = byId("paper"); // it scrolls
export const area = byId("text");
const layer = byId("tokens");
const head = byId("text-head");
const notes = byId("notes");

let shown = { text: null, first: 0, last: 0, spans: [], before: "", isAtEnd: true };
let inArea = { text: state.text, count: 0 }; // what the textarea holds: so many tokens of a text
const sheetEnd = followingEnd(paper, layer);

addLook("sheet", {
  layer,
  room: byId("page-of-text"),
  hand: area,
  paper,
  draw: drawTokens,
  tokenElement: (index) => shown.spans[index - shown.first],
});

/** Bring the end of the text into sight, and keep it there while it grows. */
export function showEnd() {
  sheetEnd.show();
}

/** The text that the textarea holds: while a text is written, its beginning. */
export function textInArea() {
  const { text, count } = inArea;
  return text.ids.length === count ? text : beginningOf(text, count);
}

/** Draw what is new in the text, and the tints. */
export function drawTokens() {
  const { text } = state;
  if (shown.text !== text || isFarFromShown()) layOut(text);
  for (let i = shown.last; i < text.ids.length && shown.isAtEnd; i++) append(text, i);
  if (shown.spans.length > MOST_SPANS) layOut(text);

  drawLooks(layer, shown.spans);
  drawHead();
  drawNotes(text);

  layer.ariaBusy = String(state.busy || firstUnread(text) < text.ids.length);
  if (!state.busy || inArea.text !== text || startsOnSheet(text).at(-1) < LONG) fillArea();
  if (state.busy) sheetEnd.follow();
}

/** Whether the chosen token has no span. */
function isFarFromShown() {
  const { chosen, text } = state;
  if (chosen === null) return shown.last < text.ids.length && !shown.isAtEnd;
  return chosen < shown.first || (chosen >= shown.last && !shown.isAtEnd);
}

/** Put spans around what is looked at, and the rest of the text before and after them. Spans that are there already
 * stay. */
function layOut(text) {
  const n = text.ids.length;
  const centre = state.chosen === null || state.chosen > n - READ ? n : state.chosen;
  const first = firstOfLine(text, centre === n ? n - READ : centre - ON_BOTH_SIDES);
  const last = centre === n ? n : Math.min(n, centre + ON_BOTH_SIDES);

  const before = text.pieces.slice(0, first).join("");
  const after = text.pieces.slice(last).join("");

  let same = 0;
  if (shown.text && shown.first === first && shown.before === before && shown.isAtEnd && last === n) {
    const { ids, pieces, origin } = shown.text;
    const isSame = (i) => ids[i] === text.ids[i] && pieces[i] === text.pieces[i] && origin[i] === text.origin[i];
    while (first + same < shown.last && first + same < n && isSame(first + same)) same++;
  }

  const kept = shown.spans.slice(0, same);
  shown = { text, first, last: first + same, spans: kept, before, isAtEnd: last === n };
  for (const old of [...layer.children].slice(kept.length ? kept.length + (before ? 1 : 0) : 0)) old.remove();
  if (kept.length === 0 && before) {
    // A block of its own, if a line ends there: the browser lays it out once.
    layer.append(h(before.endsWith("\n") ? "div" : "span", { className: "far" }, before));
  }
  for (let i = shown.last; i < last; i++) append(text, i);
  if (after) layer.append(h("span", { className: "far" }, after));
  layer.append(h("span", { className: "end" }, "\u200b")); // the line behind a last line end
}

/** The first token of a line, at this token or a little before it. */
function firstOfLine(text, at) {
  if (at <= 0) return 0;
  for (let i = at; i > at - 300 && i > 0; i--) if (text.pieces[i - 1].endsWith("\n")) return i;
  return at;
}

function append(text, i) {
  const piece = text.pieces[i];
  const kind = text.origin[i] === "written" ? "written" : "typed";
  const className = piece.startsWith("\n") ? `${kind} line-end` : kind;
  const span = h("span", { className, "data-index": i }, piece);
  span.index = i;
  shown.spans.push(span);
  shown.last = i + 1;

  const end = layer.lastElementChild;
  if (end?.className === "end") end.before(span);
  else layer.append(span);
}

/** What the tints mean. */
function drawHead() {
  const { look } = state;
  const kind = state.tints ? "attention" : "surprise";
  const key = `${look} ${kind}`;
  if (head.dataset.drawn === key) return;

  head.dataset.drawn = key;
  const scale = h("span", { className: `scale ${kind}` });
  const typed = h("span", { className: "typed" }, ...say("sheet.typed"));
  const written = h("span", { className: "written" }, ...say("sheet.written"));
  const origins = look === "sheet" ? [...say("sheet.origins", { typed, written }), " "] : [];
  fill(head, h("span", {}, origins, say(`sheet.${kind}`, { scale })));
}

/** What the model does not see of the text, and whether the text has ended. */
function drawNotes(text) {
  const { start } = subject().window;
  const hasEnded = text.ids.length > text.hidden && text.ids.at(-1) === tokenizer.end;
  const key = `${start} ${hasEnded} ${state.busy}`;
  if (notes.drawnText === text && notes.dataset.drawn === key) return;

  notes.drawnText = text;
  notes.dataset.drawn = key;
  const lines = [];
  const unknown = state.busy ? [] : unknownCharacters(text);
  if (unknown.length) lines.push(say("sheet.unknown", { characters: unknown.join(" ") }));
  if (start > 0) lines.push(say("sheet.outOfSight", { n: String(model.config.context_length) }));
  if (!state.busy && hasEnded) lines.push(say("sheet.ended"));
  fill(
    notes,
    lines.map((line) => h("p", {}, line)),
  );
}

/** Put the text into the textarea; the selection in it stays where it is. */
export function fillArea() {
  const { text } = state;
  if (inArea.text === text && inArea.count === text.ids.length) return;

  const value = sheetText(text);
  if (area.value !== value) {
    const { selectionStart, selectionEnd, value: before } = area;
    const isAtEnd = selectionStart === before.length;
    if (value.startsWith(before)) {
      area.setRangeText(value.slice(before.length), before.length, before.length, "preserve");
    } else {
      area.value = value;
    }

    if (isAtEnd) area.setSelectionRange(value.length, value.length);
    else area.setSelectionRange(selectionStart, selectionEnd);
  }
  inArea = { text, count: text.ids.length };
}

/** Put the caret before a token, and bring that into sight. */
export function caretTo(index) {
  const at = startsOnSheet(state.text)[index];
  area.setSelectionRange(at, at);
  tokenElement(index)?.scrollIntoView({ block: "nearest" });
}
