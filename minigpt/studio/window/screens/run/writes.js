// What it writes now: always from the same beginning with the same die. Words that are not in the text of the person
// are underlined. A slider goes back to its first text; whoever looks back is left alone: newer texts do not move it.

import { button, fill, h } from "../../../../web/dom.js";
import { string } from "../../../../web/strings.js";
import { number } from "../../../../web/units.js";
import { ACTIVE, momentOf } from "../../basics/words.js";

const PLAY = 20; // seconds from birth to now
const CALM = 8; // texts that are shown where somebody wants less movement
const WORD = /\p{L}+(?:['’]\p{L}+)*/gu;

/** The card with the text and its childhood; `chosen()` is called when another text is shown. */
export function makeWrites(record, chosen) {
  const childhood = makeChildhood(record, () => {
    draw();
    chosen();
  });
  const title = h("h2");
  const text = h("p", { className: "written", lang: "", tabIndex: 0 });
  const words = h("p", { className: "quiet words" });
  const moment = h("p", { className: "quiet moment" });
  const element = h(
    "section",
    { className: "writes card" },
    title,
    text,
    words,
    childhood.element,
    moment,
    makeNonsense(),
  );
  let drawn = null; // the text that is on the screen

  function draw() {
    childhood.draw();
    const row = childhood.shown();
    const isActive = ACTIVE.includes(record.run.state);
    title.textContent = string(titleOf(isActive, childhood.isNow()));
    if (row !== undefined) moment.textContent = string("learning.sameDie", { moment: momentOf(row, record.run) });
    if (row === undefined) text.textContent = string(isActive ? "learning.noText" : "learning.noTexts");
    if (row === drawn) return;
    drawn = row;
    if (row === undefined) return;

    const begun = h("b", {}, row.beginning);
    fill(text, begun, ...marked(row.text.slice(row.beginning.length), row.unknown ?? []));
    words.textContent = wordsOf(row);
  }

  return { element, draw, shown: childhood.shown };
}

/** What the text that is shown is: of now, of the end, or of a moment before. */
function titleOf(isActive, isNewest) {
  if (!isNewest) return "learning.wrote";
  return isActive ? "learning.writes" : "learning.wroteLast";
}

/** "31 of 40 words occur in your text." */
function wordsOf(row) {
  if (row.text.slice(row.beginning.length).trim() === "") return string("learning.onlySpace");
  if (typeof row.words !== "number") return "";
  if (row.words === 0) return string("learning.noWords");
  if (row.words === 1) return oneWord(row.known);
  if (typeof row.known !== "number") return string("learning.wordsUnknown", { words: number(row.words) });
  if (row.known === row.words) return string("learning.wordsAll", { words: number(row.words) });
  return string(row.unknown ? "learning.words" : "learning.wordsNoMark", {
    known: number(row.known),
    words: number(row.words),
  });
}

function oneWord(known) {
  if (typeof known !== "number") return string("learning.word1Unknown");
  return string(known === 1 ? "learning.word1" : "learning.word1New");
}

/** A text as nodes, the unknown words in it marked. */
function marked(text, unknown) {
  const isUnknown = new Set(unknown);
  const nodes = [];
  let end = 0;
  for (const found of text.matchAll(WORD)) {
    if (!isUnknown.has(found[0])) continue;
    nodes.push(text.slice(end, found.index), h("span", { className: "unknown" }, found[0]));
    end = found.index + found[0].length;
  }
  return [...nodes, text.slice(end)];
}

/** The slider over the texts of a run; `choose()` is called when another one is to be shown. */
function makeChildhood(record, choose) {
  let looksBack = false; // else the newest text is shown
  let at = 0; // which text is shown
  let last = 0; // the newest text of which the slider knows
  let playing = null;

  const slider = h("input", { type: "range", min: 0, max: 0, step: 1, "aria-label": string("learning.childhood") });
  const play = button(string("learning.play"), () => (playing === null ? begin() : end()));
  const birth = button(string("learning.birth"), () => move(0));
  const now = button(string("learning.now"), () => move(record.samples.length - 1));
  const newer = h("p", { className: "quiet newer" });
  const line = h("div", { className: "childhood" }, birth, slider, now, play);
  const element = h("div", {}, line, newer);

  slider.addEventListener("input", () => move(Number(slider.value)));

  function move(to) {
    end();
    show(to);
  }

  function show(to) {
    looksBack = to < last || (playing !== null && to < record.samples.length - 1);
    at = to;
    choose();
  }

  function begin() {
    last = record.samples.length - 1;
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const shown = isCalm ? Math.min(CALM, last + 1) : last + 1;
    let i = 0;
    playing = setInterval(step, (1000 * PLAY) / shown);
    play.textContent = string("learning.stopPlaying");
    step();

    function step() {
      if (i >= shown) return end();
      show(Math.round((last * i) / Math.max(shown - 1, 1)));
      i += 1;
    }
  }

  function end() {
    if (playing === null) return;
    clearInterval(playing);
    playing = null;
    play.textContent = string("learning.play");
    draw();
  }

  function draw() {
    const newest = record.samples.length - 1;
    if (!looksBack) {
      last = Math.max(newest, 0);
      at = last;
    }
    at = Math.min(at, Math.max(newest, 0)); // a training that went back has fewer
    last = Math.min(last, Math.max(newest, 0));

    slider.max = last;
    slider.value = at;
    slider.setAttribute("aria-valuetext", newest < 0 ? "" : momentOf(record.samples[at], record.run));
    element.hidden = newest < 1;
    const missed = looksBack && playing === null ? newest - last : 0;
    newer.textContent = missed > 0 ? string(missed === 1 ? "learning.newer1" : "learning.newer", { n: missed }) : "";
  }

  return {
    element,
    draw,

    /** The text that is shown; undefined before the first one. */
    shown: () => record.samples[at],

    isNow: () => !looksBack,
  };
}

/** Why what a small model writes makes little sense. */
export function makeNonsense() {
  return h(
    "details",
    { className: "nonsense" },
    h("summary", {}, string("nonsense.title")),
    h("p", {}, string("nonsense.learns")),
    h("p", {}, string("nonsense.little")),
  );
}
