// What somebody is told: what the studio refuses and what went wrong, in the words of the window; the line below the head;
// what a screen reader hears; and that something was deleted, which the next screen says once.

import { byId, h } from "../../../web/dom.js";
import { hasString, string } from "../../../web/strings.js";
import { Refusal } from "./api.js";

const DELETED = "minigpt-studio-deleted"; // kept by the browser, in this window

/** The sentence for a Refusal: that of its kind, or its message. */
export function sentenceOf(refusal) {
  if (refusal.status === 0) return string("notice.noAnswer");
  if (refusal.status === 401) return string("login.title");
  if (refusal.status === 507) return string("notice.full");
  const name = `refusals.${refusal.kind}`;
  if (hasString(name)) return string(name, refusal.values);
  return refusal.message || string("notice.wrong");
}

/** The sentence for what was wrong with a text or a file: {kind, message}. Kinds without a sentence have their message. */
export function problemOf({ kind, message }, values = {}) {
  const name = `kinds.${kind}`;
  return hasString(name) ? string(name, { ...values, message }) : message;
}

/** The sentence for why a training ended, or cannot be planned: {kind, message}. */
export function failureOf({ kind, message }) {
  const name = `problems.${kind}`;
  return hasString(name) ? string(name) : message;
}

/** Do it; what it is refused is said in `place`. */
export async function attempt(place, act) {
  place.replaceChildren();
  try {
    await act();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    place.append(h("p", { className: "bad" }, sentenceOf(error)));
  }
}

/** Show a sentence below the head, or nothing. */
export function notice(words) {
  const line = byId("notice");
  line.hidden = words === "";
  if (line.textContent !== words) line.textContent = words;
}

/** Let a screen reader say a sentence: states and evaluations only. */
export function speak(words) {
  byId("spoken").textContent = words;
}

/** Leave for the first screen, which says that something was deleted. */
export function goHomeDeleted() {
  sessionStorage.setItem(DELETED, "yes");
  location.assign("/");
}

/** Whether something was deleted just before. */
export function wasDeleted() {
  const was = sessionStorage.getItem(DELETED) !== null;
  sessionStorage.removeItem(DELETED);
  return was;
}
