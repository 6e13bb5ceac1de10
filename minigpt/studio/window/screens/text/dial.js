// DIAL: how long a model may learn, what to expect of that, and the button that begins it.

import { button, fill, h } from "../../../../web/dom.js";
import { string } from "../../../../web/strings.js";
import { durationOf, number } from "../../../../web/units.js";
import { post, Refusal } from "../../basics/api.js";
import { isBusy, setBusy } from "../../basics/controls.js";
import { attempt, failureOf, sentenceOf } from "../../basics/told.js";
import { ACTIVE, bothLettersOf, lettersOf, roughly, timeOf } from "../../basics/words.js";
import { makeMore } from "./more.js";

/** Minutes that can be chosen, as plans.json has them. */
const STOPS = [0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 240, 480];
const USUAL = 5;
const CHOSEN = "minigpt-studio-minutes"; // kept by the browser

/** `look` asks for the text anew, after something has changed its plans. */
export function makeDial(first, look) {
  const { id } = first;
  let text = first;
  let ahead = 0; // seconds until the training could start; null if that is not known

  let minutes = keptMinutes();
  const stops = STOPS.map((stop) => makeStop(stop, stop === minutes, () => choose(stop)));
  const legend = h("legend", {}, h("h2", {}, string("dial.howLong")));
  const choices = stops.map((stop) => stop.element);
  const group = h("fieldset", { className: "stops" }, legend, h("div", { className: "choices" }, choices));
  const forecast = h("div", { className: "forecast" });
  const before = h("p", { className: "facts" });

  const typed = { type: "text", id: "name", value: first.name, maxLength: 80, autocomplete: "off" };
  const name = h("input", { ...typed, "aria-describedby": "nameProblem" });
  const nameProblem = h("p", { className: "bad", id: "nameProblem", role: "alert" });
  const nameField = h("div", { className: "field" }, h("label", { htmlFor: "name" }, string("dial.name")), name);
  const problem = h("div", { role: "alert" });
  const more = makeMore(id, look, say);

  const summary = h("p", { className: "summary" });
  const start = h("button", { type: "submit", className: "main" }, string("dial.start"));
  const form = h("form", { onsubmit: submit }, [
    group,
    nameField,
    nameProblem,
    problem,
    h("div", { className: "row start" }, summary, more.opener, start),
    forecast, // below the button, which stays in its place when the measuring ends
    before,
    more.element,
  ]);
  const element = h("section", { className: "dial card", hidden: true, "aria-label": string("dial.howLong") }, form);

  function choose(stop) {
    minutes = stop;
    localStorage.setItem(CHOSEN, String(stop));
    show();
  }

  function show() {
    const plan = planOf(text, minutes);
    for (const stop of stops) stop.tell(sentencesOf(planOf(text, stop.minutes), stop.minutes, ahead));
    // What is expected is seen above the settings, which stay where they are while it is found out anew.
    forecast.style.minHeight = more.element.hidden ? "" : `${forecast.offsetHeight}px`;
    fill(forecast, ...forecastOf(text, plan, minutes, ahead, measureAgain));
    summary.textContent = summaryOf(plan, minutes, ahead);
    start.disabled = plan?.problem != null || text.plans?.problem?.kind === "setting";
  }

  function measureAgain() {
    attempt(problem, async () => {
      await post(`/api/texts/${id}/plan`);
      await look();
    });
  }

  async function submit(event) {
    event.preventDefault();
    if (isBusy(start)) return;
    setBusy(start, true);
    nameProblem.textContent = "";
    say("");
    try {
      await more.settled();
      const body = { text: id, name: name.value.trim() || first.name, minutes, settings: more.chosen() };
      const answer = await post("/api/runs", body);
      location.assign(`/run/${encodeURIComponent(answer.name)}`);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      refuse(error);
      setBusy(start, false);
    }
  }

  /** Say beside the field what was wrong. */
  function refuse(refusal) {
    if (refusal.field === "name") {
      nameProblem.textContent = sentenceOf(refusal);
      name.focus();
    } else more.refuse(refusal);
  }

  /** Say what is wrong with no field, or with "" nothing. */
  function say(words) {
    problem.replaceChildren(words === "" ? "" : h("p", { className: "bad" }, words));
  }

  setInterval(() => {
    if (!element.hidden && !document.hidden) show(); // when it would be done moves on
  }, 10_000);

  return {
    element,
    update(now) {
      text = now;
      element.hidden = text.state !== "ready";
      document.body.classList.toggle("dialled", !element.hidden);
      if (element.hidden) return;
      more.update(text.settings);
      show();
    },
    updateLine(state) {
      ahead = secondsAhead(state);
      const runs = state.runs.filter((run) => run.text?.id === id);
      fill(before, ...beforeOf(runs));
      if (!element.hidden) show();
    },
  };
}

function keptMinutes() {
  const kept = Number(localStorage.getItem(CHOSEN));
  return STOPS.includes(kept) ? kept : USUAL;
}

/** One of the twelve stops. What to expect of it is its description for a screen reader. */
function makeStop(minutes, isChosen, choose) {
  const [words, unit] = wordsOf(minutes);
  const about = h("span", { hidden: true, id: `about${minutes}` });
  const properties = { type: "radio", name: "minutes", value: String(minutes), checked: isChosen, onchange: choose };
  const input = h("input", { ...properties, "aria-label": `${words} ${unit}`, "aria-describedby": about.id });
  const shown = h("span", { className: "shown" }, h("b", {}, words), h("span", {}, unit));
  const element = h("label", { className: "stop" }, input, shown, about);
  return { element, minutes, tell: (sentence) => (about.textContent = sentence) };
}

function wordsOf(minutes) {
  if (minutes >= 60) return [number(minutes / 60), string("dial.hours")];
  return [minutes === 0.5 ? "½" : number(minutes), string("dial.minutes")];
}

/** What is planned for a number of minutes; null while that is not known. */
function planOf(text, minutes) {
  return text.plans?.stops.find((stop) => stop.minutes === minutes) ?? null;
}

/** When it is done, and how sure it will be, in sentences. */
function sentencesOf(plan, minutes, ahead) {
  if (plan?.problem) return failureOf(plan.problem);
  const sentences = [doneOf(plan, minutes, ahead)];
  if (plan?.letters != null) sentences.push(string("dial.letters", { n: lettersOf(plan.letters) }));
  return sentences.join(" ");
}

/** "Done about 14:32." */
function doneOf(plan, minutes, ahead) {
  if (ahead === null) return string("dial.doneUnknown");
  return string("dial.done", { time: endOf(plan, minutes, ahead) });
}

/** "5 minutes, done about 14:32": what the button begins. */
function summaryOf(plan, minutes, ahead) {
  const time = durationOf(60 * minutes);
  if (ahead === null) return string("dial.summaryUnknown", { time });
  return string("dial.summary", { time, end: endOf(plan, minutes, ahead) });
}

/** The time of day when it is done. */
function endOf(plan, minutes, ahead) {
  const seconds = plan?.seconds ?? 60 * minutes;
  return timeOf(Date.now() / 1000 + ahead + seconds);
}

function forecastOf(text, plan, minutes, ahead, measureAgain) {
  const { plans } = text;
  if (plans?.problem) {
    const words = h("p", { className: "bad" }, failureOf(plans.problem));
    if (plans.problem.kind === "setting") return [words];
    return [words, button(string("dial.again"), measureAgain, { "data-key": "again" })];
  }
  if (plan?.problem) return [h("p", { className: "bad" }, failureOf(plan.problem))];

  const when = [doneOf(plan, minutes, ahead)];
  if (ahead !== null && ahead > 0) when.push(string("dial.ahead", { time: durationOf(ahead) }));
  if (plan === null) return [h("p", {}, when.join(" ")), h("p", { className: "facts" }, string("dial.measuring"))];

  when.splice(1, 0, readsOf(plan));
  if (plan.ends_early) when.push(string("dial.early", { time: durationOf(plan.seconds) }));
  const found = [h("p", {}, when.join(" "))];
  found.push(...comparisonOf(plan));
  found.push(h("p", {}, string("dial.size", { n: roughly(plan.parameters) })));
  if (plan.begins_with === "base") found.push(h("p", { className: "facts" }, string("dial.base")));
  if (plans.measured === false) found.push(h("p", { className: "facts" }, string("dial.stored")));
  return found;
}

function readsOf({ epochs }) {
  if (epochs < 0.95) return string("dial.readsPart", { n: number(Math.max(1, 100 * epochs)) });
  return epochs < 1.5 ? string("dial.readsOnce") : string("dial.reads", { n: number(epochs) });
}

/** Among how many letters the model will choose, beside what counting alone gives: shorter bars are better. */
function comparisonOf(plan) {
  if (plan.letters === null) return [h("p", {}, string("dial.lettersUnknown"))];
  if (plan.counting_letters === null) {
    return [h("p", { className: "sure" }, string("dial.letters", { n: lettersOf(plan.letters) }))];
  }

  const most = Math.max(plan.letters, plan.counting_letters);
  const [its, tables] = bothLettersOf(plan.letters, plan.counting_letters);
  const counting = string("dial.counting", { n: tables });
  return [
    h("p", { className: "sure" }, string("dial.letters", { n: its })),
    h("div", { className: "bar", "--share": plan.letters / most }),
    h("p", { className: "facts" }, counting),
    h("div", { className: "bar counting", "--share": plan.counting_letters / most }),
  ];
}

/** In how many seconds a training could start that is asked for now; null if that is not known. */
function secondsAhead(state) {
  let ahead = 0;
  for (const run of state.runs) {
    if (ACTIVE.includes(run.state) && run.ends_at !== null) ahead += Math.max(0, run.ends_at - Date.now() / 1000);
    else if (ACTIVE.includes(run.state) || run.state === "waiting") {
      if (run.minutes === null) return null;
      ahead += 60 * run.minutes - (run.elapsed ?? 0);
    }
  }
  return ahead;
}

/** The models that have learned from this text. */
function beforeOf(runs) {
  if (runs.length === 0) return [];
  const links = runs.map((run) => h("a", { href: `/run/${encodeURIComponent(run.name)}` }, run.name));
  return [string("dial.before"), ...links.flatMap((link) => [" ", link])];
}
