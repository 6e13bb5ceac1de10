// The screen `text`: what was read of a text, and how long a model may learn from it.

import { h } from "../../../web/dom.js";
import { string } from "../../../web/strings.js";
import { get, Refusal } from "../basics/api.js";
import { sentenceOf, speak } from "../basics/told.js";
import { live } from "../live.js";
import { makeDial } from "./text/dial.js";
import { makeReading } from "./text/reading.js";

const OFTEN = 600; // milliseconds from one look to the next while something is being read or planned
const SELDOM = 3000; // otherwise: another tab may change the text

export async function show(main, id) {
  const address = `/api/texts/${id}`;
  const first = await get(address);
  document.title = string("text.title", { name: first.name });

  const reading = makeReading(first, look);
  const dial = makeDial(first, look);
  main.replaceChildren(h("div", { className: "columns text" }, reading.element, dial.element));

  let asking = null; // the next look
  let state = ""; // as a screen reader has heard it
  let shown = "";

  /** Ask what is known of the text now, and show it. */
  async function look() {
    clearTimeout(asking);
    let wait = SELDOM;
    try {
      const text = reading.isBusy() ? null : await get(address); // it would be read without the files on their way
      if (text !== null) update(text);
      if (text !== null && isBusy(text)) wait = OFTEN;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (error.status === 404) {
        leave(main, sentenceOf(error));
        return;
      }
    }
    clearTimeout(asking);
    if (!document.hidden) asking = setTimeout(look, wait);
  }

  function update(text) {
    const now = JSON.stringify(text);
    if (now === shown) return;
    shown = now;
    reading.update(text);
    dial.update(text);
    if (text.state !== state) speak(string(`texts.${text.state}`));
    state = text.state;
  }

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) look();
  });
  live((state) => dial.updateLine(state, id));
  look();
}

function isBusy(text) {
  if (text.state === "unread" || text.state === "reading") return true;
  return text.state === "ready" && !(text.plans?.share >= 1 || text.plans?.problem);
}

/** The text was deleted meanwhile. */
function leave(main, message) {
  main.replaceChildren(h("h1", {}, message), h("a", { className: "button", href: "/" }, string("header.home")));
}
