// The hand on the sheet: what is typed, and which token is chosen with the caret, the mouse or a finger.

import { button } from "../../web/dom.js";
import { string } from "../../web/strings.js";
import { readable, sheetText, startsOnSheet, tokenAt } from "../core/sheet_tokens.js";
import { changed, onChange, state } from "../core/state.js";
import { redoLast, stop, typeText, undoLast, write } from "../core/writing.js";
import { area, caretTo, fillArea, showEnd, textInArea } from "./sheet.js";
import { tokenAtPoint } from "./spans.js";

let caret = { start: 0, end: 0 }; // where it was put last, by the page or by a hand that the page has seen
let chosenHere = null; // the token that the caret has chosen
let isPressed = false;
let isComposing = false;

export function makeTyping() {
  area.addEventListener("input", onInput);
  area.addEventListener("keydown", onKey);
  area.addEventListener("focus", fillArea);
  area.addEventListener("copy", onCopy);
  area.addEventListener("cut", onCopy);
  area.addEventListener("compositionstart", () => (isComposing = true));
  area.addEventListener("compositionend", () => {
    isComposing = false;
    onInput();
  });

  area.addEventListener("pointerdown", onPress);
  area.addEventListener("click", onClick);
  document.addEventListener("pointercancel", () => (isPressed = false));
  document.addEventListener("selectionchange", onCaret);
  area.addEventListener("blur", () => (area.inputMode = ""));
  onChange(followChoice);
}

/** The text reads otherwise than before. */
function onInput() {
  typeText(area.value, textInArea());
  if (isComposing) return;

  // The sheet may show it otherwise: in composed characters, say.
  const fromEnd = area.value.length - area.selectionEnd;
  const value = sheetText(state.text);
  if (area.value !== value) {
    area.value = value;
    area.setSelectionRange(value.length - fromEnd, value.length - fromEnd);
  }
  fillArea();
  chooseAtCaret();
}

function onKey(event) {
  fillArea();
  const isControl = event.ctrlKey || event.metaKey;
  const key = event.key.toLowerCase();

  if (isControl && key === "enter") {
    event.preventDefault();
    if (state.busy) stop();
    else startWriting();
  } else if (isControl && key === "z") {
    event.preventDefault();
    if (event.shiftKey) redoLast();
    else undoLast();
  } else if (isControl && key === "y") {
    event.preventDefault();
    redoLast();
  } else if (event.altKey && (key === "arrowleft" || key === "arrowright")) {
    event.preventDefault();
    step(key === "arrowleft" ? -1 : 1);
  }
}

/** The marks of the sheet stay on the sheet. */
function onCopy(event) {
  const { selectionStart, selectionEnd, value } = area;
  if (selectionStart === selectionEnd) return;

  event.preventDefault();
  event.clipboardData.setData("text/plain", readable(value.slice(selectionStart, selectionEnd)));
  if (event.type === "cut") document.execCommand("delete");
}

/** Write on at the end of the text, which comes into sight. */
export function startWriting() {
  showEnd();
  return write();
}

/** Choose the token before or after the chosen one. */
export function step(by) {
  const { text, chosen } = state;
  const n = text.ids.length;
  const to = Math.max(text.hidden, (chosen ?? n) + by);
  state.anchor = null;
  state.chosen = to < n ? to : null;
  leaveWhole();
  changed();
}

function onPress(event) {
  isPressed = true;
  // A tap chooses a token; the keyboard of a phone comes when it is asked for.
  if (event.pointerType === "touch" && document.activeElement !== area) area.inputMode = "none";
}

function onClick(event) {
  isPressed = false;
  const { selectionStart, selectionEnd } = area;
  caret = { start: selectionStart, end: selectionEnd };
  const hit = selectionStart === selectionEnd ? tokenAtPoint(event.clientX, event.clientY) : null;
  if (hit === null) chooseAtCaret();
  else choose(hit, null);
  leaveWhole();
}

/** A token is asked about: a view of the whole model gives way to the answer. */
export function leaveWhole() {
  if (state.chosen === null || state.view !== "learned") return;

  state.followsChoice = true;
  changed();
}

/** The caret has moved: by a key, or because the page has put it somewhere. */
function onCaret() {
  if (document.activeElement !== area || isPressed || isComposing) return;
  if (area.selectionStart === caret.start && area.selectionEnd === caret.end) return;
  chooseAtCaret();
}

/** The caret chooses the token that follows it, a selection all of its tokens, the end of the text none. */
function chooseAtCaret() {
  const { selectionStart, selectionEnd } = area;
  const text = textInArea();
  caret = { start: selectionStart, end: selectionEnd };

  if (selectionStart === selectionEnd) return choose(tokenAt(text, selectionStart), null);
  const anchor = tokenAt(text, selectionStart);
  const last = tokenAt(text, selectionEnd - 1);
  return choose(last, anchor === last ? null : anchor);
}

function choose(index, anchor) {
  chosenHere = index;
  if (state.chosen === index && state.anchor === anchor) return;

  Object.assign(state, { chosen: index, anchor });
  changed();
}

/** The caret goes to a token that was chosen elsewhere: in a view, by a button. */
function followChoice() {
  const { chosen, text } = state;
  if (chosen === chosenHere) return;

  chosenHere = chosen;
  if (isComposing) return;

  const at = startsOnSheet(text)[chosen ?? text.ids.length];
  caret = { start: at, end: at };
  if (chosen === null) area.setSelectionRange(at, at);
  else caretTo(chosen);
}

/** For a phone: brings its keyboard. */
export function typeButton() {
  const type = () => {
    area.inputMode = "text";
    area.focus();
  };
  return button(string("sheet.type"), type, { id: "type" });
}
