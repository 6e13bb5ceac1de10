// The buttons below the sheet, and what the page says of what they do.

import { button, byId } from "../../web/dom.js";
import { say, string } from "../../web/strings.js";
import { savePicture } from "../basics/picture.js";
import { model } from "../core/client.js";
import { copyLink, copyText, hasLink } from "../core/link.js";
import { allHeadsOn, offNames, state } from "../core/state.js";
import { again, lastWritten, redoLast, stop, undoLast, writeFromHere } from "../core/writing.js";
import { area, showEnd } from "./sheet.js";
import { currentLook } from "./spans.js";
import { startWriting, step, typeButton } from "./typing.js";

const labelled = (name, onclick, properties = {}) => button(string(`writing.${name}`), onclick, properties);

const buttons = {
  write: labelled("write", startWriting, { className: "main", id: "write" }),
  stop: labelled("stop", stop, { id: "stop" }),
  fromHere: labelled("fromHere", () => inEnd(writeFromHere), { id: "from-here" }),
  again: labelled("again", () => inEnd(again), { title: string("writing.againHelp") }),
  undo: labelled("undo", undoLast, { title: string("writing.undoHelp") }),
  redo: labelled("redo", redoLast, { title: string("writing.redoHelp") }),
};

const focusPanel = () => {
  const panel = document.querySelector("#panels > :not([hidden])");
  if (panel) panel.tabIndex = -1;
  panel?.focus();
};

/** Write something, and see its end. */
function inEnd(act) {
  showEnd();
  return act();
}

export function makeControls() {
  const toView = button(string("sheet.toView"), focusPanel, { className: "skip", id: "to-view" });
  byId("notes").before(toView);

  const previous = button(string("sheet.previousShort"), () => step(-1), {
    "aria-label": string("sheet.previous"),
    title: string("sheet.previous"),
  });
  const next = button(string("sheet.nextShort"), () => step(1), {
    "aria-label": string("sheet.next"),
    title: string("sheet.next"),
  });
  byId("buttons").append(...Object.values(buttons), typeButton());
  byId("text-foot").append(
    previous,
    next,
    button(string("link.copyText"), copyText),
    hasLink() ? button(string("link.copyLink"), copyLink) : "",
    ...["svg", "png"].map((kind) =>
      button(string(`panel.${kind}`), () => savePicture(currentLook().room, "minigpt-text", kind)),
    ),
  );
  byId("heads-off").append(button(string("writing.headsOn"), allHeadsOn));
}

let wasBusy = false;

export function drawControls() {
  const { busy, chosen, text } = state;
  // What has the focus keeps it, so that no button is switched off under the hand.
  setOff(buttons.fromHere, chosen === null || chosen >= text.ids.length - 1);
  setOff(buttons.again, lastWritten() === null);
  setOff(buttons.undo, state.past.length === 0);
  setOff(buttons.redo, state.future.length === 0);
  buttons.stop.classList.toggle("idle", !busy);
  if (wasBusy && !busy && document.activeElement === buttons.stop) goOnElement().focus();
  wasBusy = busy;

  for (const id of ["status", "speed", "problem"]) {
    const element = byId(id);
    if (element.textContent !== state[id]) element.textContent = state[id];
  }
  drawHeadsOff();
}

/** A button that does nothing now; with the focus on it, it stays as it is until the focus goes on. */
function setOff(element, isOff) {
  if (isOff && document.activeElement === element) textElement().focus({ preventScroll: true });
  element.disabled = isOff;
}

/** Where one types. */
function textElement() {
  return state.look === "talk" ? byId("line") : area;
}

/** What is done next when nothing is written any more. */
function goOnElement() {
  return state.look === "talk" ? byId("line") : buttons.write;
}

/** The line that says that the page is about the model without some heads. */
function drawHeadsOff() {
  const { num_layers, num_heads } = model.config;
  const banner = byId("heads-off");
  banner.hidden = state.off.size === 0;
  const counts = { n: String(state.off.size), all: String(num_layers * num_heads), names: offNames() };
  if (banner.dataset.names === counts.names) return;

  banner.dataset.names = counts.names;
  banner.querySelector("span").replaceChildren(...say("writing.headsOff", counts));
}
