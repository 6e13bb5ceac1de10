// What outlives a reload and a tab that is put to sleep: all versions, what is chosen and looked at, the settings. And
// the browser's Back, which brings the earlier version.

import { model } from "./client.js";
import { emptyText, give, onChange, state } from "./state.js";
import { lookAt } from "./writing.js";

const KEPT = "minigpt-page-2"; // another number where another version could not read it
const AT_MOST_EVERY = 200; // milliseconds: a browser allows some 200 steps of its history in half a minute
const RUNS = ["origin", "starts", "draws"]; // many equal values one after another
let stepped = { number: 0, at: 0 }; // the version of the newest step in the browser's history

/** Equal values one after another as [how many, value]. */
export function runsOf(values) {
  const runs = [];
  for (const value of values) {
    if (runs.length && runs.at(-1)[1] === value) runs.at(-1)[0]++;
    else runs.push([1, value]);
  }
  return runs;
}

/** The values of such runs. */
export function ofRuns(runs) {
  return runs.flatMap(([count, value]) => new Array(count).fill(value));
}

/** A version as what differs from the one before it in a list; the first one, from an empty text. */
function packed(text, before = emptyText()) {
  const { hidden, begun, number } = text;
  const n = Math.min(before.ids.length, text.ids.length);
  const isSame = (name, i) => before[name][i] === text[name][i];
  let kept = 0;
  while (kept < n && ["ids", "pieces", ...RUNS].every((name) => isSame(name, kept))) kept++;

  const saved = { number, hidden, begun, kept };
  for (const name of ["ids", "pieces"]) saved[name] = text[name].slice(kept);
  for (const name of RUNS) saved[name] = runsOf(text[name].slice(kept));
  return saved;
}

function unpacked(saved, before = emptyText()) {
  const { number, hidden, begun, kept } = saved;
  const text = { ...emptyText(), number, hidden, begun };
  for (const name of ["ids", "pieces", ...RUNS]) {
    const rest = RUNS.includes(name) ? ofRuns(saved[name]) : saved[name];
    text[name] = [...before[name].slice(0, kept), ...rest];
  }
  text.bits = text.ids.map(() => Number.NaN);
  return text;
}

/** Keep all of it for a reload of this address; if that is too much, the version on view alone. */
export function keep() {
  const { question, view, chosen, focus, given, look, asker, answerer } = state;
  const seen = { question, view, chosen, focus, given, look, asker, answerer };
  const shown = { ...seen, off: [...state.off], text: state.text.number };
  const about = { ...shown, address: location.href, model: model.title };
  const numbers = (texts) => texts.map(({ number }) => number);

  const all = {
    ...about,
    texts: state.texts.map((text, i, texts) => packed(text, texts[i - 1])),
    past: numbers(state.past),
    future: numbers(state.future),
  };
  const alone = { ...about, texts: [packed(state.text)], past: [], future: [] };
  for (const saved of [all, alone]) {
    try {
      sessionStorage.setItem(KEPT, JSON.stringify(saved));
      return;
    } catch {
      // too much, or a browser that keeps nothing for files
    }
  }
}

/** Bring back what was kept at this address; false if nothing was. */
export function bringBack() {
  try {
    const saved = JSON.parse(sessionStorage.getItem(KEPT));
    if (saved?.address !== location.href || saved.model !== model.title) return false;

    const texts = [];
    for (const text of saved.texts) texts.push(unpacked(text, texts.at(-1)));
    const numbered = (number) => texts.find((text) => text.number === number);
    const { question, view, focus, given, chosen, look, asker, answerer } = saved;
    const text = numbered(saved.text);
    Object.assign(state, { question, view, focus, chosen, look, asker, answerer, texts, text });
    give(given);
    state.off = new Set(saved.off);
    state.past = saved.past.map(numbered);
    state.future = saved.future.map(numbered);
    return true;
  } catch {
    return false;
  }
}

/** Keep the page whenever the tab may go, and make the browser's Back and Forward go along the versions. */
export function makeKeeping() {
  for (const leaving of ["freeze", "pagehide"]) window.addEventListener(leaving, keep, true);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) keep();
  });

  window.addEventListener("popstate", ({ state: step }) => {
    const text = state.texts.find(({ number }) => number === step?.version);
    if (!text) return;

    stepped = { number: text.number, at: performance.now() };
    lookAt(text);
  });
  onChange(stepHistory);
}

/** A new version is a new step in the browser's history. */
function stepHistory() {
  const { number } = state.text;
  if (number === stepped.number) return;

  const now = performance.now();
  const isGone = !state.texts.some((text) => text.number === stepped.number);
  const step = { version: number };
  if (isGone || now - stepped.at < AT_MOST_EVERY) history.replaceState(step, "");
  else history.pushState(step, "");
  stepped = { number, at: now };
}
