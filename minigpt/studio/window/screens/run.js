// A run: while it learns, when it is done, and in every state between.

import { byId, h } from "../../../web/dom.js";
import { get } from "../basics/api.js";
import { keepingFocus } from "../basics/controls.js";
import { speak } from "../basics/told.js";
import { live } from "../live.js";
import { makeActions } from "./run/actions.js";
import { makeClock } from "./run/clock.js";
import { makeCurve, sentences } from "./run/curve.js";
import { makeFrame } from "./run/frame.js";
import { makeLooks } from "./run/looks.js";
import { Record } from "./run/record.js";
import { makeTry } from "./run/try.js";
import { makeWrites } from "./run/writes.js";

/** Show the run with this name, and follow it. */
export async function show(main, name) {
  const record = new Record();
  record.take(await get(`/api/runs/${encodeURIComponent(name)}`));

  const parts = makeParts(record);
  main.className = "run";
  main.replaceChildren(...parts.elements);
  document.title = `${name} · minigpt studio`;
  parts.draw();

  setInterval(parts.tick, 1000);
  live(
    (state) => record.takeStudio(state),
    { name, after: record.after },
    (answer) => hear(record, parts, answer),
  );
}

/** What is new of the run: the screen shows it, and a screen reader says states and evaluations. */
function hear(record, parts, answer) {
  const { state } = record.run;
  const evaluated = record.evaluations.at(-1)?.step;
  record.take(answer);
  parts.draw();
  if (record.evaluations.length > 0 && record.evaluations.at(-1).step !== evaluated) speak(sentences(record).now);
  const words = parts.words();
  if (record.run.state !== state && words !== "") speak(words);
}

/** The parts of the screen: {elements, draw, tick, words}. What had the focus and is gone leaves it to the heading. */
function makeParts(record) {
  const clock = makeClock(record, look);
  const writes = makeWrites(record, () => looks.draw());
  const looks = makeLooks(record, writes.shown);
  const curve = makeCurve(record);
  const trying = makeTry(record);
  const learning = h("div", { className: "learning" }, writes.element, curve.element, trying.element, looks.element);

  const page = makeFrame(record, () => actions.element.focus());
  const actions = makeActions(record, { seeItThink: page.seeItThink, showChildhood });
  const done = h("div", { className: "done" }, page.element, actions.element);
  let showsChildhood = false; // of a run that is done

  function look() {
    trying.element.scrollIntoView({ block: "center" });
    trying.focus();
  }

  function showChildhood() {
    showsChildhood = !showsChildhood;
    draw();
    if (showsChildhood) learning.scrollIntoView({ block: "start" });
  }

  function draw() {
    const { state, has_learned: canWrite } = record.run;
    const isDone = state === "done" && canWrite;
    const hasBegun = record.samples.length > 0 || record.steps.length > 0;
    const hasEnded = ["stopped", "died", "done", "failed"].includes(state);
    const isLearning = state === "learning" || state === "stopping";
    done.hidden = !(hasEnded && canWrite);
    done.classList.toggle("whole", isDone);
    if (isDone && done.nextSibling !== learning) done.after(learning);
    if (!isDone && learning.nextSibling !== done) done.before(learning); // the page would load again if it moved
    learning.hidden = isDone ? !showsChildhood : !(isLearning || (hasEnded && hasBegun));

    byId("main").dataset.state = state;
    clock.draw();
    if (done.hidden) page.leaveFullScreen();
    else actions.draw(showsChildhood);
    if (isDone) page.draw();
    if (learning.hidden) return;
    writes.draw();
    looks.draw();
    curve.draw();
    trying.draw();
  }

  return {
    elements: [clock.element, learning, done],
    draw: () => keepingFocus(draw, clock.heading),
    tick: () => keepingFocus(clock.draw, clock.heading),
    words: clock.words,
  };
}
