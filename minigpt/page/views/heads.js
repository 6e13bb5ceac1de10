// The heads: what each does, if that is known, and the view that switches them off for the whole page. It compares the
// model without them with the whole one, for this token.

import { button, fill, h, inGrid, lastAsked, roving } from "../../web/dom.js";
import { say, string } from "../../web/strings.js";
import { number } from "../../web/units.js";
import { chance, divergence, fact, largest, largestFirst, percent, probabilities } from "../basics/numbers.js";
import { ask, model } from "../core/client.js";
import { allHeadsOn, changed, headNumber, offNames, state, subject, switchHead } from "../core/state.js";
import { rewrite, tokenName } from "../core/writing.js";
import { bar, barHeads, rowName } from "./bars.js";

const COMPARED = 8;
const NAMED = 0.25; // a head is named after what takes at least this share of its attention

let isMeasured = false; // whether somebody has asked what the heads do
let headScores = null; // by layer and head, once that is known

export const headsView = {
  id: "heads",
  make(panel) {
    const sentence = h("p", { className: "sentence" });
    const switches = makeSwitches();
    const allOn = button(string("heads.allOn"), allHeadsOn);
    const again = button(string("heads.rewrite"), rewrite);

    const compared = h("div");
    panel.append(
      sentence,
      h("p", {}, string("heads.what")),
      h("div", { className: "scroll" }, switches),
      h("p", { className: "row" }, again, allOn),
      compared,
    );

    const asking = lastAsked();
    return async () => {
      measureHeads();
      drawSwitches(switches);
      allOn.disabled = state.off.size === 0;
      again.disabled = state.off.size === 0;

      const about = subject();
      const { ids } = about.window;
      const isLast = asking();
      if (ids.length === 0) {
        compared.replaceChildren();
        return fill(sentence, say("heads.first"));
      }

      const [whole, less] = await Promise.all([ask("logits", ids, []), ask("logits", ids, headsOff())]);
      if (!isLast()) return;

      const chances = { whole: probabilities(whole), less: probabilities(less) };
      fill(sentence, headsSentence(chances, about));
      fill(compared, comparedBars(chances, about));
    };
  },
};

function makeSwitches() {
  const { num_layers, num_heads } = model.config;
  const switches = h("div", {
    className: "switches",
    role: "group",
    "aria-label": string("heads.switches"),
    "--columns": num_heads,
  });

  for (let layer = 0; layer < num_layers; layer++) {
    for (let at = 0; at < num_heads; at++) {
      const key = `${layer}.${at}`;
      const toggle = () => {
        Object.assign(state.focus, { layer, head: at, follows: false });
        switchHead(layer, at);
      };
      switches.append(button(headNumber(layer, at), toggle, { tabIndex: layer + at ? -1 : 0, "data-head": key }));
    }
  }

  roving(switches, "button", (key, at) => inGrid(key, at, num_heads));
  switches.addEventListener("focusin", (event) => {
    for (const item of switches.children) item.tabIndex = item === event.target ? 0 : -1;
  });
  return switches;
}

function drawSwitches(switches) {
  for (const item of switches.children) {
    const key = item.dataset.head;
    const [layer, at] = key.split(".").map(Number);
    const name = headName(layer, at);
    item.ariaPressed = String(!state.off.has(key));
    item.title = name;
    item.ariaLabel = [string("heads.head"), item.textContent, name].filter(Boolean).join(" ");
  }
}

/** What the heads that are off do to this token. */
function headsSentence({ whole, less }, { place, row, token }) {
  const { num_layers, num_heads } = model.config;
  const said = token ?? whole.indexOf(largest(whole));
  const bits = divergence(whole, less);

  const words = {
    before: rowName(row),
    token: tokenName(said),
    all: num_layers * num_heads,
    off: offNames(),
    whole: chance("whole", whole[said], { place, token: said }),
    less: chance("probability", less[said], { place, token: said }),
    divergence: fact("divergence", bits, { place }, `${number(bits, 2)} ${string("heads.bits")}`),
  };
  if (state.off.size === 0) return say("heads.allAreOn", words);
  return say(state.off.size === 1 ? "heads.oneIsOff" : "heads.someAreOff", words);
}

/** The likeliest tokens of both. */
function comparedBars({ whole, less }, { place, token }) {
  const together = whole.map((p, id) => p + less[id]);
  const shown = largestFirst(together).slice(0, COMPARED);
  if (token !== undefined && !shown.includes(token)) shown[shown.length - 1] = token;
  const most = Math.max(...shown.map((id) => Math.max(whole[id], less[id])));

  const [all, without] = [string("heads.whole"), string("heads.less")];
  const items = shown.map((id) => {
    const figures = [
      [all, chance("whole", whole[id], { place, token: id })],
      [without, chance("probability", less[id], { place, token: id })],
    ];
    const className = id === token ? "bar taken" : "bar";
    return bar("li", { id, outline: whole[id], filled: less[id], most }, figures, { className });
  });
  return [barHeads(all, without), h("ol", { className: "bars" }, items)];
}

// What heads do

/** What a head does on random tokens that come twice, and how much of its attention; empty if nothing stands out. */
export function headName(layer, head) {
  const best = bestScore(layer, head);
  return best ? string("headNames.tested", { role: headRole(layer, head), share: percent(best[1]) }) : "";
}

/** The same without the score. */
export function headRole(layer, head) {
  const best = bestScore(layer, head);
  return best ? string(`headNames.${best[0]}`) : "";
}

/** Measure the heads, if that has not been done; the page is drawn again then. */
export function measureHeads() {
  if (isMeasured) return;

  isMeasured = true;
  const keep = (scores) => {
    headScores = scores;
    changed();
  };
  // Without names the heads have their numbers alone.
  ask("headScores").then(keep, () => {});
}

function bestScore(layer, head) {
  if (headScores === null) return null;

  const scores = Object.entries(headScores[layer][head]);
  const best = scores.reduce((a, b) => (b[1] > a[1] ? b : a));
  return best[1] >= NAMED ? best : null;
}
