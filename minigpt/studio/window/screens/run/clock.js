// The head of a run: its name, what it is doing, how long it has learned, and the buttons of its state.

import { button, byId, fill, h } from "../../../../web/dom.js";
import { string } from "../../../../web/strings.js";
import { clockOf } from "../../../../web/units.js";
import { post, Refusal } from "../../basics/api.js";
import { isBusy, setBusy } from "../../basics/controls.js";
import { failureOf, sentenceOf } from "../../basics/told.js";
import { bothLettersOf, CANCELLED, lettersOf, percent, stateOf, timeOf } from "../../basics/words.js";

const PATIENCE = 30; // seconds of saving, after which "Stop at once" is offered

/** The head of the screen of a run; `look(what)` brings a part of the screen into view. */
export function makeClock(record, look) {
  const name = h("h1", { tabIndex: -1 });
  const clock = h("p", { className: "clock" });
  const words = h("p", { className: "words" });
  const verdict = h("p", { className: "verdict" });
  const note = h("p", { className: "quiet", hidden: true });
  const problem = h("p", { className: "bad", role: "alert" });
  const wrong = h("p", { className: "bad", hidden: true });
  const details = h("pre", { className: "details", tabIndex: 0, hidden: true });
  const buttons = h("div", { className: "row" });
  const said = h("div", { className: "said" }, name, clock, words, verdict, wrong, note, problem);
  const element = h("section", { className: "head card" }, said, buttons, details);
  let stoppingSince = null;
  let shown = ""; // the buttons that are there

  async function ask(what, body = {}) {
    const pressed = [...buttons.querySelectorAll("button")];
    if (pressed.some(isBusy)) return false;
    problem.textContent = "";
    for (const one of pressed) setBusy(one, true);
    try {
      await post(`/api/runs/${encodeURIComponent(record.run.name)}/${what}`, body);
      return true;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      problem.textContent = sentenceOf(error);
      return false;
    } finally {
      for (const one of pressed) setBusy(one, false);
    }
  }

  async function leave() {
    const hasLearned = record.steps.length > 0;
    if ((await ask("stop")) && !hasLearned) location.assign("/");
  }

  const made = {
    leave: () => button(string("learning.leave"), leave),
    cancel: () => button(string("learning.cancel"), () => ask("stop")),
    stop: () => button(string("learning.stop"), () => ask("stop"), { className: "main" }),
    stopNow: () => button(string("learning.stopNow"), () => ask("stop-now")),
    goOn: () => button(string("learning.goOn"), () => ask("go-on"), { className: "main" }),
    again: () => button(string("learning.again"), () => ask("go-on"), { className: "main" }),
    write: () => button(string("learning.write"), () => look("try")),
    details: () => button(string("learning.details"), showDetails, { "aria-expanded": String(!details.hidden) }),
    text: () => h("a", { href: `/text/${record.run.text.id}`, className: "button" }, string("learning.openText")),
    home: () => h("a", { href: "/", className: "button" }, string("header.home")),
  };

  function showDetails({ currentTarget }) {
    details.hidden = !details.hidden;
    currentTarget.setAttribute("aria-expanded", String(!details.hidden));
  }

  /** The buttons of the state. */
  function buttonsOf(now) {
    const { state, has_learned: canWrite, problem: wrong } = record.run;
    const { has_checkpoint: hasCheckpoint, has_request: hasRequest } = record.run; // one of them begins it again
    const more = [];
    if (wrong?.message && wrong.kind !== CANCELLED) more.push("details");
    if (record.hasText()) more.push("text");

    if (state === "waiting") return ["leave"];
    if (state === "reading" || state === "measuring") return ["cancel"];
    if (state === "learning") return ["stop"];
    if (state === "stopping") return now - stoppingSince > PATIENCE ? ["stopNow"] : [];
    if (state === "stopped") return canWrite ? ["goOn", "write", ...more] : ["goOn", ...more];
    if (state === "died") return ["goOn", ...more];
    if (state === "failed") return hasCheckpoint || hasRequest ? ["again", ...more] : more;
    if (state === "done") return more;
    return state === "gone" ? ["home"] : [];
  }

  function drawButtons(now) {
    const wanted = buttonsOf(now);
    if (wanted.join() === shown) return;
    shown = wanted.join();
    const drawn = wanted.map((one) => made[one]());
    for (const [i, one] of wanted.entries()) drawn[i].dataset.key = one;
    fill(buttons, ...drawn);
    buttons.hidden = wanted.length === 0;
  }

  /** "2:14 of 5:00, done about 14:32". */
  function clockNow(now) {
    const { state, minutes } = record.run;
    const { ends_at: endsAt } = record.run;
    const elapsed = record.elapsed(now);
    if (state !== "learning" && state !== "stopping") return "";
    if (elapsed === null) return minutes === null ? "" : string("learning.clockOf", { all: clockOf(60 * minutes) });
    const time = clockOf(minutes === null ? elapsed : Math.min(elapsed, 60 * minutes)); // saving takes longer
    if (state === "stopping") return time;
    if (minutes === null) return endsAt === null ? time : string("learning.clockEnds", { time, end: timeOf(endsAt) });
    const values = { time, all: clockOf(60 * minutes) };
    if (endsAt === null) return string("learning.clock", values);
    return string("learning.clockDone", { ...values, end: timeOf(endsAt) });
  }

  return {
    element,
    heading: name,

    /** What the run is doing, in words; empty while the clock says all. */
    words: () => wordsOf(record),

    /** Each second, and when something has changed. */
    draw() {
      if (byId("main").classList.contains("gone")) return; // what is shown is of the moment that the notice names
      const now = Date.now() / 1000;
      const { run } = record;
      if (run.state !== "stopping") stoppingSince = null;
      else stoppingSince ??= now;

      name.textContent = run.name;
      show(clock, clockNow(now));
      const said = wordsOf(record);
      show(words, said === "" ? string("learning.mayClose") : said); // in one place: nothing below it moves
      show(verdict, ["done", "stopped"].includes(run.state) ? verdictOf(run) : "");
      show(wrong, wrongOf(run));
      show(note, noteOf(record));
      details.textContent = run.problem?.message ?? "";
      if (details.textContent === "") details.hidden = true;
      drawButtons(now);
    },
  };
}

/** Put words into an element, which is hidden without them. */
function show(element, words) {
  element.hidden = words === "";
  if (element.textContent !== words) element.textContent = words;
}

function asSentence(words) {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function wordsOf(record) {
  const { run } = record;
  if (run.state === "waiting") return asSentence(stateOf(run));
  if (run.goes_on_from !== null && run.state !== "stopping")
    return string("learning.goingOn", { time: clockOf(run.goes_on_from) }); // from its start to its first step
  if (run.state === "reading") return reading(record);
  if (run.state === "measuring") return measuring(run);
  if (run.state === "learning") return record.steps.length > 0 ? "" : string("learning.starting");
  if (run.state === "stopping") return string("learning.saving");
  if (run.state === "stopped") {
    const time = run.elapsed === null ? null : clockOf(run.elapsed);
    if (run.problem !== null)
      return time === null ? asSentence(stateOf(run)) : string("learning.stoppedAfter", { time });
    return time === null ? string("learning.stoppedNow") : string("learning.stopped", { time });
  }
  if (run.state === "died") return string("learning.died");
  if (run.state === "failed") {
    return run.problem === null ? string("learning.failed") : failureOf(run.problem);
  }
  if (run.state === "gone") return string("learning.gone");
  return run.elapsed === null ? string("learning.done") : string("learning.doneAfter", { time: clockOf(run.elapsed) });
}

/** What went wrong with a run that has learned all the same. */
function wrongOf({ state, problem }) {
  const hasLearned = state === "done" || state === "stopped";
  return hasLearned && problem !== null ? failureOf(problem) : "";
}

/** That the window may be closed; what happened meanwhile: the disk is full, the computer slept; and of one that has
 * learned, what it had read before. */
function noteOf(record) {
  const hasEnded = record.run.state === "done" || record.run.state === "stopped";
  if (hasEnded && record.run.begins_with_base) return string("done.base");
  if (record.run.state === "reading" || record.run.state === "measuring") return string("learning.mayClose");
  if (record.run.state !== "learning") return "";
  const wrong = record.run.problem;
  if (wrong !== null) return wrong.kind === "disk_full" ? string("notice.full") : failureOf(wrong);
  return record.run.slept ? string("learning.slept") : "";
}

/** Better than counting or not. */
function verdictOf({ letters, counting_letters: counting }) {
  if (letters === null) return "";
  if (counting === null) return string("done.letters", { letters: lettersOf(letters) });
  const [its, tables] = bothLettersOf(letters, counting);
  return string(letters < counting ? "done.better" : "done.notBetter", { letters: its, counting: tables });
}

/** "Reading diary.docx: 40%". */
function reading({ run }) {
  const name = run.text?.name ?? run.name;
  if (run.share === null) return string("learning.reading", { name });
  return string("learning.readingShare", { name, share: percent(run.share) });
}

/** "Measuring, and choosing the settings: a few seconds", and then "Cutting the text into pieces: 40%". */
function measuring({ phase, share }) {
  if (phase !== "tokens") return string("learning.measuring");
  return share === null ? string("learning.cutting") : string("learning.cuttingShare", { share: percent(share) });
}
