// The page: wires text, settings and views together, and the few names for scripts in `window.minigpt`.

import { button, fill, h, whatIsThis } from "../basics/dom.js";
import { ask, explainText, ready, tokenizer } from "../text/client.js";
import { copy, keep, kept, link, readLink, savePicture } from "../text/link.js";
import { drawSettings, makeSettings } from "../text/settings.js";
import { drawTokens } from "../text/sheet.js";
import { changed, onChange, state } from "../text/state.js";
import { again, generate, setPrompt, show, shownText, stop, undo, write } from "../text/writing.js";
import { makeBottomSheet } from "./bottom_sheet.js";
import { makeHeader } from "./header.js";
import { firstOpening, makeOpenings } from "./opening.js";
import { drawPanel, makePanels } from "./panel.js";

const $ = (id) => document.getElementById(id);
let typed; // the timer of a prompt that is being typed

/** For scripts: `await minigpt.ready`, then these. */
window.minigpt = {
  ready,
  generate,
  /** The logits after each token of a text, or of token ids: an array of Float32Arrays. */
  logits: async (text) => ask("allLogits", typeof text === "string" ? tokenizer.encode(text) : text),
  explain: explainText,
  encode: (text) => tokenizer.encode(text),
  decode: (ids) => tokenizer.decode(ids),
  text: () => shownText(),
};

const buttons = {
  write: button("Write", () => startWriting(), { className: "main" }),
  stop: button("Stop", stop),
  more: button("Continue", () => write()),
  again: button("Again, another seed", again),
  undo: button("Undo", () => (undo(), showPrompt())),
  edit: button("Edit all of it", () => (($("prompt").value = shownText()), $("prompt").focus(), prompted())),
};

function showPrompt() {
  const { text } = state;
  $("prompt").value = tokenizer.decode(text.ids.slice(text.hidden, text.prompt));
}

/** Read the prompt when it has not been typed on for a moment. */
function prompted() {
  clearTimeout(typed);
  typed = setTimeout(() => ((typed = null), setPrompt($("prompt").value)), 300);
}

async function startWriting() {
  const pending =
    typed || tokenizer.decode(state.text.ids.slice(state.text.hidden, state.text.prompt)) !== $("prompt").value;
  clearTimeout(typed);
  typed = null;
  if (pending && !(await setPrompt($("prompt").value))) return;
  await write(state.text.prompt);
}

/** Write on from an opening. */
async function begin(opening) {
  $("prompt").value = opening;
  await startWriting();
}

function drawControls() {
  const { text, busy } = state;
  const isWritten = text.ids.length > text.prompt;
  buttons.stop.disabled = !busy;
  buttons.more.disabled = busy || !isWritten;
  buttons.again.disabled = buttons.undo.disabled = busy || !text.parent;
  for (const id of ["status", "speed", "problem"]) if ($(id).textContent !== state[id]) $(id).textContent = state[id];
  $("tokens").ariaBusy = String(busy);
  $("texts").hidden = state.texts.length === 0;
  if (busy) return;
  const items = state.texts.map((written, i) => {
    const end = written.pieces.slice(written.prompt).join("").replace(/\s+/g, " ").trim();
    const label = `${end.slice(0, 60) || "nothing written"}${end.length > 60 ? "…" : ""}`;
    const item = button(label, () => (show(written), showPrompt()), { "data-key": `text-${i}` });
    if (written === text) item.ariaCurrent = "true";
    return h("li", {}, item);
  });
  fill($("texts").querySelector("ol"), items);
}

function tellProblem({ message }) {
  if (state.problem === message) return;
  state.problem = message;
  changed();
}

function makePage() {
  makeHeader();
  makeOpenings(begin);
  $("buttons").append(...Object.values(buttons));
  const meaning =
    "Each token is as dark as it surprised the model: the less likely, the darker (in bits, −log2 of its probability). " +
    "Your own words, bold, are measured too. Choose a token, and the views show what happened there.";
  $("text-foot").before(whatIsThis(meaning));

  $("text-foot").append(
    button("Copy text", () => copy(shownText())),
    button("Copy link", () => copy(link($("prompt").value))),
    button("Save SVG", () => savePicture($("tokens"), "minigpt-text", "svg")),
    button("Save PNG", () => savePicture($("tokens"), "minigpt-text", "png")),
  );

  $("prompt").addEventListener("input", prompted);
  makeSettings();
  $("settings").open = innerWidth > 900; // on a phone the views come first
  makePanels();
  makeBottomSheet();

  let wasBusy = false;

  onChange(() => {
    drawTokens();
    drawControls();
    drawSettings();
    // While a text streams, the views wait; the alternatives of what is hovered do not.
    const isStreaming = state.busy && state.hovered === null && state.chosen === null;
    if (!isStreaming && state.text.ids.length) drawPanel().catch(tellProblem);
    if (wasBusy && !state.busy) keep();
    wasBusy = state.busy;
  });
}

async function start() {
  makePage();

  const before = kept();
  const fromLink = readLink();
  if (before) {
    Object.assign(state.settings, before.settings);
    state.status = "Your text is still here.";
  }

  $("prompt").value = before?.text ?? fromLink ?? firstOpening;
  await setPrompt($("prompt").value);

  for (const leaving of ["freeze", "pagehide"]) window.addEventListener(leaving, keep, true);

  let left = false; // whether it was writing when the tab was left
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) keep();
    else if (left) state.status = "Nothing was lost while this tab was away.";
    left = document.hidden && state.busy;
    changed();
  });

  window.addEventListener("hashchange", async () => {
    const prompt = readLink();
    if (prompt !== null) $("prompt").value = prompt;
    await setPrompt($("prompt").value);
  });
}

start();
