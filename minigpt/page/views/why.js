// Why this word? What made the token likely where it was predicted: by part of the model, and by earlier word.

import { button, fill, h } from "../../web/dom.js";
import { say, string } from "../../web/strings.js";
import { number } from "../../web/units.js";
import { chance, fact, largestFirst, signed } from "../basics/numbers.js";
import { changed, headOf, isOff, openView, state, subject } from "../core/state.js";
import { tokenName } from "../core/writing.js";
import { isThrownAt } from "../model/sampler.js";
import { makeArcs, pick, pickedPart } from "./arcs.js";
import { rowName } from "./bars.js";
import { explained, mostLookedAt } from "./explaining.js";
import { headRole, measureHeads } from "./heads.js";

const LITTLE = 0.2; // bits: a word that changes less has hardly mattered
const SHOWN_CAUSES = 12; // parts and words, until all are asked for
const showsAll = { parts: false, words: false }; // whether all are shown

export const whyView = {
  id: "why",
  make(panel) {
    const answer = h("p", { className: "sentence" });
    const summary = h("p", { className: "summary" });
    const parts = h("section", { className: "causes", "aria-labelledby": "why-parts" });
    const words = h("section", { className: "causes", "aria-labelledby": "why-words" });
    const caution = h("p", { className: "caution" }, string("why.caution"));
    const body = h("div", { hidden: true }, summary, h("div", { className: "both-causes" }, words, parts), caution);
    panel.append(answer, body);
    makeArcs();

    return async () => {
      const found = explained();
      if (found === null) {
        body.hidden = true;
        return fill(answer, nothingBefore());
      }

      measureHeads();
      if (found.parts === null) await found.begun;
      if (found !== explained() || found.parts === null) return;

      fill(answer, answerOf(found));
      fill(summary, summaryOf(found));
      fill(parts, ...partsList(found));
      fill(words, ...wordsList(found));
      words.ariaBusy = String(!found.isWhole);
      body.hidden = false;
    };
  },
};

/** Why there is nothing to be explained: nothing is before the first token. */
export function nothingBefore() {
  return subject().place === 0 && state.text.ids.length > 0 ? string("why.first") : string("why.nothing");
}

/** One sentence: how sure the model was, and what else it considered. */
function answerOf({ place, token, probabilities }) {
  const chanceOf = (id) => chance("probability", probabilities[id], { place, token: id });
  const order = largestFirst(probabilities);
  const rank = order.indexOf(token);
  const isThere = place < state.text.ids.length;

  const other = order.find((id) => id !== token);
  const values = {
    before: rowName(place - 1),
    token: tokenName(token),
    p: chanceOf(token),
    other: tokenName(other),
    otherP: chanceOf(other),
    rank: fact("rank", rank + 1, { place, token }, number(rank + 1)),
    all: number(order.length),
  };

  let name = "why.unlikely";
  if (rank === 0) name = "why.likeliest";
  if (!isThere) name = "why.next";
  const sentence = say(name, values);
  return rank > 0 && wasThrown(place) ? [...sentence, " ", string("why.thrown")] : sentence;
}

/** Whether the die chose the token in this place; otherwise it was typed, or the likeliest was taken. */
function wasThrown(place) {
  const drawing = state.text.draws[place];
  return Boolean(drawing) && isThrownAt(drawing.settings.temperature);
}

/** What mattered most, in words. */
function summaryOf(found) {
  const sentences = [...mostOfWords(found), ...mostOfHeads(found)];
  if (!found.isWhole) sentences.push(string("why.soFar"));
  return sentences;
}

function mostOfWords(found) {
  const { place, token, words } = found;
  const word = [...words.keys()].reduce((best, to) => (matters(words, to, best) ? to : best), undefined);
  if (word === undefined || words.get(word) === 0) return [];

  const bits = words.get(word);
  let name = bits < 0 ? "why.mostHelpful" : "why.mostHarmful";
  if (Math.abs(bits) < LITTLE) name = "why.noneMatters";
  const values = {
    before: rowName(place - 1),
    token: tokenName(token),
    word: rowName(word),
    bits: wordBits(found, word),
  };
  return [...say(name, values), " "];
}

function mostOfHeads(found) {
  const { place, token, heads, probability } = found;
  const names = Object.keys(heads);
  if (names.length === 0) return [];

  const head = names.reduce((best, name) => (effectOf(found, name) > effectOf(found, best) ? name : best));
  const less = chance("without", heads[head], { place, token, head });
  const whole = chance("probability", probability, { place, token });
  return [...say("why.mostOfHeads", { head, less, whole }), " "];
}

function matters(words, to, best) {
  return best === undefined || Math.abs(words.get(to)) > Math.abs(words.get(best));
}

/** By how much a head changes the token's log-probability. */
function effectOf({ heads, probability }, name) {
  return Math.abs(Math.log(heads[name] / probability));
}

/** By part: what each adds to the logit, largest first; together they are the logit. */
function partsList(found) {
  const { place, token, logit, parts } = found;
  const names = Object.keys(parts).filter((name) => name !== "bias" || parts.bias !== 0);
  const order = names.sort((a, b) => Math.abs(parts[b]) - Math.abs(parts[a]));
  const shown = showsAll.parts ? order : order.slice(0, SHOWN_CAUSES);
  const left = order.slice(shown.length);
  const sumOfLeft = left.reduce((total, name) => total + parts[name], 0);
  const most = Math.max(...shown.map((name) => Math.abs(parts[name])), Math.abs(sumOfLeft), 1e-9);

  const explainedKinds = new Set(); // each kind is explained where it first occurs
  const items = shown.map((name) => {
    const kind = kindOf(name);
    const clause = explainedKinds.has(kind) ? null : string(`why.${kind}Clause`);
    explainedKinds.add(kind);
    return partItem(found, name, { kind, clause, most });
  });

  if (left.length > 0) {
    const row = cause({
      name: say("why.others", { n: String(left.length) }),
      value: sumOfLeft,
      most,
      figure: fact("parts", sumOfLeft, { place, token, parts: left }, signed(sumOfLeft)),
    });
    items.push(h("li", {}, h("div", { className: "cause" }, row)));
  }

  const total = fact("logit", logit, { place, token }, signed(logit));
  const sum = h(
    "li",
    { className: "total" },
    h(
      "div",
      { className: "cause" },
      h("span", {}, string("why.together")),
      h("span"),
      h("span", { className: "figure" }, total),
    ),
  );
  return [
    h("h3", { id: "why-parts" }, string("why.byPart")),
    h("p", { className: "how" }, say("why.byPartHow", { token: tokenName(token) })),
    directions("why.adds"),
    h("ol", {}, items, sum),
    more("parts", order.length),
  ];
}

/** "head", "feedForward", "embedding" or "bias". */
function kindOf(name) {
  if (name === "embedding" || name === "bias") return name;
  return name.endsWith("feed-forward") ? "feedForward" : "head";
}

function partItem(found, name, { kind, clause, most }) {
  const { place, token, parts } = found;
  const figure = fact("part", parts[name], { place, token, part: name }, signed(parts[name]));
  const row = cause({ name: partName(found, name, kind), value: parts[name], most, figure, clause });
  if (kind !== "head") {
    const view = { embedding: "vectors", feedForward: "feedForward" }[kind];
    if (!view) return h("li", {}, h("div", { className: "cause" }, row));

    const focus = kind === "feedForward" ? { layer: Number.parseInt(name, 10) - 1 } : {};
    const open = () => openView(view, focus);
    return h("li", {}, rowButton(row, open, { "data-key": `part ${name}` }));
  }

  const isPicked = pickedPart(found)?.head === name;
  const choose = () => pick(isPicked ? null : { head: name, focus: headOf(name) });
  const properties = { "data-key": `part ${name}`, "aria-expanded": String(isPicked) };
  const item = h("li", {}, rowButton(row, choose, properties));
  if (isPicked) item.append(headDetail(found, name));
  return item;
}

function partName({ place }, name, kind) {
  if (kind === "embedding") return say("why.embedding", { token: rowName(place - 1) });
  if (kind === "bias") return [string("why.bias")];
  if (kind === "feedForward") return say("why.feedForward", { layer: String(Number.parseInt(name, 10)) });

  const { layer, head } = headOf(name);
  const role = headRole(layer, head);
  const words = say("why.head", { head: name });
  if (role) words.push(` · ${role}`);
  if (isOff(layer, head)) words.push(` · ${string("why.isOff")}`);
  return words;
}

/** What a head did: where it looked, and how likely the token is without it. */
function headDetail(found, name) {
  const { place, token, heads, probability, weights } = found;
  const focus = headOf(name);
  const sentences = [];

  if (name in heads) {
    const less = chance("without", heads[name], { place, token, head: name });
    const whole = chance("probability", probability, { place, token });
    sentences.push(...say("why.without", { less, whole }), " ");
  } else {
    sentences.push(string("why.computing"), " ");
  }

  if (weights !== null) {
    const { to, weight } = mostLookedAt(found, focus);
    const share = chance("weight", weight, { place, ...focus, to });
    sentences.push(...say("why.looks", { word: rowName(to), share }), " ");
  }
  const open = button(string("why.openHead"), () => openView("attention", focus), { "data-key": `open ${name}` });
  return h("p", { className: "detail" }, sentences, open);
}

/** By word: how the token's chance changes if no head may look at an earlier token; the largest change first. */
function wordsList(found) {
  const { words, place, token, isWhole, T } = found;
  const last = place - 1; // it is always seen by itself
  const measured = [...words.keys()].filter((to) => to !== last);
  const order = measured.sort((a, b) => Math.abs(words.get(b)) - Math.abs(words.get(a)));
  const shown = showsAll.words ? order : order.slice(0, SHOWN_CAUSES);
  const most = Math.max(...order.map((to) => Math.abs(words.get(to))), 1e-9);

  const items = shown.map((to) => wordItem(found, to, most));
  const head = h("h3", { id: "why-words" }, string("why.byWord"));
  if (T === 1) return [head, h("p", { className: "how" }, say("why.noWords", { word: rowName(last) }))];

  const progress = isWhole ? "why.measured" : "why.measuring";
  const count = { n: String(order.length), all: String(T - 1), last: rowName(last) };
  return [
    head,
    h("p", { className: "how" }, say("why.byWordHow", { token: tokenName(token) })),
    directions("why.withoutIt"),
    h("ol", { "--rows": Math.max(items.length, Math.min(T - 1, SHOWN_CAUSES)) }, items),
    h("p", { className: "progress" }, say(progress, count)),
    more("words", T - 1),
  ];
}

function wordItem(found, to, most) {
  const bits = found.words.get(to);
  const isPicked = pickedPart(found)?.word === to;
  const choose = () => pick(isPicked ? null : { word: to, about: found });

  const properties = { "data-key": `word ${to}`, "aria-expanded": String(isPicked) };
  const row = cause({ name: inContext(to), value: -bits, most, figure: wordBits(found, to) });
  const item = h("li", {}, rowButton(row, choose, properties));
  if (isPicked) {
    const values = { word: rowName(to), token: tokenName(found.token), bits: wordBits(found, to) };
    item.append(h("p", { className: "detail" }, say(bits < 0 ? "why.helped" : "why.hindered", values)));
  }
  return item;
}

function wordBits({ place, token, words }, to) {
  const bits = words.get(to);
  return fact("word", bits, { place, token, to }, string("why.bits", { bits: signed(bits) }));
}

/** A token with what is before and after it: the same word may be there more than once. */
function inContext(to) {
  const { pieces, hidden } = state.text;
  const around = (from, end) => {
    const shown = pieces.slice(Math.max(from, hidden), end).join("");
    return h("span", { className: "around" }, shown.replaceAll("\n", "↵")); // in one line
  };
  return [around(to - 2, to), rowName(to), around(to + 1, to + 2)];
}

/** A row: name, a bar to the right (likelier) or to the left, the figure; a clause below. */
function cause({ name, value, most, figure, clause = null }) {
  const kind = value < 0 ? "loss" : "gain";
  const bar = h("span", { className: `amount ${kind}`, "--share": Math.abs(value) / most });
  const row = [
    h("span", { className: "name" }, name),
    h("span", { className: "diverging", "aria-hidden": "true" }, bar),
    h("span", { className: "figure" }, figure),
  ];
  return clause ? [...row, h("small", { className: "clause" }, clause)] : row;
}

function rowButton(row, onclick, properties) {
  const made = button("", onclick, { className: "cause", ...properties });
  made.append(...row);
  return made;
}

/** What the two directions of the bars are, and what the figures beside them say. */
function directions(figures) {
  const sides = ["why.less", "why.more"].map((name) => h("span", {}, string(name)));
  return h(
    "div",
    { className: "cause directions", "aria-hidden": "true" },
    h("span"),
    h("span", { className: "sides" }, sides),
    h("span", { className: "figure" }, string(figures)),
  );
}

function more(list, count) {
  if (count <= SHOWN_CAUSES) return null;

  const toggle = () => {
    showsAll[list] = !showsAll[list];
    changed();
  };
  const label = showsAll[list] ? string("why.fewer") : string("why.all", { n: String(count) });
  return button(label, toggle, { "data-key": `more ${list}` });
}
