// Where a text comes in: chosen, dropped, pasted, or the fairy tales.

import { button, h } from "../../../../web/dom.js";
import { string } from "../../../../web/strings.js";
import { post, Refusal } from "../../basics/api.js";
import { ask } from "../../basics/controls.js";
import { sentenceOf } from "../../basics/told.js";
import { fileOf, filesOf, makeUpload, transferred } from "../../basics/upload.js";

export function makeDrop() {
  const upload = makeUpload(openText);
  const buttons = h(
    "div",
    { className: "row" },
    makeChooser(string("home.chooseFiles"), {}),
    "webkitdirectory" in HTMLInputElement.prototype
      ? makeChooser(string("home.chooseFolder"), { webkitdirectory: true })
      : null,
    button(string("home.paste"), () => askForText("")),
    button(string("home.tales"), useTales),
  );

  const zone = h(
    "section",
    { className: "drop card", "aria-labelledby": "drop" },
    h("h1", { id: "drop" }, string("home.drop")),
    h("p", {}, string("home.what")),
    buttons,
    h("p", { className: "stays" }, string("home.stays")),
    upload.element,
  );

  /** An input for files that looks like a button, and lies over it. */
  function makeChooser(label, properties) {
    const input = h("input", { type: "file", multiple: true, ...properties });
    input.addEventListener("change", () => {
      const files = filesOf(input.files);
      input.value = ""; // the same files can be chosen again
      upload.begin(files, null);
    });
    return h("label", { className: "button chooser" }, label, input);
  }

  async function askForText(text) {
    const area = h("textarea", { rows: 10, value: text, required: true, "aria-label": string("home.pasted") });
    let isComing = false;

    async function bring() {
      isComing = true;
      try {
        await upload.bringOne(fileOf(area.value, string("home.pastedName")));
      } finally {
        isComing = false;
      }
    }

    const isDone = await ask({
      title: string("home.pasteTitle"),
      content: [area],
      label: string("home.use"),
      act: bring,
    });
    if (!isDone && isComing) upload.cancel();
  }

  async function useTales() {
    upload.say("");
    try {
      const { id } = await post("/api/texts", { tales: true });
      openText(id);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      upload.say(sentenceOf(error));
    }
  }

  /** Files anywhere in the window, and a text outside of its fields, are taken in. */
  async function take(transfer) {
    const { files, text } = await transferred(transfer);
    if (files.length > 0 || text === "") upload.begin(files, null);
    else askForText(text);
  }

  function drop(event) {
    event.preventDefault();
    zone.classList.remove("over");
    take(event.dataTransfer);
  }

  function over(event) {
    event.preventDefault(); // else the browser opens what is dropped
    zone.classList.toggle("over", event.type !== "dragleave");
  }

  function paste(event) {
    if (event.target instanceof Element && event.target.closest("input, textarea, dialog") !== null) return;
    if (event.clipboardData.items.length === 0) return;
    event.preventDefault();
    take(event.clipboardData);
  }

  addEventListener("dragover", over);
  addEventListener("dragleave", over);
  addEventListener("drop", drop);
  addEventListener("paste", paste);
  addEventListener("beforeunload", (event) => {
    if (upload.isBusy()) event.preventDefault();
  });
  return zone;
}

/** Leave for a text; a dialog that is open, in which somebody may have typed, closes first. */
function openText(id) {
  const dialog = document.querySelector("dialog");
  if (dialog === null) location.assign(`/text/${id}`);
  else dialog.addEventListener("close", () => openText(id));
}
