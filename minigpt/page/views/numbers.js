// One query followed through the equation with its own numbers: from q and the keys to what the
// layer adds to the stream.

import { fill, h, lastAsked, number, paragraph, scrolling, table, whatIsThis } from "../basics/dom.js";
import { ask, model } from "../text/client.js";
import { changed, state, windowOf } from "../text/state.js";
import { chosenPlace, tokenName } from "../text/writing.js";
import { chosenHead, headName } from "./attention.js";

const KEYS = 8; // how many of the keys are shown, those with the largest weights
const COMPONENTS = innerWidth < 500 ? 1 : 3; // of a vector

export const numbersView = {
  id: "numbers",
  make(panel) {
    const { num_layers, num_heads } = model.config;
    const pick = (name, count) => {
      const onchange = (event) => ((chosenHead[name] = Number(event.target.value)), changed());
      const choices = Array.from({ length: count }, (_, i) => h("option", { value: i }, i));
      return h("select", { "aria-label": name, onchange }, choices);
    };

    const layer = pick("layer", num_layers);
    const head = pick("head", num_heads);
    const steps = h("div", { className: "steps" });

    panel.append(
      whatIsThis(
        "This is all that attention does, with the real numbers of the chosen token: its query is compared with the ",
        "key of each token before it, the comparisons become weights that add up to 1, and the values are added up ",
        "with these weights. Vectors show their first components.",
      ),
      h("p", { className: "row" }, "Layer ", layer, " head ", head),
      h("p", { className: "formula" }, "softmax( Q Kᵀ / √d", h("sub", {}, "k"), " + mask ) V"),
      steps,
    );

    const asking = lastAsked();

    return async () => {
      const place = chosenPlace(true);
      if (place < 0 || state.busy) return;
      layer.value = chosenHead.layer;
      head.value = chosenHead.head;

      const { text } = state;
      const isLast = asking();
      const { ids, start } = windowOf(place + 1);
      const found = await ask("query", ids, chosenHead.layer, chosenHead.head, [...state.off]);
      if (isLast()) fill(steps, drawSteps({ ...found, start }, text, place, model.config.head_size));
    };
  },
};

function drawSteps({ start, query, keys, values, scores, weights, context, joined, output, stream }, text, place, d) {
  const { layer, head } = chosenHead;
  const name = (j) => tokenName(text.ids[start + j]);

  const heaviest = Array.from(weights.keys()).sort((a, b) => weights[b] - weights[a]);
  const shown = heaviest.slice(0, KEYS).sort((a, b) => a - b);
  const cells = (j) => [vector(keys[j]), number(scores[j] * Math.sqrt(d)), number(scores[j]), number(weights[j], 3)];
  const rows = shown.map((j) => [name(j), ...cells(j), vector(values[j])]);

  const next = text.ids[place + 1];
  if (next !== undefined) rows.push([tokenName(next), "a later token", "", "−∞", number(0, 3), "masked"]);
  const rest = 1 - shown.reduce((sum, j) => sum + weights[j], 0);
  const terms = heaviest.slice(0, 3).map((j) => `${number(weights[j])} · ${number(values[j][0])}`);

  const others =
    weights.length > shown.length ? `The ${weights.length - shown.length} others share ${number(rest, 3)}.` : "";

  const places = `${head * d} to ${(head + 1) * d - 1}`;
  const caption = `Layer ${layer}, head ${head}: ${headName(layer, head) || "no name"}. ${others}`;
  const columns = ["token", "key k", "q · k", `÷ √${d}`, "softmax", "value v"];
  const sum = `${terms.join(" + ")}${weights.length > 3 ? " + …" : ""} = ${number(context[0])}`;
  const lengths = `, length ${norm2(output)}; added to the stream, which had length ${norm2(stream)}.`;

  return [
    paragraph("1. The query of ", name(place - start), " is q = ", vector(query), ` (${d} numbers).`),
    paragraph(
      "2. It is multiplied with each key and divided by the root of their size. ",
      "Later tokens are masked, and softmax makes weights of it.",
    ),
    scrolling("Scores and weights", table(caption, columns, rows)),
    paragraph(`3. The context vector is the sum of weight · value. First component: ${sum}. All: `, vector(context)),
    paragraph(`4. The context vectors of all heads are joined: ${joined.length} numbers; this head fills ${places}.`),
    paragraph("5. out_proj mixes them: ", vector(output), lengths),
  ];
}

function vector(numbers) {
  const first = Array.from(numbers.slice(0, COMPONENTS), (x) => number(x)).join(" ");
  return h("span", { className: "vector" }, `[${first}${numbers.length > COMPONENTS ? " …" : ""}]`);
}

function norm2(numbers) {
  return number(Math.sqrt(numbers.reduce((sum, x) => sum + x * x, 0)));
}
