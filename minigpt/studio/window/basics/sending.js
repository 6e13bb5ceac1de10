// Shows how far an upload is, and lets it be cancelled. The home screen and that of a text have one each.

import { button, h } from "../../../web/dom.js";
import { string } from "../../../web/strings.js";
import { speak } from "../notice.js";
import { percent } from "./amounts.js";
import { Refusal } from "./api.js";
import { keepingFocus } from "./focus.js";
import { sentenceOf } from "./refusals.js";
import { upload } from "./upload.js";

/**
 * A place where uploads are shown: {element, send(files, text), say(words)}.
 *
 * `send` brings files into a text, a new one if `text` is null, and calls `arrived` with its id. What could not be
 * opened is listed first, until somebody goes on.
 */
export function makeSending(arrived) {
  let ending = null; // of the upload that goes on
  const words = h("p", { className: "words" });
  const bar = h("progress", { max: 1, "aria-label": string("sending.bar") });
  const cancel = button(string("sending.cancel"), () => ending?.abort());
  const progress = h(
    "div",
    { className: "progress", hidden: true },
    words,
    h("div", { className: "row" }, bar, cancel),
  );
  const problem = h("div", { role: "alert" });
  const element = h("div", { className: "sending" }, progress, problem);

  function say(sentence) {
    problem.replaceChildren(sentence === "" ? "" : h("p", { className: "bad" }, sentence));
  }

  function show({ name, number, share }, count) {
    const values = { name, share: percent(share), number, count };
    words.textContent = string(count === 1 ? "sending.one" : "sending.several", values);
    bar.value = share;
  }

  async function send(files, text) {
    if (ending !== null) {
      say(string("sending.busy"));
      return;
    }
    say("");
    if (files.length === 0) {
      say(string("sending.nothing"));
      return;
    }

    ending = new AbortController();
    progress.hidden = false;
    speak(string("sending.begins"));
    let found = null;
    try {
      found = await upload(files, text, (told) => show(told, files.length), ending.signal);
    } catch (error) {
      if (error instanceof Refusal) say(sentenceOf(error));
      else if (!ending.signal.aborted) throw error;
      else speak(string("sending.cancelled"));
    } finally {
      ending = null;
      keepingFocus(() => {
        progress.hidden = true;
      });
    }
    if (found === null) return;

    // Only now, since `arrived` may leave the screen, which asks first while an upload goes on.
    if (found.failed.length > 0) offer(found.failed, found.id);
    else arrived(found.id);
  }

  /** List the files that could not be opened. */
  function offer(failed, id) {
    say(string("sending.failed", { names: failed.join(", ") }));
    if (id !== null) problem.append(button(string("sending.goOn"), () => arrived(id), { className: "main" }));
  }

  return { element, send, say, isBusy: () => ending !== null };
}
