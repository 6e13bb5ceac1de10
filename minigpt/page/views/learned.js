// How it learned: the loss at each evaluation of the training as a curve, and what the model wrote at that moment.
// Both are in the file of the page; a slider goes through them.

import { fill, h, shape } from "../../web/dom.js";
import { say, string } from "../../web/strings.js";
import { durationOf, number } from "../../web/units.js";
import { model } from "../text/client.js";

const HEIGHT = 190; // pixels of the curve
const ABOVE = 24; // for the name of its unit
const BELOW = 24; // for the times
const BESIDE = 44; // for the figures at the left

export const learnedView = {
  id: "learned",
  make(panel) {
    const measured = model.history;
    if (measured.length === 0) {
      panel.append(h("p", {}, string("learned.unknown")));
      return () => {};
    }

    const sentence = h("p", { className: "readout" });
    const curve = shape("svg", { class: "curve", height: HEIGHT, "aria-hidden": "true" });
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
      curve,
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
      drawCurve(curve, measured, chosen, panel.clientWidth);
    }

    slider.addEventListener("input", draw);
    curve.addEventListener("click", ({ clientX }) => {
      const { left, width } = curve.getBoundingClientRect();
      const { x } = scalesOf(measured, width);
      const away = measured.map(({ seconds }) => Math.abs(x(seconds) - (clientX - left)));
      slider.value = away.indexOf(Math.min(...away));
      draw();
    });
    new ResizeObserver(draw).observe(panel);
    return draw;
  },
};

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

  fill(
    curve,
    shape("line", { x1: BESIDE, x2: width - 14, y1: bottom, y2: bottom }),
    shape("line", { x1: BESIDE, x2: BESIDE, y1: ABOVE, y2: bottom }),
    words(string("learned.unit"), 0, 12, "start"),
    words(number(most, 2), BESIDE - 6, ABOVE + 5, "end"),
    words(number(least, 2), BESIDE - 6, bottom, "end"),
    words(durationOf(measured.at(-1).seconds), width - 14, HEIGHT - 6, "end"),
    words("0", BESIDE, HEIGHT - 6, "middle"),
    line("training"),
    line("validation"),
    shape("line", { class: "now", x1: now, x2: now, y1: ABOVE, y2: bottom }),
    point("training", 3.5),
    point("validation", 4.5),
  );
}
