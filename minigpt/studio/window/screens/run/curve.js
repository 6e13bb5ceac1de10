// How unsure it is, as a curve: its right edge is the planned end from the start, its height is bits for a byte, which
// are labelled in letters. The same numbers are in a table.

import { fill, h, scrolling, shape, table } from "../../../../web/dom.js";
import { string } from "../../../../web/strings.js";
import { clockOf, durationOf, number } from "../../../../web/units.js";
import { lettersOf } from "../../basics/amounts.js";
import { ACTIVE } from "../../basics/runs.js";
import { guessOf } from "./words.js";

const HEIGHT = 260; // of the picture, in pixels
const EDGE = { left: 46, right: 14, top: 10, bottom: 26 };
const TICKS = [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100, 200, 500, 1000]; // letters
const TIMES = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800]; // seconds from tick to tick
const POINTS = 400; // of the training line: more could not be seen
const EXPECTED = 0.1; // the expected end is drawn so much longer to both sides
const NEAR = 16; // pixels between two labels at least, one above the other
const ROOM = 58; // and side by side

/** The card of the curve. */
export function makeCurve(record) {
  const now = h("p", { className: "now" });
  const guess = h("p");
  const picture = h("div", { className: "picture" });
  const legend = h("ul", { className: "legend" });
  const numbers = h("details", {}, h("summary", {}, string("curve.numbers")));
  const title = h("h2", {}, string("curve.title"));
  const element = h("section", { className: "curve card" }, title, now, guess, picture, legend, numbers);
  const rows = h("div");
  numbers.append(rows);
  numbers.addEventListener("toggle", drawNumbers);
  new ResizeObserver(draw).observe(picture);

  function drawNumbers() {
    if (numbers.open) fill(rows, numbersOf(record));
  }

  function draw() {
    const said = sentences(record);
    now.textContent = said.now;
    guess.textContent = said.guess;
    guess.hidden = said.guess === "";

    const lines = linesOf(record);
    picture.replaceChildren(drawn(record, lines, picture.clientWidth));
    drawLegend(legend, record, lines);
    numbers.hidden = record.evaluations.length === 0;
    drawNumbers();
  }

  return { element, draw };
}

/** What the evaluation that counts says, in two sentences: {now, guess}. */
export function sentences(record) {
  const row = countingNow(record);
  if (row === undefined) return { now: waitingFor(record), guess: "" };

  const letters = lettersOf(record.letters(row.val_bits_per_byte));
  const right = row.val_right;
  return {
    now: string(row === record.evaluations.at(-1) ? "curve.now" : "curve.kept", { letters, step: number(row.step) }),
    guess: typeof right === "number" ? guessOf(right, record.run.curve?.has_letters ?? false) : "",
  };
}

/** The newest evaluation while it learns; afterwards the one whose model is kept. */
function countingNow({ run, evaluations }) {
  if (ACTIVE.includes(run.state)) return evaluations.at(-1);
  return evaluations.findLast((row) => row.val_bits_per_byte === run.bits);
}

/** "First point in about 4 seconds". */
function waitingFor(record) {
  const { run } = record;
  const evaluations = run.curve?.evaluations;
  const planned = record.planned();
  if (run.state !== "learning" || !evaluations || planned === null) return string("curve.noPoint");
  const { done, seconds } = record.steps.at(-1) ?? { done: 0, seconds: record.elapsed(Date.now() / 1000) ?? 0 };
  const left = ((1 / evaluations - done) * (planned - seconds)) / Math.max(1 - done, 0.01);
  return left > 1 ? string("curve.firstPoint", { time: durationOf(left) }) : string("curve.soon");
}

/** The lines of the picture: points [seconds, bits]. */
function linesOf({ run, steps, evaluations }) {
  return {
    training: thinned(steps.map((row) => [row.seconds, row.bits_per_byte])),
    validation: evaluations.map((row) => [row.seconds, row.val_bits_per_byte]),
    counting: evaluations.at(-1)?.counting_bits_per_byte ?? null,
    expected: run.curve?.expected_bits ?? null,
  };
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

function drawn(record, lines, width) {
  const wide = Math.max(width, 240);
  const label = string("curve.picture", { said: sentences(record).now });
  const svg = shape("svg", { viewBox: `0 0 ${wide} ${HEIGHT}`, width: wide, height: HEIGHT, role: "img" });
  svg.setAttribute("aria-label", label);

  const end = record.planned() ?? Math.max(60, ...lines.training.map((point) => point[0]));
  const [low, high] = rangeOf(lines);
  const right = wide - EDGE.right;
  const bottom = HEIGHT - EDGE.bottom;
  const x = (seconds) => EDGE.left + (Math.min(seconds / end, 1) || 0) * (right - EDGE.left);
  const y = (bits) => bottom - ((Math.min(Math.max(bits, low), high) - low) / (high - low)) * (bottom - EDGE.top);

  svg.append(...axes(record, { x, y, end, low, high, right, bottom }));
  const harder = record.run.curve?.harder_until ?? null;
  if (harder !== null && record.planned() !== null) {
    svg.append(shape("line", { class: "harder", x1: x(harder * end), x2: x(harder * end), y1: EDGE.top, y2: bottom }));
  }
  if (lines.expected !== null) {
    const span = { y1: y(lines.expected * (1 - EXPECTED)), y2: y(lines.expected * (1 + EXPECTED)) };
    svg.append(shape("line", { class: "expected", x1: right, x2: right, ...span }));
  }
  if (lines.counting !== null) {
    const level = y(lines.counting);
    svg.append(shape("line", { class: "counting", x1: EDGE.left, x2: right, y1: level, y2: level }));
  }
  const at = ([seconds, bits]) => `${x(seconds).toFixed(1)},${y(bits).toFixed(1)}`;
  svg.append(shape("polyline", { class: "training", points: lines.training.map(at).join(" ") }));
  svg.append(shape("polyline", { class: "validation", points: lines.validation.map(at).join(" ") }));
  for (const [seconds, bits] of lines.validation) {
    svg.append(shape("circle", { class: "validation", cx: x(seconds), cy: y(bits), r: 4 }));
  }
  return svg;
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

function axes(record, { x, y, end, low, high, right, bottom }) {
  const parts = [];
  let last = Number.POSITIVE_INFINITY;
  for (const letters of TICKS) {
    const bits = Math.log2(letters) / record.letterSize();
    const height = y(bits);
    if (bits < low || bits > high || last - height < NEAR) continue;
    last = height;
    parts.push(shape("line", { class: "grid", x1: EDGE.left, x2: right, y1: height, y2: height }));
    const place = { x: EDGE.left - 6, y: height + 4, "text-anchor": "end" };
    parts.push(shape("text", place, number(letters, Number.isInteger(letters) ? 0 : 1)));
  }

  const step = TIMES.find((seconds) => x(seconds) - x(0) >= ROOM) ?? TIMES.at(-1);
  for (let seconds = 0; right - x(seconds) > ROOM; seconds += step) {
    const place = { x: x(seconds), y: bottom + 18, "text-anchor": seconds === 0 ? "start" : "middle" };
    parts.push(shape("text", place, clockOf(seconds)));
  }
  parts.push(shape("text", { x: right + EDGE.right, y: bottom + 18, "text-anchor": "end" }, clockOf(end)));
  parts.push(shape("line", { class: "edge", x1: EDGE.left, x2: right, y1: bottom, y2: bottom }));
  parts.push(shape("line", { class: "edge", x1: right, x2: right, y1: EDGE.top, y2: bottom }));
  return parts;
}

/** Each line with its sentence, and where it is now. */
function drawLegend(legend, record, lines) {
  const has = {
    validation: true,
    counting: lines.counting !== null,
    training: true,
    expected: lines.expected !== null,
  };
  const values = {
    validation: countingNow(record)?.val_bits_per_byte,
    counting: lines.counting,
    training: lines.training.at(-1)?.[1],
    expected: lines.expected,
  };
  const isHarder = (record.run.curve?.harder_until ?? null) !== null;
  const items = Object.keys(has).filter((name) => has[name]);
  fill(
    legend,
    items.map((name) => {
      const sentence = string(name === "training" && isHarder ? "curve.trainingHarder" : `curve.${name}`);
      const bits = values[name] ?? null;
      const value = bits === null ? "" : string("curve.value", { letters: lettersOf(record.letters(bits)) });
      const line = h("b", {}, string(`curve.${name}Name`), value);
      return h("li", {}, swatch(name), h("span", {}, line, " ", sentence));
    }),
  );
}

/** A short piece of a line as it is drawn. */
function swatch(name) {
  const svg = shape("svg", { width: 28, height: 14, "aria-hidden": "true" });
  if (name === "validation") svg.append(shape("circle", { class: name, cx: 14, cy: 7, r: 4 }));
  else if (name === "expected") svg.append(shape("line", { class: name, x1: 14, x2: 14, y1: 1, y2: 13 }));
  else svg.append(shape("line", { class: name, x1: 2, x2: 26, y1: 7, y2: 7 }));
  return svg;
}

function numbersOf(record) {
  const names = ["time", "step", "validation", "training", "counting", "bits"];
  const heads = names.map((name) => string(`curve.${name}Head`));
  const rows = record.evaluations.map((row) => [
    clockOf(row.seconds),
    number(row.step),
    lettersOf(record.letters(row.val_bits_per_byte)),
    lettersOf(record.letters(row.train_bits_per_byte)),
    lettersOf(record.letters(row.counting_bits_per_byte)),
    number(row.val_bits_per_byte, 3),
  ]);
  const element = scrolling(string("curve.numbers"), table(string("curve.caption"), heads, rows));
  element.dataset.key = "numbers"; // it is made anew at each evaluation
  return element;
}
