// The vectors: which tokens have a similar one, where the token is in the window, and how the stream grows from
// layer to layer.

import { button, fill, h, lastAsked, scrolling } from "../../web/dom.js";
import { say, string } from "../../web/strings.js";
import { number } from "../../web/units.js";
import { fact } from "../basics/numbers.js";
import { ask, model } from "../core/client.js";
import { headsOff, openView, subject } from "../core/state.js";
import { tokenName } from "../core/writing.js";
import { lengthBar, rowName } from "./bars.js";

const NEAREST = 8;

export const vectorsView = {
  id: "vectors",
  make(panel) {
    const sentence = h("p", { className: "sentence" });
    const body = h("div");
    panel.append(sentence, body);
    const asking = lastAsked();

    return async () => {
      const about = subject();
      const { ids } = about.window;
      if (ids.length === 0) {
        body.replaceChildren();
        return fill(sentence, say("vectors.first"));
      }

      // The token that was read last, and the one that was predicted, if there is one and it is another.
      const tokens = new Set([ids.at(-1), about.token ?? ids.at(-1)]);
      const isLast = asking();
      const [norms, ...nearest] = await Promise.all([
        ask("norms", ids, headsOff()),
        ...Array.from(tokens, (token) => ask("nearest", token, NEAREST)),
      ]);
      if (!isLast()) return;

      fill(sentence, vectorsSentence(norms, about));
      const lists = Array.from(tokens, (token, i) => nearestList(token, nearest[i], i === 0 ? "read" : "predicted"));
      fill(body, h("div", { className: "neighbours" }, lists), positionOf(about), ...streamLengths(norms, about));
    };
  },
};

/** From which vector the model starts here, and how long it becomes. */
function vectorsSentence(norms, { place, row }) {
  const lengthAfter = (layer) => fact("norm", norms[layer], { place, layer }, number(norms[layer], 1));
  const words = { token: rowName(row), size: model.config.emb_dim, start: lengthAfter(0) };
  return say("vectors.sentence", { ...words, end: lengthAfter(norms.length - 1) });
}

/** The tokens whose vectors point most nearly the same way. */
function nearestList(token, nearest, role) {
  const items = nearest.map(({ id, similarity }) => {
    const figure = fact("similarity", similarity, { token, other: id }, number(similarity, 2));
    return lengthBar(tokenName(id), Math.max(0, similarity), figure);
  });
  const title = h(
    "h3",
    {},
    say(role === "read" ? "vectors.nearRead" : "vectors.nearPredicted", { token: tokenName(token) }),
  );
  return h("div", {}, title, h("ol", { className: "lengths" }, items));
}

/** Where the token is, and what its place does to it. */
function positionOf({ window, row }) {
  const kind = model.config.positions === "rotary" ? "vectors.rotary" : "vectors.learned";
  const words = { token: rowName(row), place: window.ids.length, all: model.config.context_length };
  return h("p", {}, say("vectors.place", words), " ", say(kind));
}

/** The length of the stream after each layer. */
function streamLengths(norms, { place }) {
  const most = Math.max(...norms);
  const items = Array.from(norms, (norm, layer) => {
    const name = layer === 0 ? string("vectors.start") : say("vectors.layer", { layer });
    return lengthBar(name, norm / most, fact("norm", norm, { place, layer }, number(norm, 1)));
  });
  const more = button(string("vectors.lens"), () => openView("layers"));
  return [
    h("h3", {}, string("vectors.lengths")),
    h("p", {}, string("vectors.lengthsMean")),
    scrolling(string("vectors.lengths"), h("ol", { className: "lengths" }, items)),
    h("p", { className: "row" }, more),
  ];
}
