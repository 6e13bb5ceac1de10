// The talk: the text on view as turns with their speakers, each word of which can be chosen, and a line to say
// something. The same text as on the sheet, shown otherwise.

import { button, byId, fill, h } from "../../web/dom.js";
import { say, string } from "../../web/strings.js";
import { dialogue, tokenizer } from "../core/client.js";
import { changed, state, subject } from "../core/state.js";
import { answerer, asker, letAnswer, newTalk, nextSpeaker, sayOtherwise, sayTurn, speakAs } from "../core/talking.js";
import { isOver, isSaid, turnsOf } from "../core/turns.js";
import { READ, redoLast, undoLast, write } from "../core/writing.js";
import { cleanText } from "../model/dialogue.js";
import { addLook, drawLooks, followingEnd, tokenAtPoint } from "./spans.js";
import { leaveWhole, step } from "./typing.js";

const log = h("div", { id: "turns", role: "log", "aria-live": "off", "aria-label": string("talk.log"), tabIndex: 0 });
const manner = h("p", { className: "manner" }, string("talk.manner"));
const room = h("div", { id: "turns-room" }, manner, log);
const scroller = h("div", { id: "turns-paper" }, room);
const heard = h("p", { className: "unseen", role: "status" }); // an answer, once it is whole
const left = h("p", { className: "left-line" }, string("talk.left"));
const farText = h("p", { className: "far" });
const nothing = h("p", { className: "nothing" }, string("talk.nothing"));
const goOn = button(string("talk.goOn"), () => act(() => write()), { className: "go-on" });
const line = h("textarea", { id: "line", rows: 1, autocomplete: "off" });
const send = h("button", { type: "submit", id: "send", className: "main" });
const chooseAsker = h("select", { id: "asker" });
const chooseAnswerer = h("select", { id: "answerer" });
const fresh = button(string("talk.new"), () => act(newTalk), { id: "new-talk", title: string("talk.newHelp") });

let shownTurns = []; // what is shown of each turn that is not far from the end
let spans = []; // by the token's index
let editing = null; // {text, index, form} of the turn that is being said otherwise
const talkEnd = followingEnd(scroller, log);
let wasAnswering = false;

/** Show the text as a talk. Nothing happens where nobody speaks. */
export function makeTalk() {
  document.documentElement.dataset.look = state.look;
  if (!dialogue) return;

  byId("look").append(lookSwitch());
  byId("talk").append(
    scroller,
    heard,
    h("form", { id: "say", onsubmit: onSend }, roles(), h("div", { className: "line-row" }, line, send)),
  );
  byId("buttons").append(fresh);
  addLook("talk", {
    layer: log,
    room,
    hand: log,
    paper: scroller,
    draw: drawTalk,
    tokenElement: (index) => spans[index],
  });

  log.addEventListener("click", onLogClick);
  log.addEventListener("keydown", onLogKey);
  line.addEventListener("keydown", onLineKey);
  line.addEventListener("input", () => drawLine());
}

/** The switch between both looks of the text. */
function lookSwitch() {
  const choose = (name) => {
    state.look = name;
    changed();
  };
  const choices = ["talk", "sheet"].map((name) =>
    button(string(`look.${name}`), () => choose(name), { id: `look-${name}`, title: string(`look.${name}Help`) }),
  );
  return h("div", { className: "switch", role: "group", "aria-label": string("look.switch") }, choices);
}

/** As whom one speaks, and who answers. */
function roles() {
  const choice = (select, name, choose) => {
    select.addEventListener("change", () => choose(select.value));
    return h("label", {}, ...say(name, { speaker: select }));
  };
  const all = [choice(chooseAsker, "talk.speaksAs", speakAs), choice(chooseAnswerer, "talk.answers", letAnswer)];
  return h("div", { className: "row roles" }, all);
}

// What is done

function onSend(event) {
  event.preventDefault();
  const typed = line.value;
  line.value = "";
  act(() => sayTurn(typed));
}

/** Do something after which the end of the talk is looked at. */
function act(what) {
  Object.assign(state, { chosen: null, anchor: null, problem: "" });
  what();
  talkEnd.show();
  changed();
}

function onLineKey(event) {
  const isControl = event.ctrlKey || event.metaKey;
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    byId("say").requestSubmit();
  } else if (isControl && event.key.toLowerCase() === "z" && line.value === "") {
    event.preventDefault();
    if (event.shiftKey) redoLast();
    else undoLast();
  }
}

function onLogKey(event) {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (event.target !== log || by === undefined || event.ctrlKey || event.metaKey) return;

  event.preventDefault();
  step(by);
}

function onLogClick({ target, clientX, clientY }) {
  if (target.closest("button, textarea") || !getSelection().isCollapsed) return;

  const index = tokenAtPoint(clientX, clientY);
  Object.assign(state, { chosen: index, anchor: null });
  leaveWhole();
  changed();
}

// What is seen

/** Draw what is new of the talk. */
export function drawTalk() {
  const isTalk = state.look === "talk";
  document.documentElement.dataset.look = state.look;
  byId("talk").hidden = !isTalk;
  if (!dialogue) return;

  for (const name of ["talk", "sheet"]) byId(`look-${name}`).ariaPressed = String(state.look === name);
  fresh.hidden = !isTalk;
  if (!isTalk) return;

  drawTurns();
  drawRoles();
  drawLine();
  tellAnswer();
  talkEnd.follow();
}

function drawTurns() {
  const { text, chosen } = state;
  if (editing && editing.text !== text) editing = null;

  // Of a long talk the first turns are plain text.
  const turns = turnsOf(text);
  const last = text.ids.length - READ;
  const isNear = ({ end }) => end > last || (chosen !== null && end > chosen);
  const far = Math.max(0, turns.findIndex(isNear));

  const before = shownTurns;
  shownTurns = [];
  for (let i = far; i < turns.length; i++) shownTurns[i] = showTurn(before[i], text, turns[i], () => beginEdit(i));
  spans = [];
  for (const { spans: some } of Object.values(shownTurns)) for (const span of some) spans[span.index] = span;

  putInLog(turns, far);
  drawLooks(log, Object.values(spans));
  log.ariaBusy = String(state.busy);
}

/** The elements of the log: the turns, what marks those that have left, and what can be done with the last one. */
function putInLog(turns, far) {
  const { text, busy } = state;
  const { start } = subject().window;
  const elements = [];
  if (far > 0) elements.push(farTurns(turns.slice(0, far)));

  const firstInSight = turns.findIndex(({ end }) => end > start);
  for (let i = far; i < turns.length; i++) {
    const { element } = shownTurns[i];
    element.classList.toggle("mine", (turns[i].speaker ?? asker()) === asker());
    if (i === firstInSight && i > 0) elements.push(left);
    elements.push(editing?.index === i ? editing.form : element);
  }

  const last = turns.at(-1);
  const isUnfinished = last !== undefined && !busy && editing === null && !isOver(text, last);
  const isWritten = last !== undefined && (last.over === last.said || text.origin[last.over - 1] === "written");
  if (turns.length === 0) elements.push(nothing);
  if (isUnfinished && isWritten) elements.push(goOn);

  elements.forEach((element, i) => {
    if (log.children[i] !== element) log.insertBefore(element, log.children[i] ?? null);
  });
  while (log.children.length > elements.length) log.lastElementChild.remove();
}

/** The first turns of a long talk. */
function farTurns(turns) {
  farText.textContent = state.text.pieces.slice(0, turns.at(-1).end).join("");
  return farText;
}

function beginEdit(index) {
  const { speaker, text } = turnsOf(state.text)[index];
  const cancel = () => {
    editing = null;
    changed();
  };
  const save = (typed) => {
    editing = null;
    act(() => sayOtherwise(index, typed));
    line.focus();
  };
  const { form, words } = turnForm(speaker ?? asker(), cleanText(text), { save, cancel });
  editing = { text: state.text, index, form };
  drawTurns();
  words.focus();
}

// The line

/** Who can speak and answer, and who does. */
function drawRoles() {
  const { speakers } = dialogue;
  const roles = [
    [chooseAsker, asker()],
    [chooseAnswerer, answerer()],
  ];
  for (const [select, speaker] of roles) {
    const names = speakers.includes(speaker) ? speakers : [...speakers, speaker];
    if (select.options.length !== names.length) fill(select, ...names.map((name) => h("option", {}, name)));
    select.value = speaker;
  }
}

function drawLine() {
  line.placeholder = string("talk.placeholder");
  line.ariaLabel = string("talk.lineOf", { speaker: asker() });
  const label = line.value.trim() ? string("talk.send") : string("talk.letSpeak", { speaker: nextSpeaker() });
  if (send.textContent !== label) send.textContent = label;

  line.style.height = "auto";
  line.style.height = `${line.scrollHeight + 2}px`;
}

/** Whoever hears the page hears an answer when it is whole. */
function tellAnswer() {
  if (wasAnswering && !state.busy) {
    const { speaker, text } = turnsOf(state.text).at(-1) ?? {};
    heard.textContent = speaker ? string("talk.heard", { speaker, said: cleanText(text) }) : "";
  }
  wasAnswering = state.busy;
}

// A turn: the name and the words, each token in a span of its own; and the same turn while it is being said otherwise

/** @typedef {import("../core/turns.js").TextTurn} TextTurn
 * @typedef {{element: Element, name: Element, words: Element, turn: TextTurn, text: object, spans: Element[]}} ShownTurn */

/** The element of a turn of a text. What was `shown` in its place grows, if that is enough. `edit` begins to say it
 * otherwise. @param {ShownTurn?} shown @param {TextTurn} turn @returns {ShownTurn} */
function showTurn(shown, text, turn, edit) {
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
function turnForm(speaker, said, { save, cancel }) {
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
