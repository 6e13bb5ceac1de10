// How it learned: the loss at each evaluation of the training as a curve, and what the model wrote at that moment.
// Both are in the file of the page; a slider goes through them. Where the file also holds the weights of some steps, the
// slider moves the model of the whole page.

import { button, fill, h, number, shape } from "../basics/dom.js";
import { say, string } from "../basics/strings.js";
import { durationOf } from "../basics/units.js";
import { model } from "../text/client.js";
import { whenOf } from "../text/controls.js";
import { lookAtStep, state } from "../text/state.js";
import { rewrite } from "../text/writing.js";

const HEIGHT = 190; // pixels of the curve
const ABOVE = 24; // for the name of its unit
const BELOW = 24; // for the times
const BESIDE = 44; // for the figures at the left

export const learnedView = {
  id: "learned",
  make(panel) {
    const moments = momentsOf(model);
    const measured = model.history;
    if (measured.length === 0) {
      panel.append(h("p", {}, string("learned.unknown")));
      return () => {};
    }

    const sentence = h("p", { className: "readout" });
    const onPage = h("p", { hidden: model.kept.length === 0 });
    const curve = shape("svg", { class: "curve", height: HEIGHT, "aria-hidden": "true" });
    const slider = h("input", {
      type: "range",
      min: 0,
      max: moments.length - 1,
      value: moments.length - 1,
      "aria-label": string("learned.slider"),
    });
    const sample = h("div", { className: "sample" });

    panel.append(
      sentence,
      onPage,
      h("p", {}, string(measured.length === 1 ? "learned.once" : "learned.meaning")),
      curve,
      moments.length === 1 ? null : h("p", {}, slider),
      h("h3", {}, string("learned.sample")),
      sample,
    );

    function draw() {
      if (moments[slider.value].weights !== state.step) {
        const onView = moments.findLastIndex(({ weights }) => weights === state.step);
        if (onView >= 0) slider.value = onView;
      }
      const chosen = moments[slider.value];
      const time = durationOf(chosen.seconds);
      const step = chosen.step.toLocaleString("en");

      fill(sentence, momentSentence(chosen, { time, step }));
      fill(onPage, onPageSentence());
      slider.ariaValueText = string("learned.value", { time, step });
      fill(sample, chosen.sample ? h("blockquote", {}, chosen.sample) : h("p", {}, string("learned.noSample")));
      drawCurve(curve, measured, chosen, panel.clientWidth);
    }

    function move() {
      const { weights } = moments[slider.value];
      if (weights !== state.step) lookAtStep(weights);
      draw();
    }

    slider.addEventListener("input", move);
    curve.addEventListener("click", ({ clientX }) => {
      const { left, width } = curve.getBoundingClientRect();
      const { x } = scalesOf(measured, width);
      const away = moments.map(({ seconds }) => Math.abs(x(seconds) - (clientX - left)));
      slider.value = away.indexOf(Math.min(...away));
      move();
    });
    new ResizeObserver(draw).observe(panel);
    return draw;
  },
};

/** The moments of the slider in order: evaluations, and steps whose weights are in the file. `weights` are those that
 * the page shows then: of the last such step up to the moment; null is the model itself, which is of its best step.
 * An evaluation has `training` and `validation`. */
function momentsOf({ history, kept, bestStep }) {
  const bySteps = new Map(kept.map((moment) => [moment.step, moment]));
  for (const moment of history) bySteps.set(moment.step, moment);
  const moments = [...bySteps.values()].sort((a, b) => a.step - b.step);

  const weightsAt = (step) => {
    const before = kept.findLast((moment) => moment.step <= step);
    if (!before || (bestStep <= step && bestStep > before.step)) return null;
    return before.step;
  };
  return moments.map((moment) => ({ ...moment, weights: weightsAt(moment.step) }));
}

/** What was measured at a moment. */
function momentSentence({ training, validation }, words) {
  if (validation === undefined) return say("learned.notMeasured", words);

  const bits = (value) => h("b", {}, number(value));
  return say("learned.moment", { ...words, training: bits(training), validation: bits(validation) });
}

/** Of which model the whole page is now. */
function onPageSentence() {
  if (state.step === null) return [string("learned.nowBest"), " ", string("learned.kept", { n: model.kept.length })];
  return say("learned.now", { when: whenOf(state.step), again: button(string("learned.again"), rewrite) });
}

/** Where a time in seconds, and a loss in bits, is in a picture that is so wide. */
function scalesOf(measured, width) {
  const bits = measured.flatMap(({ training, validation }) => [training, validation]);
  const least = Math.min(...bits);
  const most = Math.max(...bits);
  const last = measured.at(-1).seconds;
  const right = width - 14;

  const x = (seconds) => BESIDE + (last > 0 ? Math.min(1, seconds / last) : 1) * (right - BESIDE);
  const y = (value) => ABOVE + ((most - value) / (most - least || 1)) * (HEIGHT - ABOVE - BELOW);
  return { x, y, least, most };
}

function drawCurve(curve, measured, chosen, width) {
  curve.setAttribute("width", width);
  const { x, y, least, most } = scalesOf(measured, width);
  const now = x(chosen.seconds);
  const bottom = HEIGHT - BELOW;

  const line = (name) => {
    const points = measured.map((moment) => `${x(moment.seconds).toFixed(1)},${y(moment[name]).toFixed(1)}`).join(" ");
    return shape("polyline", { class: name, points, fill: "none" });
  };
  const words = (text, at, y, anchor) => shape("text", { x: at, y, "text-anchor": anchor }, text);
  const point = (name, r) => shape("circle", { cx: now, cy: y(chosen[name]), r, class: name });
  const points = chosen.validation === undefined ? [] : [point("training", 3.5), point("validation", 4.5)];

  fill(
    curve,
    shape("line", { x1: BESIDE, x2: width - 14, y1: bottom, y2: bottom }),
    shape("line", { x1: BESIDE, x2: BESIDE, y1: ABOVE, y2: bottom }),
    words(string("learned.unit"), 0, 12, "start"),
    words(number(most), BESIDE - 6, ABOVE + 5, "end"),
    words(number(least), BESIDE - 6, bottom, "end"),
    words(durationOf(measured.at(-1).seconds), width - 14, HEIGHT - 6, "end"),
    words("0", BESIDE, HEIGHT - 6, "middle"),
    line("training"),
    line("validation"),
    shape("line", { class: "now", x1: now, x2: now, y1: ABOVE, y2: bottom }),
    ...points,
  );
}
