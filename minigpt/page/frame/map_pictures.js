// The small pictures of the map, and where the arrow keys lead in it.

import { h } from "../../web/dom.js";

/** Numbers as bars up and down from the middle, in as many as fit; several numbers share a bar: the largest. */
export function paintBars(numbers, bins) {
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
export function paintHeads(weights, { num_heads, T, bins, isHeadOff }) {
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
export function inDirection(key, at, items) {
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
