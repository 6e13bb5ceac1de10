// The logit lens: what the model would have said after each layer, token by token.

import { fill, h, lastAsked, percent, whatIsThis } from "./dom.js";
import { ask, tokenizer } from "./model.js";
import { chosenPlace, plain, state } from "./texts.js";

const COLUMNS = 8;

export const lensView = {
  id: "lens",
  title: "Layers",
  make(panel) {
    const table = h("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "Layers as a table" });
    panel.append(
      whatIsThis(
        "The logit lens reads the stream between two layers as if it were the end: the likeliest next token after ",
        "each layer. A column is a token of the text, the last row what the model says. A cell is as dark as its ",
        "guess is sure; bold is the token that did follow.",
      ),
      table,
    );
    const asking = lastAsked();
    return async () => {
      const place = chosenPlace(true);
      if (place < 0 || state.busy) return;
      const { text } = state;
      const isLast = asking();
      const from = Math.max(0, Math.min(place - COLUMNS + 2, text.ids.length - COLUMNS));
      const to = Math.min(text.ids.length - 1, Math.max(place, from + COLUMNS - 1));
      const found = await ask("lens", plain(text), from, to);
      if (isLast()) fill(table, drawLens(found, text, place));
    };
  },
};

function drawLens({ from, rows }, text, place) {
  const heads = rows[0].map((_, i) =>
    h("th", { scope: "col", className: from + i === place ? "chosen" : "" }, h("span", { className: "token" }, tokenizer.visible(text.ids[from + i]))),
  );
  const body = rows.map((row, layer) => {
    const name = layer === 0 ? "embedding" : `after layer ${layer - 1}`;
    const cells = row.map(({ id, probability }, i) => {
      const kind = id === text.ids[from + i + 1] ? "right" : "";
      const figure = h("small", {}, percent(probability));
      return h("td", { className: `tinted ${kind}`, "--tint": probability.toFixed(2) }, h("span", { className: "token" }, tokenizer.visible(id)), figure);
    });
    return h("tr", {}, h("th", { scope: "row" }, name), cells);
  });
  const chosen = rows.map((row) => row[place - from]?.next);
  const note = chosen.some((p) => p !== null && p !== undefined)
    ? `The token that followed “${tokenizer.visible(text.ids[place])}” had, layer by layer: ${chosen.map(percent).join(", ")}.`
    : "Nothing follows the last token yet.";
  return [
    h("table", { className: "lens" }, h("caption", {}, "The likeliest next token after each layer"), h("thead", {}, h("tr", {}, h("td"), heads)), h("tbody", {}, body)),
    h("p", { className: "readout" }, note),
  ];
}
