// How it learned: the loss at each evaluation of the training as a curve, and what the model wrote at that moment.
// Both are in the file of the page; a slider goes through them.

import { fill, h, number, shape } from "../basics/dom.js";
import { say, string } from "../basics/strings.js";
import { durationOf } from "../basics/units.js";
import { model } from "../text/client.js";

const HEIGHT = 190; // pixels of the curve
const ABOVE = 24; // for the name of its unit
const BELOW = 24; // for the times
const BESIDE = 44; // for the figures at the left

export const learnedView = {
  id: "learned",
  make(panel) {
    const moments = model.history;
    if (moments.length === 0) {
      panel.append(h("p", {}, string("learned.unknown")));
      return () => {};
    }

    const sentence = h("p", { className: "readout" });
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
      h("p", {}, string(moments.length === 1 ? "learned.once" : "learned.meaning")),
      curve,
      moments.length === 1 ? null : h("p", {}, slider),
      h("h3", {}, string("learned.sample")),
      sample,
    );

    function draw() {
      const chosen = Number(slider.value);
      const { step, seconds, training, validation, sample: text } = moments[chosen];
      const bits = (value) => h("b", {}, number(value));

      const time = durationOf(seconds);
      const figures = { time, step: step.toLocaleString("en"), training: bits(training), validation: bits(validation) };
      fill(sentence, say("learned.moment", figures));
      slider.ariaValueText = string("learned.value", { time, step });
      fill(sample, text ? h("blockquote", {}, text) : h("p", {}, string("learned.noSample")));
      drawCurve(curve, moments, chosen, panel.clientWidth);
    }

    slider.addEventListener("input", draw);
    curve.addEventListener("click", ({ clientX }) => {
      const { left, width } = curve.getBoundingClientRect();
      const place = placesOfMoments(moments, width).map(({ x }) => Math.abs(x - (clientX - left)));
      slider.value = place.indexOf(Math.min(...place));
      draw();
    });
    new ResizeObserver(draw).observe(panel);
    return draw;
  },
};

/** Where each moment is in a picture that is so wide: its time from left to right, its bits from bottom to top. */
function placesOfMoments(moments, width) {
  const bits = moments.flatMap(({ training, validation }) => [training, validation]);
  const least = Math.min(...bits);
  const most = Math.max(...bits);
  const last = moments.at(-1).seconds;
  const right = width - 14;

  const y = (value) => ABOVE + ((most - value) / (most - least || 1)) * (HEIGHT - ABOVE - BELOW);
  return moments.map(({ seconds, training, validation }) => ({
    x: BESIDE + (last > 0 ? seconds / last : 1) * (right - BESIDE),
    training: y(training),
    validation: y(validation),
  }));
}

function drawCurve(curve, moments, chosen, width) {
  curve.setAttribute("width", width);
  const places = placesOfMoments(moments, width);
  const { x, validation, training } = places[chosen];
  const bottom = HEIGHT - BELOW;

  const line = (name) => {
    const points = places.map((place) => `${place.x.toFixed(1)},${place[name].toFixed(1)}`).join(" ");
    return shape("polyline", { class: name, points, fill: "none" });
  };
  const words = (text, at, y, anchor) => shape("text", { x: at, y, "text-anchor": anchor }, text);
  const bits = moments.flatMap((moment) => [moment.training, moment.validation]);

  fill(
    curve,
    shape("line", { x1: BESIDE, x2: width - 14, y1: bottom, y2: bottom }),
    shape("line", { x1: BESIDE, x2: BESIDE, y1: ABOVE, y2: bottom }),
    words(string("learned.unit"), 0, 12, "start"),
    words(number(Math.max(...bits)), BESIDE - 6, ABOVE + 5, "end"),
    words(number(Math.min(...bits)), BESIDE - 6, bottom, "end"),
    words(durationOf(moments.at(-1).seconds), width - 14, HEIGHT - 6, "end"),
    words("0", BESIDE, HEIGHT - 6, "middle"),
    line("training"),
    line("validation"),
    shape("line", { class: "now", x1: x, x2: x, y1: ABOVE, y2: bottom }),
    shape("circle", { cx: x, cy: training, r: 3.5, class: "training" }),
    shape("circle", { cx: x, cy: validation, r: 4.5, class: "validation" }),
  );
}
