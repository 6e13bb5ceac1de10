// Attention: where each head looks when the token is predicted. The arcs lie over the text; here are the heads, in the
// order of what they did for this token, the same arcs in one line, and all tokens at once as a triangle.

import { button, fill, h, roving } from "../../web/dom.js";
import { say, string } from "../../web/strings.js";
import { chance, fact, signed } from "../basics/numbers.js";
import { changed, headNumber, headOf, isOff, state } from "../core/state.js";
import { tokenName } from "../core/writing.js";
import { drawStrip } from "./arcs.js";
import { rowName } from "./bars.js";
import { explained, mostLookedAt } from "./explaining.js";
import { headRole, measureHeads } from "./heads.js";
import { makeTriangle } from "./triangle.js";
import { nothingBefore } from "./why.js";

const SHOWN_HEADS = 12; // heads, until all are asked for
let areAllShown = false;

/** Look at the head that did the most for the token, unless one was chosen by hand. */
function followHead({ parts }) {
  if (state.focus.follows) Object.assign(state.focus, headOf(headsBySize(parts)[0]));
}

/** Look at the head of a layer that did the most for the token. */
export function chooseLayer(layer) {
  const heads = headsBySize(explained()?.parts ?? {}).map(headOf);
  const most = heads.find((head) => head.layer === layer) ?? { layer, head: 0 };
  Object.assign(state.focus, most, { follows: false });
}

/** The names of all heads, those first that added or took away the most. */
function headsBySize(parts) {
  const heads = Object.keys(parts).filter((name) => /^\d+\.\d+$/.test(name));
  return heads.sort((a, b) => Math.abs(parts[b]) - Math.abs(parts[a]));
}

export const attentionView = {
  id: "attention",
  make(panel) {
    const sentence = h("p", { className: "sentence" });
    const row = h("div", { className: "head-row", role: "group", "aria-label": string("attention.heads") });
    const order = h("p", { className: "how" });
    const strip = h("div", { className: "arc-strip scroll", tabIndex: 0, role: "region" });
    strip.setAttribute("aria-label", string("attention.strip"));
    const drawTriangle = makeTriangle();
    const what = h("p", { className: "how" }, string("attention.what"));
    const shown = h("div", { hidden: true }, what, strip, weightLegend(), order, row, drawTriangle.element);
    panel.append(sentence, shown);

    roving(row, "button", (key, at, items) => {
      const steps = { ArrowLeft: at - 1, ArrowUp: at - 1, ArrowRight: at + 1, ArrowDown: at + 1 };
      return { ...steps, Home: 0, End: items.length - 1 }[key];
    });

    return async () => {
      const found = explained();
      if (found === null) {
        shown.hidden = true;
        return fill(sentence, nothingBefore());
      }

      measureHeads();
      if (found.parts === null) await found.begun;
      if (found !== explained() || found.parts === null) return;

      followHead(found);
      fill(sentence, whereItLooks(found));
      fill(order, say("attention.order", { token: tokenName(found.token) }));
      fill(row, headButtons(found));
      shown.hidden = false;
      drawStrip(strip, found, state.focus);
      drawTriangle.element.hidden = found.T === 1; // one square says nothing
      await drawTriangle(found);
    };
  },
};

function whereItLooks(found) {
  const { layer, head } = state.focus;
  const { to, weight } = mostLookedAt(found, state.focus);
  if (found.T === 1) return say("attention.alone", { token: rowName(found.start) });

  const values = {
    token: tokenName(found.token),
    before: rowName(found.place - 1),
    head: headNumber(layer, head),
    word: rowName(to),
    share: chance("weight", weight, { place: found.place, layer, head, to }),
  };

  const isThere = found.place < state.text.ids.length;
  const sentences = say(isThere ? "attention.looked" : "attention.looks", values);
  if (isOff(layer, head)) sentences.push(" ", string("attention.isOff"));
  return sentences;
}

function headButtons(found) {
  const { parts, place, token } = found;
  const order = headsBySize(parts);
  const chosen = headNumber(state.focus.layer, state.focus.head);
  const shown = areAllShown || order.indexOf(chosen) >= SHOWN_HEADS ? order : order.slice(0, SHOWN_HEADS);
  const most = Math.max(Math.abs(parts[order[0]]), 1e-9);

  const items = shown.map((name) => {
    const focus = headOf(name);
    const isChosen = name === chosen;

    const choose = () => {
      Object.assign(state.focus, focus, { follows: false });
      changed();
    };
    const properties = { "data-key": `head ${name}`, tabIndex: isChosen ? 0 : -1, "aria-pressed": String(isChosen) };
    const bar = h("span", {
      className: `amount ${parts[name] < 0 ? "loss" : "gain"}`,
      "--share": Math.abs(parts[name]) / most,
    });
    const item = button(h("b", {}, name), choose, properties);
    item.append(
      h(
        "span",
        { className: "role" },
        isOff(focus.layer, focus.head) ? string("why.isOff") : headRole(focus.layer, focus.head),
      ),
      h("span", { className: "diverging", "aria-hidden": "true" }, bar),
      h("small", {}, fact("part", parts[name], { place, token, part: name }, signed(parts[name]))),
    );
    return item;
  });

  const showAll = () => {
    areAllShown = true;
    changed();
  };
  const isCut = shown.length < order.length;
  return isCut ? [...items, button(string("attention.all", { n: String(order.length) }), showAll)] : items;
}

/** How thick a line is for which weight, always the same. */
function weightLegend() {
  const samples = [0.1, 0.5, 1].map((weight) =>
    h("span", { className: "weight-sample" }, h("i", { "--weight": weight }), `${100 * weight} %`),
  );
  return h("p", { className: "arc-legend" }, string("attention.legend"), samples);
}
