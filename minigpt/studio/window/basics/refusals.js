// What the studio refuses, in the words of the window.

import { hasString, string } from "../../../web/strings.js";

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
