// The page: wires text, settings and views together, and the few names for scripts in `window.minigpt`.

import { string } from "../../web/strings.js";
import { ask, encodeText, explainText, ready, tokenizer } from "../core/client.js";
import { bringBack, keep, makeKeeping } from "../core/keep.js";
import { beginWith, readLink } from "../core/link.js";
import { drawSettings, makeSettings } from "../core/settings.js";
import { changed, onChange, state, subject, windowOf } from "../core/state.js";
import { beginTalk } from "../core/talking.js";
import { generate, shownText, typeText } from "../core/writing.js";
import { drawControls, makeControls } from "../text/controls.js";
import { drawTokens } from "../text/sheet.js";
import { drawTalk, makeTalk } from "../text/talk.js";
import { makeTip } from "../text/tip.js";
import { makeTyping, startWriting } from "../text/typing.js";
import { makeBottomSheet } from "./bottom_sheet.js";
import { makeHeader } from "./header.js";
import { firstOpening, makeOpenings, playOpening } from "./opening.js";
import { drawPanel, makePanels, waitForWriting } from "./panel.js";
import { makeTour } from "./tour.js";

/** For scripts: `await minigpt.ready`, then these. */
window.minigpt = {
  ready,
  generate,
  /** The logits after each token of a text, or of token ids: an array of Float32Arrays. */
  logits: async (text) => ask("allLogits", typeof text === "string" ? encodeText(text) : text),
  explain: explainText,
  encode: encodeText,
  decode: (ids) => tokenizer.decode(ids),
  text: () => shownText(),
  now: whatIsShown,
};

/** What the page is about at this moment; `starts` has an entry for the next token, too. */
function whatIsShown() {
  const { text, chosen, question, view, settings, off, busy } = state;
  const { ids, origin, hidden } = text;
  const starts = [...ids.keys(), ids.length].map((place) => windowOf(place).start);
  return structuredClone({ ids, origin, starts, hidden, chosen, question, view, settings, off: [...off], busy });
}

/** A text that nobody has asked for: the first opening, which is written on so that it can be watched. */
function openFirst() {
  state.followsChoice = true;
  beginWith(firstOpening);
  playOpening();
}

/** Write on from an opening. */
function writeOpening(opening) {
  if (state.look === "talk") return beginTalk(opening);
  typeText(opening);
  return startWriting();
}

function tellProblem({ message }) {
  if (state.problem === message) return;
  state.problem = message;
  changed();
}

function makePage() {
  makeTyping();
  makeTalk();
  makeTip();
  makeControls();
  makeOpenings(writeOpening);
  makeSettings();
  makePanels();
  makeBottomSheet();
  makeHeader(makeTour());

  let wasBusy = false;

  onChange(() => {
    if (state.followsChoice) state.view = subject().question === "why" ? "why" : "draw";
    drawTokens();
    drawTalk();
    drawControls();
    drawSettings();
    // While a text streams, the views wait.
    const isStreaming = state.busy && state.chosen === null;
    if (isStreaming) waitForWriting();
    else if (state.text.ids.length) drawPanel().catch(tellProblem);
    if (wasBusy && !state.busy) keep();
    wasBusy = state.busy;
  });
}

function start() {
  makePage();
  makeKeeping();
  if (bringBack()) state.status = string("writing.stillHere");
  else if (!readLink()) openFirst();
  changed();

  let left = false; // whether it was writing when the tab was left
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && left) state.status = string("writing.back");
    left = document.hidden && state.busy;
    changed();
  });
  window.addEventListener("hashchange", readLink);
}

start();
