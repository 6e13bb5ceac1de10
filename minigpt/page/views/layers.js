// Layer by layer (the logit lens): what the model would have said after each layer, here and at the places before.

import { fill, h, lastAsked, scrolling, table } from "../../web/dom.js";
import { say, string } from "../../web/strings.js";
import { chance } from "../basics/numbers.js";
import { ask } from "../core/client.js";
import { headsOff, state, subject, windowOf } from "../core/state.js";
import { tokenName } from "../core/writing.js";
import { rowName } from "./bars.js";

const COLUMN = 76; // pixels, about
const MOST_COLUMNS = 8;

export const layersView = {
  id: "layers",
  make(panel) {
    const sentence = h("p", { className: "sentence" });
    const box = h("div");
    panel.append(sentence, box);
    const asking = lastAsked();

    return async () => {
      const about = subject();
      if (about.window.ids.length === 0) {
        box.replaceChildren();
        return fill(sentence, say("layers.first"));
      }

      const { ids } = about.window;
      const fitting = Math.floor(panel.clientWidth / COLUMN) - 1;
      const count = lensPlaces(about, Math.max(2, Math.min(MOST_COLUMNS, fitting)));
      const isLast = asking();
      const rows = await ask("lens", ids, count, headsOff(), about.token ?? null);
      if (!isLast()) return;

      const first = about.place - count; // the token that the first column has read
      fill(sentence, lensSentence(rows, about));
      fill(box, drawLens(rows, first, about));
    };
  },
};

/** How many places there are to show, this one and those before it, that were predicted in the same window. */
function lensPlaces({ place, window }, most) {
  const last = Math.min(most, window.ids.length);
  let count = 1;
  while (count < last && windowOf(place - count).start === window.start) count++;
  return count;
}

/** From which layer on the model would have said what it says in the end, or the token that is there. */
function lensSentence(rows, { place, row, token }) {
  const here = rows.map((cells) => cells.at(-1));
  const said = token ?? here.at(-1).id;

  let since = rows.length; // the first guess after this layer and all later ones
  while (since > 0 && here[since - 1].id === said) since--;

  const chanceAfter = (layer) => {
    const { id, probability, next } = here[layer];
    const p = token === undefined || id === said ? probability : next;
    return chance("lens", p, { place, token: said, layer });
  };
  const words = { before: rowName(row), token: tokenName(said), layer: since, end: chanceAfter(rows.length - 1) };

  if (since === rows.length) return say("layers.never", { ...words, best: tokenName(here.at(-1).id) });
  if (since === 0) return say("layers.always", words);
  if (since === rows.length - 1) return say("layers.last", words);
  return say("layers.since", { ...words, there: chanceAfter(since) });
}

function drawLens(rows, first, { place }) {
  const { ids } = state.text;
  const heads = [string("layers.read"), ...rows[0].map((_, i) => rowName(first + i))];

  const body = rows.map((cells, layer) => [
    layer === 0 ? string("layers.start") : say("layers.after", { layer }),
    ...cells.map(({ id, probability }, i) => {
      const about = { place: first + i + 1, token: id, layer };
      return [tokenName(id), h("small", {}, chance("lens", probability, about))];
    }),
  ]);

  const look = (row, column) => {
    const predicted = first + column; // the place that this column predicts
    const chosen = column > 0 && predicted === place ? "chosen" : "";
    if (row < 0 || column === 0) return { className: chosen };

    const { id, probability } = rows[row][column - 1];
    const right = id === ids[predicted] ? "right" : "";
    return { className: `tinted ${right} ${chosen}`, "--tint": probability.toFixed(2) };
  };

  const wide = table(string("layers.caption"), heads, body, look);
  wide.className = "lens";
  return scrolling(string("layers.table"), wide);
}
