// The slider from the first text to the newest. Whoever looks back is left alone: newer texts do not move it.

import { button, h } from "../../../../web/dom.js";
import { string } from "../../../../web/strings.js";
import { momentOf } from "./words.js";

const PLAY = 20; // seconds from birth to now
const CALM = 8; // texts that are shown where somebody wants less movement

/** The slider over the texts of a run; `choose()` is called when another one is to be shown. */
export function makeChildhood(record, choose) {
  let looksBack = false; // else the newest text is shown
  let at = 0; // which text is shown
  let last = 0; // the newest text of which the slider knows
  let playing = null;

  const slider = h("input", { type: "range", min: 0, max: 0, step: 1, "aria-label": string("learning.childhood") });
  const play = button(string("learning.play"), () => (playing === null ? begin() : end()));
  const birth = button(string("learning.birth"), () => move(0));
  const now = button(string("learning.now"), () => move(record.samples.length - 1));
  const newer = h("p", { className: "quiet newer" });
  const line = h("div", { className: "childhood" }, birth, slider, now, play);
  const element = h("div", {}, line, newer);

  slider.addEventListener("input", () => move(Number(slider.value)));

  function move(to) {
    end();
    show(to);
  }

  function show(to) {
    looksBack = to < last || (playing !== null && to < record.samples.length - 1);
    at = to;
    choose();
  }

  function begin() {
    last = record.samples.length - 1;
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const shown = isCalm ? Math.min(CALM, last + 1) : last + 1;
    let i = 0;
    playing = setInterval(step, (1000 * PLAY) / shown);
    play.textContent = string("learning.stopPlaying");
    step();

    function step() {
      if (i >= shown) return end();
      show(Math.round((last * i) / Math.max(shown - 1, 1)));
      i += 1;
    }
  }

  function end() {
    if (playing === null) return;
    clearInterval(playing);
    playing = null;
    play.textContent = string("learning.play");
    draw();
  }

  function draw() {
    const newest = record.samples.length - 1;
    if (!looksBack) {
      last = Math.max(newest, 0);
      at = last;
    }
    at = Math.min(at, Math.max(newest, 0)); // a training that went back has fewer
    last = Math.min(last, Math.max(newest, 0));

    slider.max = last;
    slider.value = at;
    slider.setAttribute("aria-valuetext", newest < 0 ? "" : momentOf(record.samples[at]));
    element.hidden = newest < 1;
    const missed = looksBack && playing === null ? newest - last : 0;
    newer.textContent = missed > 0 ? string(missed === 1 ? "learning.newer1" : "learning.newer", { n: missed }) : "";
  }

  return {
    element,
    draw,

    /** The text that is shown; undefined before the first one. */
    shown: () => record.samples[at],

    isNow: () => !looksBack,
  };
}
