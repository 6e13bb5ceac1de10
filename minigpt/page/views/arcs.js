// Arcs over the text: from where a token is predicted to the tokens that a head looks at there, as thick as the weights,
// and what the earlier tokens did. They lie over the text in an SVG of their own, which scrolls with it.

import { fill, h, shape } from "../../web/dom.js";
import { string } from "../../web/strings.js";
import { chance } from "../basics/numbers.js";
import { changed, headNumber, onChange, state } from "../core/state.js";
import { tokenName } from "../core/writing.js";
import { allLooks, currentLook, tint, tokenElement } from "../text/spans.js";
import { rowName } from "./bars.js";
import { explained, seen, weightsOf } from "./explaining.js";

const THICKEST = 12; // pixels: a weight of 1
const THINNEST = 0.01; // a weight below this is not drawn
const STRONGEST_BITS = 4; // an effect of so many bits has the strongest colour
const WEAKEST_BITS = 0.05;
const IN_STRIP = 8; // tokens in the version of one line
const overlay = shape("svg", { class: "arcs", "aria-hidden": "true" });
let picked = null; // of the view "why": {head: "1.2"} or {word: index, about}

/** What is picked of the explanation: a head, whose arcs are drawn, or a word, whose effect is. */
export function pickedPart(found) {
  if (picked?.word !== undefined && picked.about !== found) return null;
  return picked;
}

export function pick(what) {
  picked = what;
  changed();
}

/** Draw the arcs whenever something has changed, and when the lines of the text break anew. */
export function makeArcs() {
  for (const { layer } of allLooks()) new ResizeObserver(drawArcs).observe(layer);

  // The sheet is drawn in the same moment; arcs need its new places.
  onChange(() => queueMicrotask(drawArcs));
}

function drawArcs() {
  const { room } = currentLook();
  if (overlay.parentElement !== room) room.append(overlay);
  overlay.replaceChildren();
  const { view, focus, busy, chosen } = state;
  const isStreaming = busy && chosen === null;
  const showsHeads = view === "attention" || view === "numbers";
  if (isStreaming || !(showsHeads || view === "why")) return tint(null);

  const found = view === "numbers" ? seen() : explained();
  const source = found && sourceOf(found.place);
  if (!source) return tint(null);

  const part = pickedPart(found);
  if (showsHeads || part?.head) {
    drawHeadArcs(found, showsHeads ? focus : part.focus, source);
  } else {
    drawWordEffects(found, part?.word, source);
    tint(null);
  }
}

/** Where a token is predicted: at the end of the token before it. */
function sourceOf(place) {
  const row = tokenElement(place - 1);
  const rect = row?.textContent ? [...row.getClientRects()].at(-1) : null;
  if (rect) return { x: rect.right, y: rect.top };

  const first = placeOf(place);
  return first ? { x: first.left, y: first.top } : null;
}

/** Where a token begins on the screen; undefined if it is not shown. */
function placeOf(index) {
  return tokenElement(index)?.getClientRects()[0];
}

function drawHeadArcs(found, focus, source) {
  if (found.weights === null) return tint(null);

  const weights = weightsOf(found, focus);
  tint(Object.fromEntries(weights.map(({ to, weight }) => [to, weight])));

  for (const { to, weight } of weights) {
    const rect = placeOf(to);
    if (!rect || weight < THINNEST) continue;
    overlay.append(arc(source, rect, "attention", { "data-to": to, "stroke-width": THICKEST * weight }));
  }
}

/** Each earlier token, underlined by what it did; of the one that is picked an arc too. */
function drawWordEffects(found, word, source) {
  for (const [to, bits] of found.words) {
    const rect = placeOf(to);
    if (!rect || Math.abs(bits) < WEAKEST_BITS) continue;

    const strength = Math.min(1, Math.abs(bits) / STRONGEST_BITS);
    const kind = bits < 0 ? "gain" : "loss"; // less likely without it: it was a gain
    overlay.append(underline(rect, kind, strength, to));
    if (to === word) overlay.append(arc(source, rect, kind, { "data-to": to, "stroke-width": THICKEST * strength }));
  }
}

function arc(source, rect, kind, attributes) {
  const origin = overlay.getBoundingClientRect();
  const from = { x: source.x - origin.left, y: source.y - origin.top };
  const to = { x: rect.left + rect.width / 2 - origin.left, y: rect.top - origin.top };
  return shape("path", { class: `arc ${kind}`, d: curve(from, to), ...attributes });
}

/** A curve that rises from both ends, as far as there is room above them. */
function curve(from, to) {
  const distance = Math.hypot(from.x - to.x, from.y - to.y);
  const rise = Math.min(10 + 0.12 * distance, 44);
  const above = ({ y }) => Math.max(1, y - rise);
  const points = [to.x, above(to), from.x, above(from), from.x, from.y].map((x) => x.toFixed(1));
  return `M${to.x.toFixed(1)} ${to.y.toFixed(1)}C${points.join(" ")}`;
}

function underline({ left, bottom, width }, kind, opacity, to) {
  const origin = overlay.getBoundingClientRect();
  const place = { x: left - origin.left, y: bottom - origin.top - 2, width: Math.max(width, 4), height: 3, rx: 1.5 };
  return shape("rect", { class: `mark ${kind}`, "data-to": to, opacity: opacity.toFixed(3), ...place });
}

/** The same arcs in one line: the tokens that a head looks at most, and the one that is predicted, in the text's order. */
export function drawStrip(box, found, focus) {
  const weights = weightsOf(found, focus);
  const heaviest = weights.filter(({ weight }) => weight >= THINNEST).sort((a, b) => b.weight - a.weight);
  const shown = heaviest.slice(0, IN_STRIP).sort((a, b) => a.to - b.to);

  const head = headNumber(focus.layer, focus.head);
  const items = [];
  let next = found.start;
  for (const { to, weight } of shown) {
    if (to > next) items.push(h("span", { className: "gap" }, "…"));
    const about = { place: found.place, layer: focus.layer, head: focus.head, to };
    const figure = chance("weight", weight, about);
    items.push(h("span", { className: "looked-at" }, rowName(to), figure));
    next = to + 1;
  }
  if (next < found.place) items.push(h("span", { className: "gap" }, "…"));
  const goal = h("span", { className: "goal" }, found.place in state.text.ids ? tokenName(found.token) : "?");

  const arcs = shape("svg", { "aria-hidden": "true" });
  const line = h("div", { className: "line" }, arcs, items, goal);
  line.setAttribute("aria-label", `${string("attention.strip")} ${head}`);
  line.setAttribute("role", "group");
  fill(box, line);
  drawStripArcs(line, arcs, goal, shown);
  box.scrollLeft = box.scrollWidth; // the token in question is at the end
}

function drawStripArcs(line, arcs, goal, shown) {
  const origin = line.getBoundingClientRect();
  const middle = (element) => {
    const { left, width, top } = element.getBoundingClientRect();
    return { x: left + width / 2 - origin.left, y: top - origin.top };
  };

  arcs.setAttribute("width", line.scrollWidth);
  arcs.setAttribute("height", middle(goal).y);
  const looked = line.querySelectorAll(".looked-at");
  shown.forEach(({ weight }, i) => {
    const d = curve(middle(goal), middle(looked[i]));
    arcs.append(shape("path", { class: "arc attention", d, "stroke-width": THICKEST * weight }));
  });
}
