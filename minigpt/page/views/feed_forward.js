// The feed-forward of a layer: which of its units fire most where the token was predicted, what they make likelier,
// and on which other tokens of this text they fire.

import { button, fill, h, lastAsked } from "../../web/dom.js";
import { say, string } from "../../web/strings.js";
import { number } from "../../web/units.js";
import { fact } from "../basics/numbers.js";
import { ask, model } from "../core/client.js";
import { changed, headsOff, state, subject } from "../core/state.js";
import { tokenName } from "../core/writing.js";
import { rowName } from "./bars.js";

const SHOWN = 5; // units; the others are in a fold

export const feedForwardView = {
  id: "feedForward",
  make(panel) {
    const sentence = h("p", { className: "sentence" });
    const layer = layerChoice();
    const list = h("ol", { className: "units" });
    const others = h("ol", { className: "units", start: SHOWN + 1 });
    const summary = h("summary");
    const fold = h("details", {}, summary, others);
    const body = h(
      "div",
      { hidden: true },
      h("p", { className: "row" }, layer),
      h("p", {}, string("feedForward.what")),
      list,
      fold,
    );
    panel.append(sentence, body);

    const asking = lastAsked();
    return async () => {
      const about = subject();
      const { ids } = about.window;
      if (ids.length === 0) {
        body.hidden = true;
        return fill(sentence, say("feedForward.first"));
      }

      const at = state.focus.layer;
      layer.querySelector("select").value = at;
      const isLast = asking();
      const { units } = await ask("feedForward", ids, at, headsOff());
      if (!isLast()) return;

      body.hidden = false;
      fill(sentence, unitSentence(units[0], at, about));
      const most = Math.abs(units[0].activation);
      const items = units.map((unit) => drawUnit(unit, { about, layer: at, most }));
      fill(list, items.slice(0, SHOWN));
      fill(others, items.slice(SHOWN));
      fill(summary, say("feedForward.more", { count: items.length - SHOWN }));
      fold.hidden = items.length <= SHOWN;
    };
  },
};

function layerChoice() {
  const choices = Array.from({ length: model.config.num_layers }, (_, i) => h("option", { value: i }, i + 1));
  const onchange = (event) => {
    state.focus.layer = Number(event.target.value);
    changed();
  };
  return h("label", {}, `${string("feedForward.layer")} `, h("select", { onchange }, choices));
}

/** The unit that fires most here. */
function unitSentence({ unit, activation, adds }, layer, { place, row, token }) {
  const strength = fact("unit", activation, { place, layer, unit }, number(activation, 2));
  const raised = adds.slice(0, 3).flatMap((id, i) => [i > 0 ? ", " : "", tokenName(id)]);
  const words = { before: rowName(row), layer: layer + 1, unit: unit + 1, strength, raised };
  const what = token === undefined ? "feedForward.next" : "feedForward.why";
  return say(what, { ...words, token: token === undefined ? "" : tokenName(token) }).flat();
}

/** A unit: how strongly it fires, what it raises, where else it fires. */
function drawUnit({ unit, activation, adds, places }, { about, layer, most }) {
  const { place, token, window } = about;
  const figure = fact("unit", activation, { place, layer, unit }, number(activation, 2));
  const share = Math.abs(activation) / most;
  const bar = h("span", { className: "track" }, h("span", { className: "length", "--share": share }));
  const name = h("span", { className: "name" }, say("feedForward.unit", { unit: unit + 1 }));

  const raised = adds.map((id) => {
    const chip = tokenName(id);
    chip.classList.add("chip");
    chip.classList.toggle("taken", id === token);
    return chip;
  });

  const elsewhere = places.map(({ place: index, activation: strength }) => {
    const at = window.start + index; // in the text; a row of the same window
    const shown = fact("unit", strength, { place, layer, unit, from: at }, number(strength, 2));
    const look = () => {
      state.question = "next";
      state.chosen = at;
      changed();
    };
    return button([rowName(at), " ", shown], look, { className: "chip", title: string("feedForward.look") });
  });

  return h(
    "li",
    { className: "unit" },
    h("div", { className: "unit-head" }, name, bar, figure),
    h("p", {}, string("feedForward.raises"), " ", raised),
    places.length ? h("p", {}, string("feedForward.elsewhere"), " ", elsewhere) : null,
  );
}
