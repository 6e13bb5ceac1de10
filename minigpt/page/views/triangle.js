// All tokens at once: every head as a small triangle, one of them large. A row is a token of the window, a column a
// token that it looks at. The scale is absolute: the same weight has the same colour in every head.

import { button, fill, h, inGrid, lastAsked, roving, scrolling, table } from "../../web/dom.js";
import { say, string } from "../../web/strings.js";
import { number } from "../../web/units.js";
import { fact, percent } from "../basics/numbers.js";
import { ask, model } from "../core/client.js";
import { changed, headNumber, state } from "../core/state.js";
import { rowName } from "./bars.js";
import { headName } from "./heads.js";

const IN_TABLE = 24; // tokens
const IN_SCALE = [0, 0.05, 0.25, 0.5, 1]; // weights in the legend
const DOWN = { ArrowUp: -1, ArrowDown: 1 }; // where the keys lead
const RIGHT = { ArrowLeft: -1, ArrowRight: 1, Home: -1e9, End: 1e9 };

/** A function that draws the triangle of what is explained; `element` holds it, folded. */
export function makeTriangle() {
  const heads = h("div", { className: "heads", role: "group", "--columns": model.config.num_heads });
  heads.setAttribute("aria-label", string("triangle.heads"));

  const canvas = h("canvas", { "aria-hidden": "true" });
  const cell = h("div", { role: "gridcell", id: "cell" });
  const marks = ["stripe", "cursor", "row-label", "column-label"].map((className) =>
    h("span", { className, "aria-hidden": "true" }),
  );
  const properties = { role: "grid", tabIndex: 0, className: "matrix", "aria-activedescendant": "cell" };
  const grid = h("div", properties, h("div", { role: "row" }, cell), canvas, marks);
  grid.setAttribute("aria-label", string("triangle.keys"));

  const title = h("h3");
  const readout = h("p", { className: "readout" });
  const asTable = h("input", { type: "checkbox", onchange: changed });
  const tableBox = h("div");
  const large = h("div", { className: "large" }, title, readout, grid, scale(), tableBox);
  const beside = h("div", { className: "beside", hidden: true }, heads, large);
  const choice = h("label", {}, asTable, ` ${string("triangle.asTable")}`);
  const body = h("div", {}, h("p", { className: "how" }, string("triangle.how")), choice, beside);
  const element = h("details", { ontoggle: changed }, h("summary", {}, string("triangle.title")), body);

  const asking = lastAsked();
  let small = {}; // the triangles on view: {about, T, side, heads}
  let shown = {}; // the large one: {about, T, weights, found}
  let cursor = null; // row and column, counted in the window

  roving(heads, "button", (key, at) => inGrid(key, at, model.config.num_heads));
  grid.addEventListener("keydown", (event) => {
    if (!(event.key in DOWN || event.key in RIGHT) || !shown.T) return;
    event.preventDefault();
    moveTo(cursor.row + (DOWN[event.key] ?? 0), cursor.column + (RIGHT[event.key] ?? 0));
  });
  const point = (event) => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const row = Math.floor(((event.clientY - top) / height) * shown.T);
    const column = Math.floor(((event.clientX - left) / width) * shown.T);
    if (column <= row) moveTo(row, column);
  };
  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerdown", point);

  function moveTo(row, column) {
    const within = Math.max(0, Math.min(shown.T - 1, row));
    cursor = { row: within, column: Math.max(0, Math.min(column, within)) };
    drawCursor();
  }

  function drawCursor() {
    const { T, weights, found, about } = shown;
    const { row, column } = cursor;
    const [from, to] = [found.start + row, found.start + column];
    const weight = weights[row * T + column];
    const figure = fact("cell", weight, { place: found.place, ...about.focus, from, to }, percent(weight));

    fill(readout, say("triangle.cell", { row: rowName(from), column: rowName(to), share: figure }));
    cell.textContent = readout.textContent;
    const places = { "--row": row, "--column": column, "--cell": 1 };
    for (const key in places) grid.style.setProperty(key, places[key] / T);
    fill(grid.querySelector(".row-label"), rowName(from));
    fill(grid.querySelector(".column-label"), rowName(to));
  }

  const draw = async (found) => {
    if (!element.open) return;

    const isLast = asking();
    const focus = { layer: state.focus.layer, head: state.focus.head };
    body.ariaBusy = "true";
    const isSame = (kept) => kept.about?.found === found;
    if (!isSame(small)) small = { ...(await ask("thumbnails", found.ids, found.off)), about: { found } };
    const isSameHead =
      isSame(shown) &&
      headNumber(shown.about.focus.layer, shown.about.focus.head) === headNumber(focus.layer, focus.head);
    const next = isSameHead
      ? shown
      : { ...(await ask("attention", found.ids, focus.layer, focus.head, found.off)), found, about: { found, focus } };
    if (!isLast()) return;

    if (!isSame(shown)) cursor = null;
    shown = next;
    cursor ??= strongest(shown);
    body.ariaBusy = "false";
    beside.hidden = false;

    const role = headName(focus.layer, focus.head);
    fill(title, say("triangle.head", { head: headNumber(focus.layer, focus.head), role: role && `: ${role}` }));
    fill(heads, thumbnails(small));
    paint(canvas, shown.T, shown.T, (i, j) => Math.sqrt(shown.weights[i * shown.T + j]));
    drawCursor();
    grid.hidden = asTable.checked;
    fill(tableBox, asTable.checked ? weightTable(shown) : []);
  };
  return Object.assign(draw, { element });
}

/** Where the last row looks most. */
function strongest({ T, weights }) {
  const last = weights.subarray((T - 1) * T, T * T);
  return { row: T - 1, column: last.reduce((best, weight, j) => (weight > last[best] ? j : best), 0) };
}

function thumbnails({ side, heads: layers }) {
  return layers.flatMap((heads, layer) =>
    heads.map((bytes, head) => {
      const isChosen = state.focus.layer === layer && state.focus.head === head;
      const name = headNumber(layer, head);
      const role = headName(layer, head);
      const canvas = h("canvas", { "aria-hidden": "true" });
      paint(canvas, side, side, (t, j) => bytes[t * side + j] / 255);

      const choose = () => {
        Object.assign(state.focus, { layer, head, follows: false });
        changed();
      };
      const label = string("triangle.head", { head: name, role: role && `: ${role}` });
      const item = button(canvas, choose, { "data-key": `small ${name}`, title: label, tabIndex: isChosen ? 0 : -1 });
      item.setAttribute("aria-label", label);
      item.append(h("span", {}, name));
      item.ariaPressed = String(isChosen);
      return item;
    }),
  );
}

/** The weights that some colours mean. */
function scale() {
  const marks = IN_SCALE.map((weight) =>
    h("span", { className: "mark", "--at": Math.sqrt(weight) }, `${100 * weight} %`),
  );
  return h("div", { className: "weight-scale" }, h("div", { className: "colours" }), marks);
}

/** The last rows and columns of the triangle with their numbers. */
function weightTable({ T, weights, found, about }) {
  const first = Math.max(0, T - IN_TABLE);
  const places = Array.from({ length: T - first }, (_, k) => first + k);
  const figure = (i, j) => {
    const at = { place: found.place, ...about.focus, from: found.start + i, to: found.start + j };
    return fact("cell", weights[i * T + j], at, number(weights[i * T + j], 2));
  };
  const name = (i) => rowName(found.start + i);
  const rows = places.map((i) => [name(i), ...places.map((j) => (j > i ? "" : figure(i, j)))]);
  const caption = string("triangle.caption", { n: String(places.length), all: String(T) });
  return scrolling(string("triangle.table"), table(caption, [string("triangle.token"), ...places.map(name)], rows));
}

/** Draw weights (rows, columns), from 0 to 1, each a pixel; what no row may look at stays empty. */
function paint(canvas, rows, columns, weightAt) {
  const style = getComputedStyle(document.documentElement);
  const [low, high] = ["--low", "--high"].map((name) => style.getPropertyValue(name).split(" ").map(Number));
  Object.assign(canvas, { width: columns, height: rows });
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column <= Math.min(row, columns - 1); column++) {
      const at = 4 * (row * columns + column);
      const weight = weightAt(row, column);
      for (let c = 0; c < 3; c++) image.data[at + c] = low[c] + (high[c] - low[c]) * weight;
      image.data[at + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
}
