// Try it: the model writes on from what somebody types, with the weights that were saved last.

import { h } from "../../../../web/dom.js";
import { string } from "../../../../web/strings.js";
import { number } from "../../../../web/units.js";
import { makeWriting } from "../../basics/writing.js";

export function makeTry(record) {
  const writing = makeWriting(() => record.run);
  const facts = h("p", { className: "quiet" });
  const title = h("h2", {}, string("learning.try"));
  const element = h("section", { className: "try card", tabIndex: -1 }, title, writing.element, facts);

  function draw() {
    const { run } = record;
    const beginning = record.samples[0]?.beginning ?? run.text?.beginning ?? "";
    if (beginning !== "") writing.begin(beginning.split(/\s+/).slice(0, 4).join(" "));
    writing.offer();
    writing.allow(run.has_page ? "" : string("learning.tryLater"));
    facts.textContent = factsOf(record.steps.at(-1));
    facts.hidden = facts.textContent === "";
  }

  return { element, draw, focus: writing.focus };
}

/** "512 steps, 21,000 pieces a second". */
function factsOf(row) {
  if (row === undefined) return "";
  const steps = string(row.step === 1 ? "learning.step1" : "learning.steps", { steps: number(row.step) });
  const speed = row.tokens_per_second;
  if (!speed) return steps;
  const rounded = speed < 1000 ? Math.round(speed) : 100 * Math.round(speed / 100);
  return string("learning.facts", { steps, speed: number(rounded) });
}
