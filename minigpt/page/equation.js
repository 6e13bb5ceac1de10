// One query followed through the equation with its own numbers: from q and the keys to what the
// layer adds to the stream.

import { chosenHead, headName } from "./attention.js";
import { fill, h, lastAsked, number, whatIsThis } from "./dom.js";
import { ask, model, tokenizer } from "./model.js";
import { changed, chosenPlace, plain, state } from "./texts.js";

const KEYS = 8; // how many of the keys are shown, those with the largest weights
const COMPONENTS = 4;

export const equationView = {
  id: "equation",
  title: "By numbers",
  make(panel) {
    const { num_layers, num_heads, head_size } = model.config;
    const pick = (name, count) => {
      const choices = Array.from({ length: count }, (_, i) => h("option", { value: i }, i));
      return h("select", { "aria-label": name, onchange: (event) => ((chosenHead[name] = Number(event.target.value)), changed()) }, choices);
    };
    const [layer, head] = [pick("layer", num_layers), pick("head", num_heads)];
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
      Object.assign(layer, { value: chosenHead.layer });
      Object.assign(head, { value: chosenHead.head });
      const { text } = state;
      const isLast = asking();
      const found = await ask("query", plain(text), place, chosenHead.layer, chosenHead.head);
      if (isLast()) fill(steps, drawSteps(found, text, place, head_size));
    };
  },
};

function drawSteps(found, text, place, head_size) {
  const { start, query, keys, values, scores, weights, context, joined, output, stream } = found;
  const { layer, head } = chosenHead;
  const name = (j) => h("b", { className: "token" }, tokenizer.visible(text.ids[start + j]));
  const order = Array.from(weights.keys()).sort((a, b) => weights[b] - weights[a]).slice(0, KEYS);
  order.sort((a, b) => a - b);
  const root = Math.sqrt(head_size);
  const rest = 1 - order.reduce((sum, j) => sum + weights[j], 0);
  const columns = ["token", "key k", "q · k", `÷ √${head_size}`, "softmax", "value v"];
  const rows = order.map((j) =>
    h(
      "tr", { "--tint": weights[j].toFixed(2) },
      h("th", { scope: "row" }, name(j)), h("td", {}, vector(keys[j])), h("td", {}, number(scores[j] * root)),
      h("td", {}, number(scores[j])), h("td", { className: "weight" }, number(weights[j], 3)), h("td", {}, vector(values[j])),
    ),
  );
  const next = text.ids[place + 1];
  if (next !== undefined) {
    const masked = h("td", { colSpan: 3 }, "−∞ → 0, masked: a later token");
    rows.push(h("tr", { className: "masked" }, h("th", { scope: "row" }, h("b", { className: "token" }, tokenizer.visible(next))), h("td"), masked, h("td")));
  }
  const others = weights.length - order.length;
  const caption = `Token ${place + 1}, layer ${layer}, head ${head}${headName(layer, head) ? `: ${headName(layer, head)}` : ""}`;
  const shown = order.slice().sort((a, b) => weights[b] - weights[a]).slice(0, 3);
  const sum = shown.map((j) => `${number(weights[j])} · ${number(values[j][0])}`).join(" + ");
  const length = (v) => number(Math.sqrt(v.reduce((s, x) => s + x * x, 0)));
  return [
    h("p", {}, "1. The query of ", name(place - start), " is q = ", vector(query), ` (${head_size} numbers).`),
    h("p", {}, "2. It is multiplied with each key, divided by the root of their size, later tokens are masked, and softmax makes weights of it."),
    h(
      "div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "Scores and weights" },
      h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, columns.map((c) => h("th", { scope: "col" }, c)))), h("tbody", {}, rows)),
    ),
    others > 0 ? h("p", {}, `The ${others} other tokens share ${number(rest, 3)}.`) : null,
    h("p", {}, `3. The context vector is the sum of weight · value. First component: ${sum}${weights.length > 3 ? " + …" : ""} = ${number(context[0])}. All: `, vector(context)),
    h("p", {}, `4. The context vectors of all heads are joined (${joined.length} numbers, length ${length(joined)}): head ${head} fills places ${head * head_size} to ${(head + 1) * head_size - 1}.`),
    h("p", {}, `5. out_proj mixes them: `, vector(output), `, length ${length(output)}. This is added to the stream, which had length ${length(stream)}.`),
  ];
}

function vector(numbers) {
  const first = Array.from(numbers.slice(0, COMPONENTS), (x) => number(x)).join("  ");
  return h("span", { className: "vector" }, `[${first}${numbers.length > COMPONENTS ? " …" : ""}]`);
}
