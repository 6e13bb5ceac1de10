// What every screen asks once a second, and in the background less often: what there is in the studio, and what is new
// of one run. The head of the window says what is learning, the line below it whether the studio answers and the disk
// has room.

import { byId } from "../../web/dom.js";
import { string } from "../../web/strings.js";
import { get, Refusal } from "./basics/api.js";
import { notice } from "./basics/told.js";
import { timeOf } from "./basics/words.js";
import { showState } from "./header.js";

const EVERY = 1; // seconds from one look to the next
const HIDDEN = 10; // the same while the tab is hidden
const LONGEST_WAIT = 30; // seconds between two tries while nobody answers
const PATIENCE = 8; // seconds in which the studio answers
const LEAST_FREE = 500e6; // bytes: the studio takes no more files then

/**
 * Ask again and again what there is; `told(state)` gets it when it has changed. With `run`, a {name, after}, `toldOfRun`
 * gets what has changed of this run, and the rows after those that are known.
 */
export function live(told, run = null, toldOfRun = null) {
  const questions = [{ path: "/api/state", after: "", seen: "", told: hear }];
  if (run !== null) {
    const path = `/api/runs/${encodeURIComponent(run.name)}`;
    questions.push({ path, after: run.after, seen: "", told: toldOfRun });
  }
  let looks = 0; // the last one counts: an earlier one may still wait for its answer
  let next = null; // the timer of the next one
  let wait = EVERY;
  let answered = Date.now() / 1000; // when the studio did, the last time
  let isHere = true;
  let isFull = false;

  async function look() {
    clearTimeout(next);
    const number = ++looks;
    try {
      for (const question of questions) {
        const { path, after, seen } = question;
        const known = new URLSearchParams({ after, seen });
        const answer = await get(`${path}?${known}`, AbortSignal.timeout(1000 * PATIENCE));
        if (number !== looks) return;
        setHere(true);
        if (answer === null) continue; // nothing has changed
        question.seen = answer.key;
        question.after = answer.after ?? "";
        question.told(answer);
      }
      wait = EVERY;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (number !== looks) return;
      if (error.status === 401) location.reload(); // another studio listens there now; the window says so
      setHere(error.status !== 0);
      wait = Math.min(2 * wait, LONGEST_WAIT);
    } finally {
      if (number === looks) next = setTimeout(look, 1000 * (document.hidden ? Math.max(wait, HIDDEN) : wait));
    }
  }

  function hear(state) {
    showState(state);
    isFull = state.free !== null && state.free < LEAST_FREE;
    show();
    told(state);
  }

  function setHere(now) {
    if (now) answered = Date.now() / 1000;
    if (now === isHere) return;
    isHere = now;
    show();
  }

  function show() {
    const words = isFull ? string("notice.full") : "";
    notice(isHere ? words : string("notice.closed", { time: timeOf(answered) }));
    byId("main").classList.toggle("gone", !isHere);
  }

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) look();
  });
  look();
}
