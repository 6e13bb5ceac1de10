// A question in front of the window, as a dialog of the browser: what has the focus comes back when it closes.

import { button, byId, h } from "../../../web/dom.js";
import { string } from "../../../web/strings.js";
import { Refusal } from "./api.js";
import { isBusy, setBusy } from "./focus.js";
import { sentenceOf } from "./refusals.js";

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
