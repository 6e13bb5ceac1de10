// How it learned: the loss at each evaluation of the training as a curve, and what the model wrote at that moment.
// Both are in the file of the page; a slider goes through them.

import { drawCurve } from "../../web/curve.js";
import { fill, h } from "../../web/dom.js";
import { say, string } from "../../web/strings.js";
import { durationOf, number } from "../../web/units.js";
import { model } from "../core/client.js";

const LEVEL_STEPS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2]; // bits from one label to the next
const MOST_LEVELS = 6;

export const learnedView = {
  id: "learned",
  make(panel) {
    const measured = model.history;
    if (measured.length === 0) {
      panel.append(h("p", {}, string("learned.unknown")));
      return () => {};
    }

    const sentence = h("p", { className: "readout" });
    const picture = h("div", { className: "picture" });
    const slider = h("input", {
      type: "range",
      min: 0,
      max: measured.length - 1,
      value: measured.length - 1,
      "aria-label": string("learned.slider"),
    });
    const sample = h("div", { className: "sample" });

    panel.append(
      sentence,
      h("p", {}, string(measured.length === 1 ? "learned.once" : "learned.meaning")),
      h("small", {}, string("learned.unit")),
      picture,
      measured.length === 1 ? null : h("p", {}, slider),
      h("h3", {}, string("learned.sample")),
      sample,
    );

    function draw() {
      const chosen = measured[slider.value];
      const time = durationOf(chosen.seconds);
      const step = number(chosen.step);

      const [training, validation] = [chosen.training, chosen.validation].map((bits) => h("b", {}, number(bits, 2)));
      fill(sentence, say("learned.moment", { time, step, training, validation }));
      slider.ariaValueText = string("learned.value", { time, step });
      fill(sample, chosen.sample ? h("blockquote", {}, chosen.sample) : h("p", {}, string("learned.noSample")));
      fill(picture, curveOf(measured, chosen.seconds, panel.clientWidth));
    }

    slider.addEventListener("input", draw);
    picture.addEventListener("click", ({ clientX }) => {
      const points = [...picture.querySelectorAll("circle.validation")];
      const away = points.map((point) => {
        const { left, right } = point.getBoundingClientRect();
        return Math.abs((left + right) / 2 - clientX);
      });
      slider.value = away.indexOf(Math.min(...away));
      draw();
    });
    new ResizeObserver(draw).observe(panel);
    return draw;
  },
};

/** The picture of all evaluations, with the moment that is looked at. */
function curveOf(measured, moment, width) {
  const points = (name) => measured.map((evaluation) => [evaluation.seconds, evaluation[name]]);
  const lines = { training: points("training"), validation: points("validation") };
  const levels = levelsOf(measured.flatMap(({ training, validation }) => [training, validation]));

  const curve = drawCurve(width, { ...lines, levels, end: measured.at(-1).seconds, moment });
  curve.setAttribute("aria-hidden", "true"); // the slider says the same
  return curve;
}

/** The bits that are labelled: multiples of a round number. */
function levelsOf(bits) {
  const span = Math.max(...bits) - Math.min(...bits);
  const step = LEVEL_STEPS.find((one) => span / one < MOST_LEVELS) ?? LEVEL_STEPS.at(-1);
  const first = Math.floor(Math.min(...bits) / step);
  return Array.from({ length: MOST_LEVELS + 2 }, (_, i) => step * (first + i)).map((level) => [
    level,
    number(level, 2),
  ]);
}
