// The map: one picture of the whole model, with what it computes for the chosen token, small. Each box opens the view
// that shows it large; the open one is lit.

import { fill, h, lastAsked, roving } from "../../web/dom.js";
import { say, string } from "../../web/strings.js";
import { number } from "../../web/units.js";
import { chance, fact } from "../basics/numbers.js";
import { ask, model } from "../core/client.js";
import { headsOff, isOff, offKey, openView, state, subject } from "../core/state.js";
import { tokenName } from "../core/writing.js";
import { chooseLayer } from "../views/attention.js";
import { rowName } from "../views/bars.js";
import { drawHere } from "../views/chances.js";

const IN_TEXT = 40; // characters of the text
const IN_TOKENS = 3;
const BINS = 24; // bars or squares that a small picture is wide
const GUESSES = 3;
const AT_HEAD = ["attention", "numbers"]; // views of one head

const boxes = []; // {box, view, layer}: all buttons of the map
const askingForMap = lastAsked();
let map; // the element
let textEnd; // in it, where the end of the text is shown
let known = { key: "" }; // what the model has computed for which token

/** Fill the map, so that each of these views can be opened in it. */
export function makeMap(element, views) {
  map = element;
  map.ariaLabel = string("map.map");
  map.role = "navigation";
  const { num_layers } = model.config;

  textEnd = h("span", { className: "content" });
  const text = h("div", { className: "text" }, h("span", { className: "name" }, string("map.text")), textEnd);
  const first = [text, makeBox("tokens", "vectors"), makeBox("vectors", "vectors")];
  const layers = Array.from({ length: num_layers }, (_, layer) => [
    makeBox("attention", "attention", layer),
    makeBox("feedForward", "feedForward", layer),
  ]);
  const stream = makeBox("stream", "layers");
  const after = [makeBox("chances", "draw"), makeBox("draw", "draw")];

  const caption = (name) =>
    h("span", { className: `caption of-${name}`, "aria-hidden": "true" }, string(`map.${name}`));
  const grid = h(
    "div",
    { className: "layers", "--layers": num_layers },
    caption("attention"),
    caption("feedForward"),
    layers.flat(),
  );

  // The others are about the whole model.
  const withBox = boxes.map(({ view }) => view);
  const whole = views.filter((id) => !withBox.includes(id)).map((id) => makeBox("whole", id));
  const arrow = () => h("span", { className: "arrow", "aria-hidden": "true" }, "→");
  element.append(
    h("div", { className: "flow" }, [
      h("div", { className: "part" }, first),
      arrow(),
      h("div", { className: "part of-layers" }, h("div", { className: "layers-scroll" }, grid), stream),
      arrow(),
      h("div", { className: "part" }, after),
    ]),
    h("div", { className: "whole" }, whole),
  );

  roving(element, "button", inDirection);
  element.addEventListener("focusin", ({ target }) => {
    for (const { box } of boxes) box.tabIndex = box === target ? 0 : -1;
  });
}

/** A box of the map, which opens a view. */
function makeBox(name, view, layer = null) {
  const title = name === "whole" ? string(`views.${view}`) : string(`map.${name}`);
  const label = layer === null ? title : `${title}, ${string("map.layer")} ${layer + 1}`;
  const content = h("span", { className: "content" });

  const open = () => {
    if (view === "attention") chooseLayer(layer);
    openView(view, layer === null ? {} : { layer });
  };
  const properties = {
    type: "button",
    className: `box ${name}`,
    tabIndex: -1,
    onclick: open,
    "data-key": label,
    "data-view": view,
  };
  const box = h("button", properties, h("span", { className: "name" }, layer === null ? title : layer + 1), content);
  if (layer !== null) {
    box.ariaLabel = label;
    box.style.setProperty("--layer", layer + 1);
  }

  boxes.push({ name, box, content, view, layer });
  return box;
}

/** Draw what the model computes for the token that the views are about. */
export async function drawMap() {
  lightMap();
  const about = subject();
  const { ids } = about.window;
  const off = headsOff();

  const key = `${about.place} ${ids} ${offKey()}`;
  const isLast = askingForMap();
  let found = known;
  if (key !== known.key) {
    map.ariaBusy = "true";
    const [inside, logits] = ids.length ? await Promise.all([ask("overview", ids, off), ask("logits", ids, off)]) : [];
    if (!isLast()) return;
    found = { key, inside, logits };
  }

  drawText(about);
  if (found.inside) {
    if (found !== known || known.theme !== state.theme) drawInside(found.inside, about);
    drawChances(drawHere(found.logits, about.place), about);
  } else {
    for (const { content } of boxes) content.replaceChildren();
  }
  known = Object.assign(found, { theme: state.theme });
  map.ariaBusy = "false";
}

/** Light the boxes of the open view. */
export function lightMap() {
  let current = null;
  for (const { box, view, layer } of boxes) {
    const isOfHead = view === "attention" && AT_HEAD.includes(state.view);
    const isOpen = (view === state.view || isOfHead) && (layer === null || layer === state.focus.layer);
    if (isOpen) box.ariaCurrent = "true";
    else box.removeAttribute("aria-current");
    if (isOpen) current ??= box;
  }

  // One box is in the tab order: the one in use.
  if (map.contains(document.activeElement)) return;
  for (const { box } of boxes) box.tabIndex = box === (current ?? boxes[0].box) ? 0 : -1;
}

function contentOf(name) {
  return boxes.filter((box) => box.name === name).map(({ content }) => content);
}

/** The text's end and its last tokens, as far as the model reads them here. */
function drawText({ row, window }) {
  const { text } = state;
  const from = Math.max(text.hidden, window.start);
  const read = text.pieces.slice(from, row + 1).join("");
  const end = read.slice(-IN_TEXT);
  fill(textEnd, end.length < read.length ? `…${end}` : end);

  const last = [];
  for (let i = row; i >= Math.max(window.start, row - IN_TOKENS + 1); i--) last.push(rowName(i));
  fill(contentOf("tokens")[0], last);
}

/** What is inside the model: vector, heads, units, stream. */
function drawInside({ vector, norms, weights, units }, about) {
  const { num_layers, num_heads } = model.config;
  const T = about.window.ids.length;

  fill(contentOf("vectors")[0], paintBars(vector, 2 * BINS));

  contentOf("attention").forEach((content, layer) => {
    const ofLayer = weights.subarray(layer * num_heads * T, (layer + 1) * num_heads * T);
    // Of one token a head takes everything: a picture of that would say nothing.
    const isHeadOff = (head) => isOff(layer, head);
    fill(content, T > 1 ? paintHeads(ofLayer, { num_heads, T, bins: BINS, isHeadOff }) : []);
  });

  const ofUnits = units.length / num_layers;
  contentOf("feedForward").forEach((content, layer) => {
    fill(content, paintBars(units.subarray(layer * ofUnits, (layer + 1) * ofUnits), BINS));
  });

  const longest = Math.max(...norms);
  const lengthOf = (layer) => fact("norm", norms[layer], { place: about.place, layer }, number(norms[layer], 1));
  const bars = Array.from(norms, (norm) => h("span", { className: "height", "--share": norm / longest }));
  const ends = say("map.norms", { start: lengthOf(0), end: lengthOf(norms.length - 1) });
  fill(contentOf("stream")[0], h("span", { className: "heights" }, bars), h("span", { className: "ends" }, ends));
}

/** The first guesses, and where the die falls. */
function drawChances({ before, likeliest, pieces, isThrown, die, falls }, { place, token }) {
  const first = likeliest.slice(0, GUESSES);
  const guesses = first.map((id) => {
    const p = chance("probability", before[id], { place, token: id });
    return h("span", { className: "guess" }, tokenName(id), p);
  });
  fill(contentOf("chances")[0], guesses);

  const inStrip = pieces.slice(0, BINS).map(({ id, start, end }) => {
    const className = id === falls ? "piece drawn" : "piece";
    return h("span", { className, "--share": end - start });
  });
  const needle = isThrown ? h("span", { className: "needle", "--at": die }) : null;
  const strip = h("span", { className: "small-strip" }, inStrip, needle);
  fill(contentOf("draw")[0], strip, tokenName(token ?? falls));
}

// The small pictures, and where the arrow keys lead

/** Numbers as bars up and down from the middle, in as many as fit; several numbers share a bar: the largest. */
function paintBars(numbers, bins) {
  const count = Math.min(bins, numbers.length);
  const largest = new Float32Array(count);
  numbers.forEach((x, i) => {
    const bin = Math.floor((i * count) / numbers.length);
    if (Math.abs(x) > Math.abs(largest[bin])) largest[bin] = x;
  });
  const scale = largest.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1;

  const [canvas, context] = emptyCanvas(3 * count, 24);
  context.fillStyle = colourNamed("--quiet");
  largest.forEach((x, bin) => {
    const height = Math.max(0.5, (12 * Math.abs(x)) / scale);
    context.fillRect(3 * bin, x < 0 ? 12 : 12 - height, 2, height);
  });
  return canvas;
}

/** Where each head looks: a line a head, from the first token that the model sees at the left to this one. */
function paintHeads(weights, { num_heads, T, bins, isHeadOff }) {
  const count = Math.min(bins, T);
  const [canvas, context] = emptyCanvas(count, 4 * num_heads);

  for (let head = 0; head < num_heads; head++) {
    context.fillStyle = isHeadOff(head) ? colourNamed("--line") : `rgb(${colourNamed("--high")})`;
    const largest = new Float32Array(count);
    for (let j = 0; j < T; j++) {
      const bin = Math.floor((j * count) / T);
      largest[bin] = Math.max(largest[bin], weights[head * T + j]);
    }
    largest.forEach((weight, bin) => {
      context.globalAlpha = isHeadOff(head) ? 1 : Math.sqrt(weight); // so that small ones show
      context.fillRect(bin, 4 * head, 1, isHeadOff(head) ? 1 : 3);
    });
  }
  return canvas;
}

function emptyCanvas(width, height) {
  const canvas = h("canvas", { width, height, "aria-hidden": "true" });
  return [canvas, canvas.getContext("2d")];
}

function colourNamed(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** The nearest item where an arrow key points; sideways, where nothing is, the next one. */
function inDirection(key, at, items) {
  if (key === "Home") return 0;
  if (key === "End") return items.length - 1;
  const arrow = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
  if (!arrow) return undefined;

  const [dx, dy] = arrow;
  const from = items[at].getBoundingClientRect();
  const middle = ({ left, right, top, bottom }) => [(left + right) / 2, (top + bottom) / 2];
  const [x, y] = middle(from);

  let best = null;
  let least = Infinity;
  items.forEach((item, i) => {
    const [toX, toY] = middle(item.getBoundingClientRect());
    const along = (toX - x) * dx + (toY - y) * dy;
    const across = Math.abs((toX - x) * dy) + Math.abs((toY - y) * dx);
    const distance = along + 3 * across;
    if (i !== at && along > 4 && distance < least) {
      best = i;
      least = distance;
    }
  });
  return best ?? at + dx;
}
