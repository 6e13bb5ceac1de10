// Where the focus is while the screen changes beneath somebody who uses the keyboard: never nowhere.

import { byId } from "../../../web/dom.js";

/** Change what is on the screen. Where the change has removed or hidden what had the focus, `otherwise` gets it. */
export function keepingFocus(change, otherwise = byId("main")) {
  const before = document.activeElement;
  change();
  const hadNone = before === null || before === document.body;
  const hasMoved = document.activeElement !== before && document.activeElement !== document.body;
  if (hadNone || hasMoved) return;
  const isThere = before.getClientRects().length > 0;
  const next = isThere ? before : otherwise; // a card that was moved has lost it
  // A frame that has the focus would lose a key that is pressed while it gets the focus again.
  if (document.activeElement !== next) next.focus({ preventScroll: true });
}

/** Whether what a button does goes on. */
export function isBusy(button) {
  return button.getAttribute("aria-disabled") === "true";
}

/** While it is busy a button looks as if it were disabled. It is not, since it would lose the focus: whoever listens to
 * its presses asks `isBusy`. */
export function setBusy(button, isSo) {
  button.setAttribute("aria-disabled", String(isSo));
}
