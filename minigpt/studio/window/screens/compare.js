// Two runs side by side, or one beside counting alone: the same beginning, the same die, both written at once.

import { get, Refusal } from "../basics/api.js";
import { button, h } from "../basics/dom.js";
import { problemOf, sentenceOf } from "../basics/refusals.js";
import { string } from "../basics/strings.js";
import { lettersOf } from "../basics/units.js";
import { LENGTH, rows, shower } from "../basics/writing.js";
import { live } from "../live.js";

const COUNTING = "counting"; // only what followed what in the text of the other side
const SIDES = ["left", "right"];
const LARGEST_DIE = 999;

/** Show the runs that the address names. */
export async function show(main) {
  const asked = new URLSearchParams(location.search);
  const state = await get("/api/state");
  const sides = SIDES.map((side) => makeSide(side, asked.get(side)));
  const beginning = h("input", { id: "beginning", type: "text", autocomplete: "off", maxLength: 2000 });
  const die = h("input", { id: "die", type: "number", min: 0, max: LARGEST_DIE, value: asked.get("die") ?? 7 });
  const throwing = button(string("compare.throw"), () => {
    die.value = Math.floor((LARGEST_DIE + 1) * Math.random());
    write();
  });
  const writing = h("button", { type: "submit", className: "main" }, string("compare.write"));
  const words = h("p", { className: "quiet", role: "status" });
  const form = h(
    "form",
    { className: "card comparing", onsubmit: submit },
    h("label", {}, string("compare.beginning"), beginning),
    h("label", { className: "die" }, string("compare.die"), die),
    throwing,
    writing,
  );
  let ending = null; // of the texts that are being written

  function submit(event) {
    event.preventDefault();
    if (ending === null) write();
    else ending.abort();
  }

  async function write() {
    ending?.abort();
    const mine = new AbortController();
    ending = mine;
    const prompt = beginning.value;
    const shown = sides.map((side) => shower(side.text, prompt));
    for (const side of sides) side.words.textContent = "";
    writing.textContent = string("compare.stop");
    words.textContent = string("compare.writing");
    try {
      const names = sides.map((side) => side.choice.value);
      const sent = { names, prompt, seed: Number(die.value) || 0, settings: { max_new_tokens: LENGTH } };
      for await (const row of rows("/api/compare", sent, mine.signal)) {
        if (row.text) shown[row.side](row.text);
        if (row.problem) sides[row.side].words.textContent = problemOf(row.problem);
      }
      words.textContent = "";
    } catch (error) {
      if (error.name !== "AbortError" && !(error instanceof Refusal)) throw error;
      if (ending === mine) words.textContent = error instanceof Refusal ? sentenceOf(error) : string("compare.stopped");
    } finally {
      if (ending === mine) {
        ending = null;
        writing.textContent = string("compare.write");
      }
    }
  }

  /** The runs that can write now, in both choices; what was chosen stays. */
  function draw(runs) {
    const able = runs.filter((run) => run.has_page);
    for (const side of sides) side.draw(able);
    const [left, right] = sides.map((side) => side.choice.value);
    const problem = problemWith(able, left, right);
    throwing.disabled = problem !== "";
    writing.disabled = problem !== "";
    if (problem !== "" || ending === null) words.textContent = problem;

    const first = able.find((run) => run.name === left) ?? able.find((run) => run.name === right);
    if (beginning.value === "" && document.activeElement !== beginning) {
      beginning.value = first?.text?.beginning?.split(/\s+/).slice(0, 4).join(" ") ?? "";
    }
    const address = new URLSearchParams({ left, right, die: die.value });
    history.replaceState(null, "", `/compare?${address}`);
  }

  let { runs } = state;
  for (const side of sides) side.choice.addEventListener("change", () => draw(runs));
  main.className = "compare";
  document.title = `${string("compare.title")} · minigpt studio`;
  const columns = h("div", { className: "columns" }, ...sides.map((side) => side.element));
  main.replaceChildren(h("h1", {}, string("compare.title")), form, words, columns);
  draw(runs);

  live("", "", (event, data) => {
    if (event !== "state") return;
    runs = data.runs;
    draw(runs);
  });
}

/** Why these two cannot be compared, or "". */
function problemWith(able, left, right) {
  if (able.length === 0) return string("compare.none");
  if (left === COUNTING && right === COUNTING) return string("compare.countingTwice");
  return "";
}

/** One of the two: what it is, and what it writes. */
function makeSide(side, wanted) {
  const choice = h("select", { "aria-label": string(`compare.${side}`) });
  const figures = h("p", { className: "quiet" });
  const words = h("p", { className: "bad", role: "alert" });
  const text = h("p", { className: "written", lang: "", tabIndex: 0, hidden: true });
  const element = h(
    "section",
    { className: "card", "aria-label": string(`compare.${side}`) },
    choice,
    figures,
    words,
    text,
  );
  let names = null;

  function draw(able) {
    const found = [...able.map((run) => run.name), COUNTING];
    if (names === null || found.join("\n") !== names.join("\n")) {
      const before = names === null ? wanted : choice.value;
      names = found;
      choice.replaceChildren(
        ...found.map((name) => h("option", { value: name }, name === COUNTING ? string("compare.counting") : name)),
      );
      const usual = side === "left" ? found[0] : COUNTING;
      choice.value = found.includes(before) ? before : usual;
    }
    figures.textContent = figuresOf(able.find((run) => run.name === choice.value));
  }

  return { element, choice, words, text, draw };
}

/** What is known of a run, or of counting. */
function figuresOf(run) {
  if (run === undefined) return string("compare.countingHow");
  return run.letters === null ? "" : string("compare.letters", { letters: lettersOf(run.letters) });
}
