// The draw: the chances of a token, what the settings make of them, and the die that falls on one. The
// logits are asked for once; moving a setting bends the strip without the model.

import { button, fill, h, lastAsked } from "../../web/dom.js";
import { say, string } from "../../web/strings.js";
import { number } from "../../web/units.js";
import { chance, entropy, fact, largest, largestFirst, probabilities } from "../basics/numbers.js";
import { ask, marked } from "../core/client.js";
import { changed, drawWith, give, headsOff, offKey, state, subject } from "../core/state.js";
import { branch, tokenName } from "../core/writing.js";
import { dieNumber, filtered, isThrownAt } from "../model/sampler.js";
import { bar, barHeads, rowName } from "./bars.js";
import { layPieces, lyingAt, makeSlowDraw } from "./die.js";

const BARS = 12;
// The settings that a draw depends on.
const OF_A_DRAW = [...Object.keys(drawWith()), "seed"];
const ofLogits = new WeakMap(); // what `byModel` has computed of them

/** The chances that logits are, and the tokens by them: computed once, as both outlast a change of the settings. */
function byModel(logits) {
  if (!ofLogits.has(logits)) {
    const before = probabilities(logits);
    ofLogits.set(logits, { before, likeliest: largestFirst(before) });
  }
  return ofLogits.get(logits);
}

/** What the settings in sight make of logits, and where the die falls. */
export function drawHere(logits, place) {
  const { text, settings } = state;
  const { before, likeliest } = byModel(logits);
  const kept = filtered(logits, settings, text.ids.slice(text.hidden, place), marked);
  const after = probabilities(kept);

  const order = largestFirst(kept); // the order on the strip
  const isThrown = isThrownAt(settings.temperature);
  const die = isThrown ? dieNumber(settings.seed, place, text.ids) : 0;

  const pieces = layPieces(after, order);
  return { before, likeliest, after, order, pieces, isThrown, die, falls: lyingAt(pieces, die) };
}

export const drawView = {
  id: "draw",
  make(panel) {
    const sentence = h("p", { className: "sentence" });
    const strips = h("div", { className: "strips" });
    const slow = makeSlowDraw(strips, howDrawn);

    const listTitle = h("h3", {}, string("draw.list"));
    const heads = barHeads(string("draw.byModel"), string("draw.bySettings"));
    const list = h("ol", { className: "bars" });
    const rest = h("p", { className: "readout" });
    const how = h("p", { className: "how" }, string("draw.how"));
    const body = h("div", { hidden: true }, strips, slow.controls, listTitle, how, heads, list, rest);
    panel.append(sentence, body);

    const asking = lastAsked();
    let known = { key: "" };

    return async () => {
      const about = subject();
      if (about.window.ids.length === 0) {
        body.hidden = true;
        known = { key: "" };
        slow.rest();
        return fill(sentence, say("draw.first"));
      }

      const key = `${about.window.ids} ${offKey()}`;
      const isLast = asking();
      const logits = key === known.key ? known.logits : await ask("logits", about.window.ids, headsOff());
      if (!isLast()) return;
      if (key !== known.key) slow.rest();
      known = { key, logits };

      const draw = drawHere(logits, about.place);
      body.hidden = false; // the strips have a width before they are drawn
      fill(sentence, drawSentence(draw, about));
      slow.draw(draw, about);
      drawList(list, rest, draw, about);
    };
  },
};

/** What the model expected, and how sure it was. */
function drawSentence({ before, likeliest }, { place, row, token }) {
  const chanceOf = (id) => chance("probability", before[id], { place, token: id });
  const bits = entropy(before);
  const shownBits = `${number(bits, 1)} ${string("draw.bits")}`;
  const unsure = say("draw.entropy", { bits: fact("entropy", bits, { place }, shownBits) });
  const [best, second] = likeliest;

  if (token === undefined || token === best) {
    const words = { row: rowName(row), best: tokenName(best), p: chanceOf(best) };
    const next = { second: tokenName(second), q: chanceOf(second) };
    return [...say(token === undefined ? "draw.next" : "draw.best", { ...words, ...next }), " ", ...unsure];
  }

  const rank = number(likeliest.indexOf(token) + 1);
  const words = { row: rowName(row), token: tokenName(token), p: chanceOf(token), rank };
  const first = { best: tokenName(best), q: chanceOf(best) };
  return [...say("draw.other", { ...words, ...first }), " ", ...unsure];
}

/** Whether the token was drawn, and how. */
function howDrawn({ isThrown, die, falls }, { place, token }) {
  const words = { number: number(die, 3), falls: tokenName(falls) };
  if (token === undefined) return say(isThrown ? "draw.coming" : "draw.comingCold", words);

  const drawing = state.text.draws[place];
  if (!drawing) return say(isThrown ? "draw.typed" : "draw.typedCold", words);

  const others = OF_A_DRAW.filter((name) => drawing.settings[name] !== state.settings[name]);
  const isSameModel = offKey(drawing.off) === offKey();
  if (others.length === 0 && isSameModel)
    return say(isThrown ? "draw.replayed" : "draw.replayedCold", { ...words, token: tokenName(token) });

  const values = others.map((name) => `${string(`settings.${name}`).toLowerCase()} ${drawing.settings[name]}`);
  if (!isSameModel) values.push(string("draw.otherHeads"));
  const take = () => {
    const { maxNewTokens } = state.settings; // which is none of a draw
    give({ ...drawing.given, maxNewTokens });
    state.off = new Set(drawing.off);
    changed();
  };
  const told = say("draw.otherwise", { settings: values.join(", "), ...words });
  return [...told, " ", button(string("draw.take"), take, { "data-key": "take" })];
}

/** The likeliest tokens; a click goes on from there. */
function drawList(list, rest, { before, likeliest, after }, { place, token }) {
  const shown = likeliest.slice(0, BARS);
  if (token !== undefined && !shown.includes(token)) shown[shown.length - 1] = token;
  const most = Math.max(before[likeliest[0]], largest(after));

  const items = shown.map((id) => {
    const figures = [
      [string("draw.byModel"), chance("probability", before[id], { place, token: id })],
      [string("draw.bySettings"), chance("after", after[id], { place, token: id })],
    ];
    const className = id === token ? "bar taken" : "bar";
    const onclick = () => branch(place, id);
    const properties = { type: "button", "data-key": id, title: string("draw.goOn"), className, onclick };
    return h("li", {}, bar("button", { id, outline: before[id], filled: after[id], most }, figures, properties));
  });
  fill(list, items);

  const left = after.filter((p) => p > 0).length;
  const counts = { others: likeliest.length - shown.length, left };
  for (const name in counts) counts[name] = number(counts[name]);
  const isForbidden = shown.some((id) => marked.forbidden.includes(id));
  fill(
    rest,
    say(left === 1 ? "draw.restOne" : "draw.rest", counts),
    isForbidden ? ` ${string("draw.forbidden")}` : null,
  );
}
