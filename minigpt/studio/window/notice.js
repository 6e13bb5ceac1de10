// The line below the head of the window: that the studio does not answer, that the disk is full. And what a screen
// reader hears.

import { byId } from "../../web/dom.js";

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
