// One turn of the talk as an element: the name and the words, each token in a span of its own, which can be chosen; and
// the same turn while it is being said otherwise.

import { button, h } from "../../web/dom.js";
import { string } from "../../web/strings.js";
import { tokenizer } from "./client.js";
import { isSaid } from "./turns.js";

/** @typedef {import("./turns.js").TextTurn} TextTurn
 * @typedef {{element: Element, name: Element, words: Element, turn: TextTurn, text: object, spans: Element[]}} ShownTurn */

/** The element of a turn of a text. What was `shown` in its place grows, if that is enough. `edit` begins to say it
 * otherwise. @param {ShownTurn?} shown @param {TextTurn} turn @returns {ShownTurn} */
export function showTurn(shown, text, turn, edit) {
  const isSame = shown && startsAlike(shown, text, turn);
  const found = isSame ? shown : emptyTurn(turn, edit);
  for (let i = turn.first + found.spans.length; i < turn.end; i++) {
    const span = tokenSpan(text, turn, i);
    found.spans.push(span);
    (i < turn.said ? found.name : found.words).append(span);
  }
  return Object.assign(found, { text, turn });
}

/** Whether a turn begins with all that is shown of it. */
function startsAlike({ text: before, turn: old, spans }, text, turn) {
  if (old.first !== turn.first || old.said !== turn.said || old.speaker !== turn.speaker) return false;
  if (old.over < old.end && (old.over !== turn.over || old.end !== turn.end)) return false; // it goes on behind its end
  if (old.end > turn.end) return false;

  const isSame = (i) => ["ids", "pieces", "origin"].every((name) => before[name][i] === text[name][i]);
  return before === text || spans.every((_, i) => isSame(old.first + i));
}

function emptyTurn({ speaker }, edit) {
  const name = h("span", { className: "name" }, speaker === null ? string("talk.nameless") : "");
  const label = { "aria-label": string("talk.editOf", { speaker: speaker ?? string("talk.nameless") }) };
  const head = h(
    "div",
    { className: "turn-head" },
    name,
    button(string("talk.edit"), edit, { className: "edit", ...label }),
  );
  const words = h("div", { className: "words" });
  return { element: h("div", { className: "turn" }, head, words), name, words, spans: [] };
}

function tokenSpan(text, turn, i) {
  const piece = text.pieces[i];
  const isBeginning = text.pieces.slice(turn.said, i + 1).every((before) => !isSaid(before));
  const isAround = i < turn.said || i >= turn.over || isBeginning;
  const isMark = !isSaid(piece) && (isAround || piece.trim() !== ""); // a line end inside a turn is none
  const origin = text.origin[i] === "written" ? "written" : "typed";
  const className = isMark ? `${origin} token-mark` : origin;
  const span = h("span", { className, "data-index": i }, isMark ? markOf(text.ids[i], piece) : piece);
  span.index = i;
  return span;
}

/** What is seen of a token in which nothing can be read. */
function markOf(id, piece) {
  return piece.trim() === "" ? tokenizer.visible(id) : piece;
}

/** The form in which a turn is said otherwise. */
export function turnForm(speaker, said, { save, cancel }) {
  const words = h("textarea", { value: said, rows: 2, "aria-label": string("talk.editOf", { speaker }) });
  const buttons = [
    h("button", { type: "submit", className: "main" }, string("talk.save")),
    button(string("talk.cancel"), cancel),
  ];
  const onsubmit = (event) => {
    event.preventDefault();
    save(words.value);
  };
  const form = h("form", { className: "turn editing", onsubmit }, h("b", {}, speaker), words);
  form.append(h("div", { className: "row" }, buttons));

  words.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    } else if (event.key === "Escape") {
      event.preventDefault();
      cancel();
    }
  });
  return { form, words };
}
