// Controls, for the mouse and the keyboard: where the focus is while the screen changes, buttons that are busy, a menu,
// and a question in front of the window.

import { button, byId, h } from "../../../web/dom.js";
import { string } from "../../../web/strings.js";
import { Refusal } from "./api.js";
import { sentenceOf } from "./told.js";

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

/** `items` are a label and what is done; the menu closes before that. `name` says whose menu it is. */
export function makeMenu(name, items) {
  const list = h("div", { className: "items", hidden: true });
  const opener = button("⋯", toggle, { className: "opener", "aria-label": name, "aria-expanded": "false" });
  const menu = h("div", { className: "menu", onkeydown: leave }, opener, list);
  menu.addEventListener("focusout", leaveToo); // it is no property
  for (const [label, act] of items) list.append(button(label, () => choose(act)));

  function show(isOpen) {
    list.hidden = !isOpen;
    opener.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) document.addEventListener("pointerdown", pressed);
    else document.removeEventListener("pointerdown", pressed);
  }

  function toggle() {
    show(list.hidden);
    if (!list.hidden) list.firstElementChild.focus();
  }

  function choose(act) {
    show(false);
    opener.focus();
    act();
  }

  function pressed(event) {
    if (!menu.contains(event.target)) show(false);
  }

  function leave(event) {
    if (event.key !== "Escape" || list.hidden) return;
    show(false);
    opener.focus();
  }

  function leaveToo(event) {
    if (event.relatedTarget !== null && !menu.contains(event.relatedTarget)) show(false);
  }

  return menu;
}

/**
 * Ask before something is done. The first field has the focus, or without one the button that does nothing.
 *
 * `act` does it; what it is refused is said in the dialog, which stays. The result is whether it was done.
 */
export function ask({ title, content = [], label, act }) {
  return new Promise((resolve) => {
    let isDone = false;
    const heading = h("h2", { id: "asked" }, title);
    const problem = h("p", { className: "bad", role: "alert" });
    const yes = h("button", { type: "submit", className: "main" }, label);
    const no = button(string("dialog.cancel"), () => dialog.close());
    const form = h("form", { onsubmit: submit }, heading, ...content, problem, h("div", { className: "row" }, yes, no));
    const dialog = h("dialog", { "aria-labelledby": "asked", onclose: close }, form);

    no.autofocus = form.querySelector("input, textarea") === null;

    async function submit(event) {
      event.preventDefault();
      if (isBusy(yes)) return;
      setBusy(yes, true);
      problem.textContent = "";
      try {
        await act();
        isDone = true;
        dialog.close();
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        problem.textContent = sentenceOf(error);
      } finally {
        setBusy(yes, false);
      }
    }

    function close() {
      dialog.remove();
      if (document.activeElement === document.body) byId("main").focus(); // what had it is gone
      resolve(isDone);
    }

    document.body.append(dialog);
    dialog.showModal();
  });
}
