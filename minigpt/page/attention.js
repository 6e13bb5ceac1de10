// Attention: every head as a small triangle, one large. A row is a token and what it looks at; the
// row of the chosen token lights up in the text itself.

import { button, fill, h, inGrid, lastAsked, number, paint, roving, whatIsThis } from "./dom.js";
import { ask, model, tokenizer } from "./model.js";
import { changed, chosenPlace, plain, state } from "./texts.js";
import { drawTokens } from "./tokens.js";

export const chosenHead = { layer: 0, head: 0 };
const NAMED = 0.25; // a head is named after what takes at least this share of its attention
const TABLE = 24; // tokens in the table
const look = { by: false, hideFirst: false, table: false };
let headScores = null;

/** The name that a head has earned, with its score; empty if none. */
export function headName(layer, head) {
  if (!headScores) return "";
  const [name, score] = Object.entries(headScores[layer][head]).sort((a, b) => b[1] - a[1])[0];
  return score < NAMED ? "" : `${name} ${number(score)}`;
}

/** What the row or the column of a token holds, the first token left out if it is hidden. */
export function rowOf(weights, T, t, by, hideFirst) {
  const row = Array.from({ length: T }, (_, j) => (by ? weights[j * T + t] : weights[t * T + j]));
  const rows = Array.from({ length: T }, (_, j) => 1 - weights[(by ? j : t) * T]);
  if (!hideFirst) return row;
  return row.map((weight, j) => ((by ? t : j) === 0 || rows[j] <= 1e-6 ? 0 : weight / rows[j]));
}

export const attentionView = {
  id: "attention",
  title: "Attention",
  make(panel) {
    const { num_layers, num_heads } = model.config;
    const heads = h("div", { className: "heads", role: "group", "aria-label": "Heads", "--columns": num_heads });
    const canvas = h("canvas", { "aria-hidden": "true" });
    const cell = h("div", { role: "gridcell", id: "cell" });
    const grid = h(
      "div",
      { role: "grid", tabIndex: 0, className: "matrix", "aria-label": "Attention weights: arrow keys move", "aria-activedescendant": "cell" },
      h("div", { role: "row" }, cell), canvas, h("span", { className: "cursor", "aria-hidden": "true" }),
    );
    const title = h("h3");
    const readout = h("p", { className: "readout" });
    const table = h("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "Attention as a table" });
    const option = (label, name) => {
      const box = h("input", { type: "checkbox", onchange: () => ((look[name] = box.checked), changed()) });
      return h("label", {}, box, ` ${label}`);
    };
    panel.append(
      whatIsThis(
        "To read a token, each head takes something from the tokens before it; the attention weights say how much ",
        "from which, and add up to 1 in each row. Heads are named by what they do on random tokens that come ",
        "twice: “induction” looks at what followed the same token the last time.",
      ),
      heads, title,
      h("div", { className: "row" }, option("what looks at the token, not what it looks at", "by"), option("hide the first token", "hideFirst"), option("as a table", "table")),
      readout, grid, table,
    );
    roving(heads, "button", (key, at) => inGrid(key, at, num_heads));
    const asking = lastAsked();
    let small = { key: "" };
    let large = { key: "" };
    let drawn = ""; // what the small triangles show
    let column = null; // of the cursor in the large triangle
    const move = (t, j) => {
      if (t < 0 || t >= large.T) return;
      state.hovered = null;
      state.chosen = large.start + t;
      column = Math.max(0, Math.min(j, t));
      changed();
    };
    const at = () => chosenPlace(true) - large.start;
    grid.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -1e9], End: [0, 1e9] };
      if (!(event.key in steps) || !large.T) return;
      event.preventDefault();
      const [dt, dj] = steps[event.key];
      move(at() + dt, (column ?? at()) + dj);
    });
    canvas.addEventListener("click", (event) => {
      const side = canvas.getBoundingClientRect();
      const [t, j] = [(event.clientY - side.top) / side.height, (event.clientX - side.left) / side.width];
      move(Math.floor(t * large.T), Math.floor(j * large.T));
      grid.focus();
    });
    const drawLarge = () => {
      const { T, weights, start } = large;
      const t = at();
      if (t < 0 || t >= T) return;
      const hide = look.hideFirst;
      paint(canvas, T, T, (row, j) => {
        const rest = hide ? 1 - weights[row * T] : 1;
        return hide && (j === 0 || rest <= 1e-6) ? 0 : Math.sqrt(weights[row * T + j] / rest);
      });
      const { layer, head } = chosenHead;
      const name = headName(layer, head);
      title.textContent = `Layer ${layer}, head ${head}${name ? ` · ${name}` : ""}`;
      const row = rowOf(weights, T, t, look.by, hide);
      const best = row.map((weight, j) => [weight, j]).sort((a, b) => b[0] - a[0])[0][1];
      const j = column === null ? best : Math.min(column, look.by ? T - 1 : t);
      const token = (k) => `“${tokenizer.visible(state.text.ids[start + k])}”`;
      const text = look.by
        ? `${token(j)} → ${token(t)} ${number(row[j])}: so much of what ${token(j)} looks at is ${token(t)}`
        : `${token(t)} → ${token(j)} ${number(row[j])}: so much of what ${token(t)} looks at is ${token(j)}`;
      readout.textContent = text + (column === null ? ", its strongest." : ".");
      cell.textContent = `${token(t)} → ${token(j)} ${number(row[j])}`;
      grid.style.setProperty("--row", t / T);
      grid.style.setProperty("--column", (look.by ? t : j) / T);
      grid.style.setProperty("--cell", 1 / T);
      const tints = {};
      row.forEach((weight, k) => (tints[start + k] = Math.sqrt(weight)));
      state.tints = tints;
      grid.hidden = look.table;
      table.hidden = !look.table;
      if (look.table) fill(table, weightTable(weights, T, t, start, token));
    };
    return async () => {
      const place = chosenPlace(true);
      if (place < 0 || state.busy) return;
      const { text } = state;
      const isLast = asking();
      headScores ??= await ask("headScores");
      if (small.text !== text || small.n !== text.ids.length || place < small.start || place >= small.start + small.T) {
        small = { ...(await ask("thumbnails", plain(text), place)), text, n: text.ids.length };
        drawn = "";
        if (!isLast()) return;
      }
      const key = `${chosenHead.layer}.${chosenHead.head} ${small.start} ${text.ids.length}`;
      if (large.key !== key || large.text !== text) {
        const next = await ask("attention", plain(text), place, chosenHead.layer, chosenHead.head);
        if (!isLast()) return;
        large = { ...next, key, text };
        column = null;
      }
      const drawing = [small.start, small.n, key, state.theme].join();
      if (drawing !== drawn) drawThumbnails(heads, small, num_layers, num_heads);
      drawn = drawing;
      drawLarge();
      drawTokens();
    };
  },
};

function drawThumbnails(heads, { side, heads: pictures }, layers, count) {
  const buttons = [];
  for (let layer = 0; layer < layers; layer++) {
    for (let head = 0; head < count; head++) {
      const isChosen = chosenHead.layer === layer && chosenHead.head === head;
      const canvas = h("canvas", { "aria-hidden": "true" });
      const bytes = pictures[layer][head];
      paint(canvas, side, side, (t, j) => bytes[t * side + j] / 255);
      const name = headName(layer, head);
      const label = `layer ${layer}, head ${head}${name ? `, ${name}` : ""}`;
      const go = () => (Object.assign(chosenHead, { layer, head }), changed());
      const item = button(canvas, go, { "data-key": `${layer}.${head}`, tabIndex: isChosen ? 0 : -1, "aria-label": label, title: label });
      item.append(h("span", { "aria-hidden": "true" }, name.replace(/ [\d.]+$/, "") || `${layer}.${head}`));
      item.ariaPressed = String(isChosen);
      buttons.push(item);
    }
  }
  fill(heads, buttons);
}

function weightTable(weights, T, t, start, token) {
  const first = Math.max(0, Math.min(t - TABLE + 1, T - TABLE));
  const places = Array.from({ length: Math.min(TABLE, T - first) }, (_, k) => first + k);
  const head = h("tr", {}, h("th", { scope: "col" }, "looks at →"), places.map((j) => h("th", { scope: "col" }, token(j))));
  const rows = places.map((i) =>
    h("tr", { className: i === t ? "chosen" : "" }, h("th", { scope: "row" }, token(i)), places.map((j) => h("td", {}, j > i ? "" : number(weights[i * T + j])))),
  );
  const caption = `The attention weights of ${places.length} of ${T} tokens, from token ${start + first + 1} on.`;
  return h("table", {}, h("caption", {}, caption), h("thead", {}, head), h("tbody", {}, rows));
}
