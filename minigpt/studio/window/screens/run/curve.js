// How unsure it is, as a curve: its right edge is the planned end from the start, its height is bits for a byte, which
// are labelled in letters. The same numbers are in a table.

import { drawCurve, swatch } from "../../../../web/curve.js";
import { fill, h, scrolling, table } from "../../../../web/dom.js";
import { string } from "../../../../web/strings.js";
import { clockOf, durationOf, number } from "../../../../web/units.js";
import { ACTIVE, guessOf, lettersOf } from "../../basics/words.js";

const LETTERS = [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100, 200, 500, 1000]; // at the left edge

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
    guess.hidden = said.guess === "" && record.evaluations.length > 0;

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

/** The newest evaluation while it learns; afterwards the one whose model is kept, if it has a row. */
function countingNow({ run, evaluations }) {
  const newest = evaluations.at(-1);
  if (ACTIVE.includes(run.state)) return newest;
  return evaluations.findLast((row) => row.val_bits_per_byte === run.bits) ?? newest;
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

/** The lines of the picture, as the curve takes them. */
function linesOf({ run, steps, evaluations }) {
  return {
    training: steps.map((row) => [row.seconds, row.bits_per_byte]),
    validation: evaluations.map((row) => [row.seconds, row.val_bits_per_byte]),
    counting: evaluations.at(-1)?.counting_bits_per_byte ?? null,
    expected: run.curve?.expected_bits ?? null,
  };
}

/** The picture, whose right edge is the planned end. */
function drawn(record, lines, width) {
  const planned = record.planned();
  const end = planned ?? Math.max(60, ...lines.training.map((point) => point[0]));
  const harder = record.run.curve?.harder_until ?? null;
  const harderUntil = harder !== null && planned !== null ? harder * end : null;
  const levels = LETTERS.map((letters) => [
    Math.log2(letters) / record.letterSize(),
    number(letters, Number.isInteger(letters) ? 0 : 1),
  ]);

  const svg = drawCurve(width, { ...lines, end, levels, harderUntil });
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", string("curve.picture", { said: sentences(record).now }));
  return svg;
}

/** Each line with its sentence, and where it is now. */
function drawLegend(legend, record, lines) {
  const has = {
    validation: true,
    counting: lines.counting !== null || record.evaluations.length === 0, // it is found out with the first point
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

function numbersOf(record) {
  const names = ["time", "step", "validation", "training", "counting", "bits"];
  const heads = names.map((name) => string(`curve.${name}Head`));
  const lettersFor = (bits) => (typeof bits === "number" ? lettersOf(record.letters(bits)) : "");
  const rows = record.evaluations.map((row) => [
    clockOf(row.seconds),
    number(row.step),
    lettersFor(row.val_bits_per_byte),
    lettersFor(row.train_bits_per_byte),
    lettersFor(row.counting_bits_per_byte),
    number(row.val_bits_per_byte, 3),
  ]);
  const element = scrolling(string("curve.numbers"), table(string("curve.caption"), heads, rows));
  element.dataset.key = "numbers"; // it is made anew at each evaluation
  return element;
}
