// The text itself, token by token: tinted by how much each surprised the model, or by what another
// view wants to show in it. A token is chosen by hovering, tapping or moving the focus.

import { fill, h, roving } from "../basics/dom.js";
import { model, tokenizer } from "./client.js";
import { changed, state } from "./state.js";
import { chosenPlace } from "./writing.js";

const MOST_BITS = 10; // as dark as it gets: less likely than one in a thousand
const LONGEST = 3000; // tokens that can be chosen; what comes before them is shown as plain text
const box = document.getElementById("tokens");
const head = document.getElementById("text-head");
let shown = { text: null, first: 0 };

let pressed = null; // where a selection by dragging begins

box.addEventListener("pointerover", ({ target, buttons, pointerType }) => {
  const index = indexOf(target);
  if (pressed === null || !buttons) return hover(pointerType === "mouse" ? index : null);
  state.anchor = pressed;
  choose(index);
});
box.addEventListener("pointerleave", () => hover(null));
box.addEventListener("focusin", (event) => choose(indexOf(event.target)));
box.addEventListener("pointerdown", (event) => {
  pressed = indexOf(event.target);
  state.anchor = state.hovered = null;
});
document.addEventListener("pointerup", () => (pressed = null));
box.addEventListener("keydown", (event) => {
  if (event.shiftKey && event.key.startsWith("Arrow")) state.anchor ??= state.chosen;
  else state.anchor = null;
});
roving(box, "[role=option]", (key, at, items) => {
  if (key === "Home") return 0;
  if (key === "End") return items.length - 1;
  if (key === "ArrowLeft" || key === "ArrowRight") return at + (key === "ArrowRight" ? 1 : -1);
  if (key !== "ArrowUp" && key !== "ArrowDown") return undefined;
  // The nearest token in the next line that has one

  const { left, top } = items[at].getBoundingClientRect();
  const rects = items.map((item) => item.getBoundingClientRect());
  const tops = rects.map((rect) => rect.top).filter((y) => (key === "ArrowUp" ? y < top - 4 : y > top + 4));
  const line = key === "ArrowUp" ? Math.max(...tops) : Math.min(...tops);
  const distances = rects.map((rect) => (Math.abs(rect.top - line) < 2 ? Math.abs(rect.left - left) : Infinity));
  return tops.length ? distances.indexOf(Math.min(...distances)) : at;
});

function indexOf(element) {
  const token = element?.closest?.("[data-index]");
  return token ? Number(token.dataset.index) : null;
}

function hover(index) {
  if (index === state.hovered) return;
  state.hovered = index;
  changed();
}

function choose(index) {
  if (index === null || index === state.chosen) return;
  state.chosen = index;
  changed();
}

/** From where to where the selection goes, [first, last]; of a single token, twice the same. */
export function selection() {
  const last = chosenPlace(true);
  const other = state.hovered === null ? (state.anchor ?? last) : last;
  return [Math.min(last, other), Math.max(last, other)];
}

/** Draw what is new in the text, and the tints. */
export function drawTokens() {
  const { text } = state;
  if (shown.text !== text) {
    shown = { text, first: Math.max(text.hidden, text.ids.length - LONGEST) };
    const before = text.pieces.slice(text.hidden, shown.first).join("");
    box.replaceChildren(...(before ? [h("span", { className: "before" }, before)] : []), nextToken());
  }

  const follows = box.scrollTop + box.clientHeight > box.scrollHeight - 40;
  drawLegend();
  const { first } = shown;

  const options = box.querySelectorAll("[role=option]");
  const next = options[options.length - 1];
  for (let i = first + options.length - 1; i < text.ids.length; i++) next.before(token(text, i));
  next.dataset.index = text.ids.length;
  if (state.busy && follows) box.scrollTop = box.scrollHeight;

  const place = chosenPlace();
  const [from, to] = selection();

  for (const option of box.querySelectorAll("[role=option]")) {
    const i = Number(option.dataset.index);
    const isChosen = i === place;
    if (option.ariaSelected !== String(isChosen)) option.ariaSelected = String(isChosen);
    const tabIndex = i === (state.chosen ?? text.ids.length) ? 0 : -1;
    if (option.tabIndex !== tabIndex) option.tabIndex = tabIndex;
    option.classList.toggle("selected", from !== to && i >= from && i <= to);
    tint(option, i);
  }
}

function nextToken() {
  return h("span", { role: "option", className: "next", tabIndex: 0, "aria-label": "the next token" }, "▏");
}

function token(text, i) {
  const piece = text.pieces[i];
  const shownPiece = text.ids[i] === tokenizer.end ? "⏹" : piece || "·";
  const kind = i < text.prompt ? "prompt" : "written";
  return h("span", { role: "option", className: kind, tabIndex: -1, "data-index": i }, shownPiece);
}

function tint(option, i) {
  const bits = state.text.bits[i];
  const strength = state.tints ? (state.tints[i] ?? 0) : bits > 0 ? Math.min(1, bits / MOST_BITS) : 0;
  const value = strength.toFixed(2);
  if (option.tinted === value && option.labelled === bits) return;
  option.tinted = value;
  option.labelled = bits;
  option.style.setProperty("--tint", value);
  if (i === state.text.ids.length) return;
  const surprise = Number.isFinite(bits) ? `, ${bits.toFixed(1)} bits of surprise` : "";
  option.ariaLabel = `${tokenizer.visible(state.text.ids[i])}${surprise}`;
}

/** What the tints of the text mean, and what is not in the model's sight. */
function drawLegend() {
  const { context_length } = model.config;
  const { ids, prompt } = state.text;
  const key = `${state.tints === null} ${prompt > context_length && ids.length}`;
  if (head.dataset.drawn === key) return;
  head.dataset.drawn = key;
  const [least, most] = state.tints ? ["not at all", "strongly"] : ["expected", "surprising"];
  const read = `· of ${ids.length.toLocaleString("en")} tokens the model read the last ${context_length}; nothing is lost`;
  const scale = [h("span", {}, least), h("span", { className: "scale" }), h("span", {}, most)];
  fill(head, scale, prompt > context_length ? h("span", {}, read) : null);
}
