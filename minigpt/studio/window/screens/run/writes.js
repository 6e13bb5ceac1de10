// What it writes now: always from the same beginning with the same die. Words that are not in the text of the person
// are underlined.

import { fill, h } from "../../../../web/dom.js";
import { string } from "../../../../web/strings.js";
import { number } from "../../../../web/units.js";
import { ACTIVE } from "../../basics/runs.js";
import { makeChildhood } from "./childhood.js";
import { makeNonsense } from "./nonsense.js";
import { momentOf } from "./words.js";

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
    title.textContent = string(titleOf(record.run, childhood.isNow()));
    if (row === drawn) return;
    drawn = row;
    if (row === undefined) {
      fill(text, string("learning.noText"));
      return;
    }

    const begun = h("b", {}, row.beginning);
    fill(text, begun, ...marked(row.text.slice(row.beginning.length), row.unknown ?? []));
    words.textContent = wordsOf(row);
    moment.textContent = string("learning.sameDie", { moment: momentOf(row) });
  }

  return { element, draw, shown: childhood.shown };
}

/** What the text that is shown is: of now, of the end, or of a moment before. */
function titleOf(run, isNewest) {
  if (!isNewest) return "learning.wrote";
  return ACTIVE.includes(run.state) ? "learning.writes" : "learning.wroteLast";
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
