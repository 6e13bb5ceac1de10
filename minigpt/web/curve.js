// The curve of a training: how many bits it needs for a byte, over its time, of the text that it studies and of the text
// that was set aside. The page shows with it how a model has learned, the studio's window how one learns.

import { shape } from "./dom.js";
import { clockOf } from "./units.js";

const HEIGHT = 260; // of the picture, in pixels
const NARROWEST = 240;
const EDGE = { left: 46, right: 14, top: 10, bottom: 26 };
const TIMES = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800]; // seconds from tick to tick
const POINTS = 400; // of the training line: more could not be seen
const EXPECTED = 0.1; // the expected end is drawn so much longer to both sides
const ABOVE = 16; // pixels between two labels at least, one above the other
const BESIDE = 58; // and side by side

/**
 * The curve as an SVG that is so wide.
 *
 * `training` and `validation` are points [seconds, bits]; `counting` is the level of a table of counts, `expected` where
 * such a training ends. `end` is the time at the right edge, `levels` are the labels at the left: [bits, words]. The
 * training is made harder until `harderUntil`, and `moment` is the time that is looked at. null: it is not there.
 */
export function drawCurve(
  width,
  { training, validation, counting = null, expected = null, end, levels, harderUntil = null, moment = null },
) {
  const wide = Math.max(width, NARROWEST);
  const thin = thinned(training);
  const [low, high] = rangeOf({ training: thin, validation, counting, expected });
  const right = wide - EDGE.right;
  const bottom = HEIGHT - EDGE.bottom;
  const x = (seconds) => EDGE.left + (Math.min(seconds / end, 1) || 0) * (right - EDGE.left);
  const y = (bits) => bottom - ((Math.min(Math.max(bits, low), high) - low) / (high - low)) * (bottom - EDGE.top);

  const across = (name, bits) => shape("line", { class: name, x1: EDGE.left, x2: right, y1: y(bits), y2: y(bits) });
  const upright = (name, at, y1 = EDGE.top, y2 = bottom) => shape("line", { class: name, x1: at, x2: at, y1, y2 });
  const at = ([seconds, bits]) => `${x(seconds).toFixed(1)},${y(bits).toFixed(1)}`;
  const line = (name, points) => shape("polyline", { class: name, points: points.map(at).join(" ") });

  const shownLevels = levels.filter(([bits]) => bits >= low && bits <= high);
  const svg = shape("svg", { class: "curve", viewBox: `0 0 ${wide} ${HEIGHT}`, width: wide, height: HEIGHT });
  svg.append(
    ...levelLabels(shownLevels, across, y),
    ...timeLabels(end, x, right, bottom),
    across("edge", low),
    upright("edge", right),
  );

  if (harderUntil !== null) svg.append(upright("harder", x(harderUntil)));
  if (expected !== null) {
    svg.append(upright("expected", right, y(expected * (1 - EXPECTED)), y(expected * (1 + EXPECTED))));
  }
  if (counting !== null) svg.append(across("counting", counting));
  if (moment !== null) svg.append(upright("moment", x(moment)));

  svg.append(line("training", thin), line("validation", validation));
  for (const [seconds, bits] of validation) {
    const isLookedAt = seconds === moment ? " looked-at" : "";
    const place = { cx: x(seconds), cy: y(bits), r: isLookedAt ? 6 : 4 };
    svg.append(shape("circle", { class: `validation${isLookedAt}`, ...place }));
  }
  return svg;
}

/** A short piece of a line as it is drawn, for a legend. */
export function swatch(name) {
  const svg = shape("svg", { class: "curve", width: 28, height: 14, "aria-hidden": "true" });
  if (name === "validation") svg.append(shape("circle", { class: name, cx: 14, cy: 7, r: 4 }));
  else if (name === "expected") svg.append(shape("line", { class: name, x1: 14, x2: 14, y1: 1, y2: 13 }));
  else svg.append(shape("line", { class: name, x1: 2, x2: 26, y1: 7, y2: 7 }));
  return svg;
}

/** At most so many points, each the mean of its neighbours. */
function thinned(points) {
  const size = Math.ceil(points.length / POINTS);
  const kept = [];
  for (let i = 0; i < points.length; i += size) {
    const group = points.slice(i, i + size);
    const mean = (part) => group.reduce((sum, point) => sum + point[part], 0) / group.length;
    kept.push([mean(0), mean(1)]);
  }
  return kept;
}

/** The bits at the lower and the upper edge. A training that begins very unsure does not press all else together. */
function rangeOf({ training, validation, counting, expected }) {
  const marks = validation.map((point) => point[1]);
  if (counting !== null) marks.push(counting);
  if (expected !== null) marks.push(expected * (1 - EXPECTED), expected * (1 + EXPECTED));
  const all = [...marks, ...training.map((point) => point[1])];
  if (all.length === 0) return [0, 4];

  const most = validation.length > 0 ? 1.6 * Math.max(...marks) : Number.POSITIVE_INFINITY; // alone it is seen whole
  const low = Math.min(...all);
  const high = Math.min(Math.max(...all), most);
  const room = Math.max(0.08 * (high - low), 0.02);
  return [Math.max(low - room, 0), high + room];
}

/** Levels with their labels, from below; of those that are too near each other the upper one is left out. */
function levelLabels(levels, across, y) {
  const parts = [];
  let last = Number.POSITIVE_INFINITY;
  for (const [bits, words] of levels) {
    const height = y(bits);
    if (last - height < ABOVE) continue;
    last = height;
    parts.push(across("grid", bits));
    parts.push(shape("text", { x: EDGE.left - 6, y: height + 4, "text-anchor": "end" }, words));
  }
  return parts;
}

function timeLabels(end, x, right, bottom) {
  const parts = [];
  const label = (at, seconds, anchor) =>
    parts.push(shape("text", { x: at, y: bottom + 18, "text-anchor": anchor }, clockOf(seconds)));

  const step = TIMES.find((seconds) => x(seconds) - x(0) >= BESIDE) ?? TIMES.at(-1);
  for (let seconds = 0; right - x(seconds) > BESIDE; seconds += step) {
    label(x(seconds), seconds, seconds === 0 ? "start" : "middle");
  }
  label(right + EDGE.right, end, "end");
  return parts;
}
