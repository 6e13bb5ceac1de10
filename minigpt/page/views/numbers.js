// One query followed through the equation with its own numbers, at the row that predicts the token: from q and the keys
// to what the layer adds to the stream.

import { fill, h, lastAsked, scrolling, table } from "../../web/dom.js";
import { say, string } from "../../web/strings.js";
import { number } from "../../web/units.js";
import { fact } from "../basics/numbers.js";
import { ask, model } from "../core/client.js";
import { changed, headNumber, isOff, state, subject } from "../core/state.js";
import { tokenName } from "../core/writing.js";
import { rowName } from "./bars.js";
import { headRole } from "./heads.js";
import { nothingBefore } from "./why.js";

const KEYS = 8; // how many of the keys are shown, those with the largest weights
const COMPONENTS = 3; // of a vector
const TERMS = 3; // of the sum

export const numbersView = {
  id: "numbers",
  make(panel) {
    const { num_layers, num_heads } = model.config;
    const layer = pickNumber("layer", num_layers);
    const head = pickNumber("head", num_heads);

    const sentence = h("p", { className: "sentence" });
    const steps = h("div", { className: "steps" });
    const choice = h(
      "p",
      { className: "row" },
      `${string("numbers.layer")} `,
      layer,
      ` ${string("numbers.head")} `,
      head,
    );
    const formula = h("p", { className: "formula" }, "softmax( Q Kᵀ / √d", h("sub", {}, "k"), " + mask ) V");
    const what = h("p", { className: "how" }, string("numbers.what"));
    const shown = h("div", { hidden: true }, what, choice, formula, steps);
    panel.append(sentence, shown);

    const asking = lastAsked();
    let known = { key: "" };

    return async () => {
      const isLast = asking();
      const about = subject();
      const focus = { ...state.focus };
      const off = headsOff();
      if (about.window.ids.length === 0) {
        shown.hidden = true;
        return fill(sentence, nothingBefore());
      }

      const key = [about.window.start, about.window.ids, focus.layer, focus.head, offKey()].join(" ");
      const { ids } = about.window;
      const found = key === known.key ? known.found : await ask("query", ids, focus.layer, focus.head, off);
      if (!isLast()) return;

      known = { key, found };
      shown.hidden = false;
      layer.value = focus.layer;
      head.value = focus.head;
      fill(sentence, whatIsComputed(found, about, focus));
      fill(steps, drawSteps(found, about, focus));
    };
  },
};

/** A choice of state.focus: from 0 inside, from 1 on the screen. */
function pickNumber(name, count) {
  const onchange = (event) => {
    state.focus[name] = Number(event.target.value);
    state.focus.follows = false;
    changed();
  };
  const choices = Array.from({ length: count }, (_, i) => h("option", { value: i }, String(i + 1)));
  return h("select", { onchange, "aria-label": string(`numbers.${name}`) }, choices);
}

function whatIsComputed({ weights }, { place, row, token, window }, { layer, head }) {
  const j = weights.reduce((best, weight, k) => (weight > weights[best] ? k : best), 0);
  const to = window.start + j;
  const values = {
    before: rowName(row),
    head: headNumber(layer, head),
    token: token !== undefined && tokenName(token),
    word: rowName(to),
    weight: fact("weight", weights[j], { place, layer, head, to }, number(weights[j], 2)),
  };
  const sentences = say(token === undefined ? "numbers.next" : "numbers.why", values);
  return isOff(layer, head) ? [...sentences, " ", string("numbers.isOff")] : sentences;
}

function drawSteps(found, about, focus) {
  const { query, keys, values, scores, weights, context, joined, output, stream } = found;
  const { place, row, token, window } = about;
  const { layer, head } = focus;
  const d = model.config.head_size;
  const root = Math.sqrt(d);
  const textIndex = (j) => window.start + j;
  const figure = (what, value, at, digits = 2) =>
    fact(what, value, { place, layer, head, ...at }, number(value, digits));
  const vectorOf = (what, numbers, at = {}) => vector(numbers, (x, component) => figure(what, x, { ...at, component }));

  const heaviest = Array.from(weights.keys()).sort((a, b) => weights[b] - weights[a]);
  const shown = heaviest.slice(0, KEYS).sort((a, b) => a - b);
  const rows = shown.map((j) => {
    const at = { to: textIndex(j) };
    const product = figure("product", scores[j] * root, at);
    const steps = [product, figure("score", scores[j], at), figure("weight", weights[j], at, 3)];
    return [rowName(textIndex(j)), vectorOf("key", keys[j], at), ...steps, vectorOf("value", values[j], at)];
  });
  if (token !== undefined) {
    rows.push([tokenName(token), string("numbers.later"), "", "−∞", "0", string("numbers.masked")]);
  }

  const terms = heaviest.slice(0, TERMS).flatMap((j, i) => {
    const at = { to: textIndex(j) };
    const term = [figure("weight", weights[j], at), " · ", figure("value", values[j][0], { ...at, component: 0 })];
    return i === 0 ? term : [" + ", ...term];
  });
  if (weights.length > TERMS) terms.push(" + …");

  const role = headRole(layer, head);
  const caption = h("span", {}, say("numbers.caption", { head: headNumber(layer, head), role: role && ` (${role})` }));
  if (weights.length > shown.length) {
    caption.append(" ", ...say("numbers.others", { n: String(weights.length - shown.length) }));
  }
  const columns = ["token", "key", "product", "score", "softmax", "value"].map((name) =>
    say(`numbers.${name}Column`, { d }),
  );

  const joinedPlaces = { from: String(head * d + 1), to: String((head + 1) * d), all: String(joined.length) };
  return [
    paragraph(...say("numbers.step1", { token: rowName(row), q: vectorOf("query", query), d: String(d) })),
    paragraph(...say("numbers.step2")),
    scrolling(string("numbers.table"), table(caption, columns, rows)),
    paragraph(
      ...say("numbers.step3", { terms: h("span", {}, terms), sum: figure("context", context[0], { component: 0 }) }),
      vectorOf("context", context),
    ),
    paragraph(...say("numbers.step4", joinedPlaces)),
    paragraph(
      ...say("numbers.step5", {
        output: vectorOf("output", output),
        added: fact("added", lengthOf(output), { place, layer }, number(lengthOf(output), 2)),
        stream: fact("norm", lengthOf(stream), { place, layer }, number(lengthOf(stream), 2)),
      }),
    ),
  ];
}

/** The first components of a vector. */
function vector(numbers, figure) {
  const shown = Array.from(numbers.slice(0, COMPONENTS), figure);
  const spaced = shown.flatMap((item, i) => (i === 0 ? [item] : [" ", item]));
  return h("span", { className: "vector" }, "[", spaced, numbers.length > COMPONENTS ? " …]" : "]");
}

function lengthOf(numbers) {
  return Math.sqrt(numbers.reduce((sum, x) => sum + x * x, 0));
}

function paragraph(...content) {
  return h("p", {}, ...content);
}
