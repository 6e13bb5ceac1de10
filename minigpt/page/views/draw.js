// What the model expected in the place of a token: the likeliest tokens before and after the filters.
// The logits are asked for once; the settings reshape the bars without the model.

import { fill, h, lastAsked, percent, whatIsThis } from "../basics/dom.js";
import { filtered } from "../model/sampler.js";
import { ask, tokenizer } from "../text/client.js";
import { state, windowOf } from "../text/state.js";
import { branch, chosenPlace, tokenName } from "../text/writing.js";

const BARS = 12;

export const drawView = {
  id: "draw",
  make(panel) {
    const head = h("p", { className: "readout" });
    const list = h("ol", { className: "bars" });
    const rest = h("p", { className: "readout" });

    panel.append(
      whatIsThis(
        "At each place the model gives every token a probability (softmax of its logits). The outline is that ",
        "probability, the filled bar is what the settings make of it: temperature, top k, top p and min p. ",
        "Choose a bar, and the text goes on from there; the text left behind stays among the texts of this visit.",
      ),
      head,
      list,
      rest,
    );

    const asking = lastAsked();
    let known = { key: "" };

    return async () => {
      const place = chosenPlace();
      const { text } = state;
      const key = `${text.ids.slice(0, place)}`;

      if (place === 0) {
        known = { key: "" };
        fill(head, "Nothing stands before the first token, so the model does not guess it.");
        list.replaceChildren();
        return rest.replaceChildren();
      }

      if (key !== known.key) {
        const isLast = asking();
        const logits = await ask("logits", windowOf(place).ids, [...state.off]);
        if (!isLast()) return;
        known = { key, logits };
      }
      drawBars(head, list, rest, { logits: known.logits, place, text });
    };
  },
};

function drawBars(head, list, rest, { logits, place, text }) {
  const before = probabilities(logits);
  const after = probabilities(filtered(logits, state.settings, text.ids.slice(text.hidden, place)));
  const order = Array.from(logits.keys()).sort((a, b) => before[b] - before[a]);

  const taken = text.ids[place];
  const shown = order.slice(0, BARS);
  if (taken !== undefined && !shown.includes(taken)) shown[BARS - 1] = taken;

  const entropy = -before.reduce((sum, p) => sum + (p > 0 ? p * Math.log2(p) : 0), 0);
  const rank = `rank ${order.indexOf(taken) + 1} of ${order.length.toLocaleString("en")}`;
  const what =
    taken === undefined ? ["What comes next"] : [tokenName(taken), ` has ${percent(before[taken])}, ${rank}`];
  fill(head, ...what, `; the uncertainty here (entropy) is ${entropy.toFixed(1)} bits.`);

  const most = Math.max(before[order[0]], ...after);
  fill(
    list,
    shown.map((id) => {
      const className = id === taken ? "bar taken" : "bar";
      const onclick = () => branch(place, id);
      const properties = { type: "button", "data-key": id, title: "Go on from here", className, onclick };
      return h("li", {}, bar("button", id, before[id], after[id], most, properties));
    }),
  );

  const sum = (p) => shown.reduce((left, id) => left - p[id], 1);
  const others = order.length - shown.length;
  const left = after.filter((p) => p > 0).length;
  const shares = `${percent(Math.max(0, sum(before)))}, after the filters ${percent(Math.max(0, sum(after)))}`;
  const drawable = `${left.toLocaleString("en")} ${left === 1 ? "token" : "tokens"} can be drawn`;
  fill(rest, `All ${others.toLocaleString("en")} others: ${shares}. ${drawable}.`);
}

/** softmax, where -Infinity gives 0. */
export function probabilities(logits) {
  const largest = logits.reduce((a, b) => Math.max(a, b));
  const weights = Float64Array.from(logits, (logit) => Math.exp(logit - largest));
  const sum = weights.reduce((a, b) => a + b);
  return weights.map((weight) => weight / sum);
}

/** A token with two probabilities, as figures and as bars relative to the largest of all. */
export function bar(tag, id, before, after, most, properties = { className: "bar" }) {
  const bars = [h("span", { className: "after" }), h("span", { className: "before" })];
  const figure = (p, meaning) =>
    h("span", { className: "figure" }, percent(p), h("span", { className: "unseen" }, ` ${meaning} `));
  return h(
    tag,
    { ...properties, "--before": before / most, "--after": after / most },
    h("span", { className: "token" }, tokenizer.visible(id)),
    h("span", { className: "track" }, bars),
    figure(before, "before,"),
    figure(after, "after"),
  );
}
