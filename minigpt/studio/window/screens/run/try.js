// Try it: the model writes on from what somebody types, with the weights that were saved last. The text is shown as it
// comes.

import { button, h } from "../../../../web/dom.js";
import { string } from "../../../../web/strings.js";
import { number } from "../../../../web/units.js";
import { Refusal, stream } from "../../basics/api.js";
import { problemOf, sentenceOf, speak } from "../../basics/told.js";

const LENGTH = 120; // of a text that is written here, in pieces

export function makeTry(record) {
  const writing = makeWriting(() => record.run);
  const facts = h("p", { className: "quiet" });
  const title = h("h2", {}, string("learning.try"));
  const element = h("section", { className: "try card", tabIndex: -1 }, title, writing.element, facts);

  function draw() {
    const { run } = record;
    const beginning = record.samples[0]?.beginning ?? run.text?.beginning ?? "";
    const isAnswered = run.is_dialogue; // then the line holds what is said to the model
    if (beginning !== "" && !isAnswered) writing.begin(beginning.split(/\s+/).slice(0, 4).join(" "));
    writing.offer();
    writing.allow(run.has_learned ? "" : string("learning.tryLater"));
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

/**
 * A line to type how a text begins, a button, and the text that comes. `run()` is the run that writes: where several
 * speak in its text, there is a choice of who answers.
 *
 * The result's `allow(words)` says why it cannot write yet, or with "" that it can.
 */
function makeWriting(run) {
  const input = h("input", {
    type: "text",
    autocomplete: "off",
    maxLength: 2000,
    "aria-label": string("learning.beginning"),
  });
  const answerer = h("select", { "aria-label": string("learning.answerer") });
  const who = h("label", { className: "row", hidden: true }, string("learning.answerer"), answerer);
  const write = button(string("learning.write"), () => (ending === null ? begin() : ending.abort()), {
    className: "main",
  });
  const text = h("p", { className: "written", lang: "", tabIndex: 0, hidden: true });
  const words = h("p", { className: "quiet", role: "status" });
  const form = h("form", { className: "row ask" }, input, write);
  const element = h("div", {}, who, form, words, text);
  let ending = null; // of the text that is being written
  let isFilled = false; // the line was, once: whoever clears it writes from nothing

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (ending === null && !write.disabled) begin();
  });

  async function begin() {
    const prompt = input.value;
    const show = shower(text, prompt);
    let written = "";
    ending = new AbortController();
    write.textContent = string("learning.stopWriting");
    words.textContent = string("learning.writing");
    try {
      const path = `/api/runs/${encodeURIComponent(run().name)}/write`;
      const settings = { max_new_tokens: LENGTH, as: answerer.value === "" ? null : answerer.value };
      for await (const row of rows(path, { prompt, settings }, ending.signal)) {
        if (row.text) show(row.text);
        written += row.text ?? "";
        words.textContent = row.problem ? problemOf(row.problem) : "";
      }
      const isEmpty = written.startsWith(prompt) && written.slice(prompt.length).trim() === "";
      if (isEmpty && words.textContent === "") words.textContent = string("learning.onlySpace");
      if (!isEmpty) speak(written);
    } catch (error) {
      if (error.name !== "AbortError" && !(error instanceof Refusal)) throw error;
      words.textContent = error instanceof Refusal ? sentenceOf(error) : string("learning.writingStopped");
    } finally {
      ending = null;
      write.textContent = string("learning.write");
    }
  }

  return {
    element,

    /** What the line holds at first, unless somebody has typed. */
    begin(words) {
      if (isFilled) return;
      isFilled = true;
      if (input.value === "" && document.activeElement !== input) input.value = words;
    },

    /** Offer who can answer. */
    offer() {
      const names = run().speakers;
      who.hidden = names.length === 0;
      if (answerer.options.length === names.length + 1) return;
      const nobody = h("option", { value: "" }, string("learning.nobodyAnswers"));
      answerer.replaceChildren(nobody, ...names.map((name) => h("option", { value: name }, name)));
      const other = names.find((name) => !input.value.startsWith(`${name}:`)); // who speaks is answered
      answerer.value = run().is_dialogue ? (other ?? names[0] ?? "") : "";
    },

    allow(why) {
      if (ending !== null) return;
      write.disabled = why !== "";
      if (why !== "") words.textContent = why;
      else if (words.dataset.why === "yes") words.textContent = "";
      words.dataset.why = why === "" ? "" : "yes";
    },

    focus: () => input.focus(),
  };
}

/** Shows a text as it comes, with its beginning in bold. */
function shower(element, beginning) {
  let all = "";
  element.hidden = false;
  element.replaceChildren(h("b", {}, beginning));
  return (part) => {
    all += part;
    if (beginning.startsWith(all)) return; // no more of it than is there already
    const isAsTyped = all.startsWith(beginning);
    const rest = isAsTyped ? all.slice(beginning.length) : all;
    element.replaceChildren(...(isAsTyped ? [h("b", {}, beginning)] : []), rest);
  };
}

/** What is written, as rows: {text}, and at the end {end, problem}. */
async function* rows(path, body, signal) {
  let kept = "";
  for await (const part of stream(path, body, signal)) {
    kept += part;
    const lines = kept.split("\n");
    kept = lines.pop();
    for (const line of lines) yield JSON.parse(line);
  }
}
