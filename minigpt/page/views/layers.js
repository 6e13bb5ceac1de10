// The logit lens: what the model would have said after each layer, token by token.

import { fill, h, lastAsked, percent, scrolling, table, whatIsThis } from "../basics/dom.js";
import { ask, tokenizer } from "../text/client.js";
import { state, windowOf } from "../text/state.js";
import { chosenPlace, tokenName } from "../text/writing.js";

const COLUMNS = innerWidth < 500 ? 4 : 8; // a phone shows fewer

export const layersView = {
  id: "layers",
  make(panel) {
    const box = h("div");
    panel.append(
      whatIsThis(
        "The logit lens reads the stream between two layers as if it were the end: the likeliest next token after ",
        "each layer. A column is a token of the text, the last row what the model says. A cell is as dark as its ",
        "guess is sure; underlined is the token that did follow.",
      ),
      box,
    );

    const asking = lastAsked();
    return async () => {
      const place = chosenPlace(true);
      if (place < 0 || state.busy) return;

      const { text } = state;
      const isLast = asking();
      const from = Math.max(0, Math.min(place - COLUMNS + 2, text.ids.length - COLUMNS));
      const to = Math.min(text.ids.length - 1, Math.max(place, from + COLUMNS - 1));
      const { ids, start } = windowOf(to + 1);
      const first = Math.max(from, start);
      const rows = await ask("lens", ids, to - first + 1, [...state.off]);
      if (isLast()) fill(box, drawLens({ from: first, rows }, text, place));
    };
  },
};

function drawLens({ from, rows }, text, place) {
  const heads = ["read", ...rows[0].map((_, i) => tokenName(text.ids[from + i]))];
  const body = rows.map((row, layer) => [
    layer === 0 ? "embedding" : `after layer ${layer - 1}`,
    ...row.map(({ id, probability }) => [tokenName(id), h("small", {}, percent(probability))]),
  ]);

  const look = (row, column) => {
    const chosen = from + column - 1 === place && column > 0 ? "chosen" : "";
    if (row < 0 || column === 0) return { className: chosen };
    const { id, probability } = rows[row][column - 1];
    const right = id === text.ids[from + column] ? "right" : "";
    return { className: `tinted ${right} ${chosen}`, "--tint": probability.toFixed(2) };
  };

  const chosen = rows.map((row) => row[place - from]?.next);
  const isKnown = chosen.every((p) => typeof p === "number");
  const note = `What followed “${tokenizer.visible(text.ids[place])}” had, layer by layer: ${isKnown && chosen.map(percent).join(", ")}.`;

  const wide = table("The likeliest next token after each layer", heads, body, look);
  wide.className = "lens";
  return [
    scrolling("Layers as a table", wide),
    h("p", { className: "readout" }, isKnown ? note : "Nothing follows the last token yet."),
  ];
}
