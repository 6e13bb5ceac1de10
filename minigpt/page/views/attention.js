// Attention: every head as a small triangle, one large. A row is a token and what it looks at; the
// row of the chosen token lights up in the text itself.

import {
  button,
  fill,
  h,
  inGrid,
  lastAsked,
  number,
  paint,
  roving,
  scrolling,
  table,
  whatIsThis,
} from "../basics/dom.js";
import { ask, model } from "../text/client.js";
import { drawTokens } from "../text/sheet.js";
import { changed, state, windowOf } from "../text/state.js";
import { chosenPlace, tokenName } from "../text/writing.js";

export const chosenHead = { layer: 0, head: 0 };
const NAMED = 0.25; // a head is named after what takes at least this share of its attention
const IN_TABLE = 24; // tokens
const DOWN = { ArrowUp: -1, ArrowDown: 1 }; // where the keys lead
const RIGHT = { ArrowLeft: -1, ArrowRight: 1, Home: -1e9, End: 1e9 };
const options = { by: false, hideFirst: false, table: false };
let headScores = null; // by layer and head; undefined while they are measured

/** The name that a head has earned, with its score; empty if none. */
export function headName(layer, head) {
  if (!headScores) return "";
  const [name, score] = Object.entries(headScores[layer][head]).sort((a, b) => b[1] - a[1])[0];
  return score < NAMED ? "" : `${name} ${number(score)}`;
}

/** How much token i looks at token j; with the first token hidden, as a share of the rest. */
function weightOf({ weights, T }, i, j) {
  if (!options.hideFirst) return weights[i * T + j];
  const rest = 1 - weights[i * T];
  return j === 0 || rest < 1e-6 ? 0 : weights[i * T + j] / rest;
}

export const attentionView = {
  id: "attention",
  make(panel) {
    const { num_heads } = model.config;
    const heads = h("div", { className: "heads", role: "group", "aria-label": "Heads", "--columns": num_heads });

    const canvas = h("canvas", { "aria-hidden": "true" });
    const cell = h("div", { role: "gridcell", id: "cell" });
    const label = "Attention weights; the arrow keys move";
    const grid = h(
      "div",
      { role: "grid", tabIndex: 0, className: "matrix", "aria-label": label, "aria-activedescendant": "cell" },
      h("div", { role: "row" }, cell),
      canvas,
      ["stripe", "cursor"].map((className) => h("span", { className, "aria-hidden": "true" })),
    );

    const title = h("h3");
    const readout = h("p", { className: "readout" });
    const asTable = h("div");

    const option = (text, name) => {
      const onchange = (event) => ((options[name] = event.target.checked), changed());
      return h("label", {}, h("input", { type: "checkbox", onchange }), ` ${text}`);
    };
    const choices = [
      option("looked at by", "by"),
      option("hide the first token", "hideFirst"),
      option("as a table", "table"),
    ];

    panel.append(
      whatIsThis(
        "To read a token, each head takes something from the tokens before it; the attention weights say how much ",
        "from which, and add up to 1 in each row. Heads are named by what they do on random tokens that come ",
        "twice: “induction” looks at what followed the same token the last time.",
      ),
      h(
        "div",
        { className: "beside" },
        heads,
        h("div", { className: "large" }, title, h("div", { className: "row" }, choices), readout, grid, asTable),
      ),
    );

    roving(heads, "button", (key, at) => inGrid(key, at, num_heads));
    const asking = lastAsked();
    let small = {}; // the triangles on view
    let large = {};
    let drawn = ""; // of which text, head and theme the small ones are
    let column = null; // of the cursor

    const here = () => chosenPlace(true) - large.start;
    const move = (t, j) => {
      if (t < 0 || t >= large.T) return;
      state.chosen = large.start + t;
      column = Math.max(0, options.by ? Math.min(j, large.T - 1) : Math.min(j, t));
      changed();
    };

    grid.addEventListener("keydown", (event) => {
      if (!(event.key in DOWN || event.key in RIGHT) || !large.T) return;
      event.preventDefault();
      move(here() + (DOWN[event.key] ?? 0), (column ?? here()) + (RIGHT[event.key] ?? 0));
    });

    canvas.addEventListener("click", (event) => {
      const { left, top, width, height } = canvas.getBoundingClientRect();
      const down = (event.clientY - top) / height;
      const right = (event.clientX - left) / width;
      move(Math.floor(down * large.T), Math.floor(right * large.T));
      grid.focus();
    });

    return async () => {
      const place = chosenPlace(true);
      if (place < 0 || state.busy) return;
      const { text } = state;
      const { layer, head } = chosenHead;
      const isLast = asking();

      const off = [...state.off];
      const { ids, start } = windowOf(text.ids.length <= model.config.context_length ? text.ids.length : place + 1);
      const isIn = (found) =>
        found.text === text && found.n === text.ids.length && place >= found.start && place < found.start + found.T;
      const about = { text, n: text.ids.length, layer, head };
      const nextSmall = isIn(small) ? small : { ...(await ask("thumbnails", ids, off)), start, ...about };
      const isSame = isIn(large) && large.layer === layer && large.head === head;
      const next = isSame ? large : { ...(await ask("attention", ids, layer, head, off)), start, ...about };
      if (!isLast()) return;

      if (next !== large) column = null;
      const drawing = `${layer}.${head} ${state.theme} ${Boolean(headScores)}`;
      if (nextSmall !== small || drawing !== drawn) drawThumbnails(heads, nextSmall, num_heads);
      small = nextSmall;
      large = next;
      drawn = drawing;

      const name = headName(layer, head);
      if (headScores === null) {
        headScores = undefined;
        ask("headScores").then((scores) => ((headScores = scores ?? undefined), changed()));
      }

      title.textContent = `Layer ${layer}, head ${head}${name && `: ${name}`}`;
      drawLarge(place - large.start);
    };

    function drawLarge(t) {
      const { T, start } = large;
      paint(canvas, T, T, (i, j) => Math.sqrt(weightOf(large, i, j)));

      const row = Array.from({ length: T }, (_, j) => (options.by ? weightOf(large, j, t) : weightOf(large, t, j)));
      const most = Math.max(...row);
      const j = column ?? row.indexOf(most);
      const token = (k) => tokenName(state.text.ids[start + k]);
      const pair = options.by ? [token(j), " → ", token(t)] : [token(t), " → ", token(j)];

      fill(readout, ...pair, ` ${number(row[j])}`, column === null ? ", the strongest" : "");
      cell.textContent = readout.textContent;

      const [rowAt, columnAt] = options.by ? [j, t] : [t, j];
      const places = { "--row": rowAt, "--column": columnAt, "--cell": 1 };
      for (const key in places) grid.style.setProperty(key, places[key] / T);

      state.tints = {}; // relative to the strongest
      row.forEach((weight, k) => (state.tints[start + k] = Math.sqrt(weight / (most || 1))));
      drawTokens();
      grid.hidden = options.table;
      fill(asTable, options.table ? weightTable(large, t, token) : []);
    }
  },
};

function drawThumbnails(heads, { side, heads: layers }, count) {
  const items = layers.flat().map((bytes, i) => {
    const [layer, head] = [Math.floor(i / count), i % count];
    const isChosen = chosenHead.layer === layer && chosenHead.head === head;
    const canvas = h("canvas", { "aria-hidden": "true" });
    paint(canvas, side, side, (t, j) => bytes[t * side + j] / 255);
    const name = headName(layer, head);
    const short = name.replace(/ [\d.]+$/, "") || `${layer}.${head}`;
    const label = `${short}: layer ${layer}, head ${head}${name && `, ${name}`}`;
    const onclick = () => (Object.assign(chosenHead, { layer, head }), changed());
    const tabIndex = isChosen ? 0 : -1;
    const names = { "data-key": `${layer}.${head}`, "aria-label": label, title: label };
    const item = button(canvas, onclick, { ...names, tabIndex });
    item.append(h("span", {}, short));
    item.ariaPressed = String(isChosen);
    return item;
  });
  fill(heads, items);
}

function weightTable(large, t, token) {
  const first = Math.max(0, t - IN_TABLE + 1);
  const places = Array.from({ length: Math.min(IN_TABLE, large.T - first) }, (_, k) => first + k);
  const rows = places.map((i) => [token(i), ...places.map((j) => (j > i ? "" : number(weightOf(large, i, j))))]);
  const look = (row, column) => ({ className: places[row] === t || places[column - 1] === t ? "chosen" : "" });
  const caption = `Attention weights of ${places.length} of ${large.T} tokens: a row looks at the columns.`;
  return scrolling("Attention as a table", table(caption, ["token", ...places.map(token)], rows, look));
}
