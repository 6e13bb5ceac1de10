// On a phone the panel is a sheet from below, two thirds high: closed but for its first line, opened by a tap on a
// token, closed by its button, a swipe or Escape. On a wider screen it is always open, and nothing here happens.

import { button, byId } from "../../web/dom.js";
import { string } from "../../web/strings.js";
import { onChange, state } from "../core/state.js";
import { tokenElement } from "../text/spans.js";

const SWIPE = 40; // pixels
const narrow = matchMedia("(max-width: 47.99rem)");
let isOpen = false;

export function makeBottomSheet() {
  const toggle = button("", () => setOpen(!isOpen), { id: "panel-toggle", "aria-controls": "panel-body" });
  byId("panel-bar").append(toggle);
  narrow.addEventListener("change", drawSheet);
  drawSheet();

  byId("sheet").addEventListener("click", ({ target }) => {
    if (target.closest("button, select, label")) return;
    // Where the text is being typed a tap moves the caret; the keyboard needs the room.
    const { activeElement } = document;
    const isTyping = activeElement?.matches("textarea") && activeElement.inputMode !== "none";
    if (state.chosen !== null && !isTyping) openPanel();
  });
  document.addEventListener("keydown", ({ key, defaultPrevented }) => {
    if (key !== "Escape" || defaultPrevented || !isOpen || !narrow.matches) return;
    setOpen(false);
    toggle.focus();
  });
  addSwipes(byId("panel-bar"));

  let { view } = state;
  onChange(() => {
    const isAsked = state.view !== view && !state.followsChoice; // by something on the page
    view = state.view;
    if (isAsked) openPanel();
  });
}

/** If the window is narrow, open it where the view begins, for the map above it is long; a tour comes before both. */
export function openPanel() {
  if (!narrow.matches) return;

  setOpen(true);
  const answer = byId("panels").offsetTop - byId("panel-bar").offsetHeight;
  byId("inside").scrollTop = byId("tour").hidden ? answer : 0;
}

function setOpen(open) {
  if (open === isOpen || !narrow.matches) return;
  isOpen = open;
  drawSheet();

  if (!open) return;
  byId("inside").scrollTop = 0;
  // The text stays in sight: what is chosen comes into the third that is left.
  if (state.chosen !== null) tokenElement(state.chosen)?.scrollIntoView({ block: "center" });
}

function drawSheet() {
  const toggle = byId("panel-toggle");
  document.documentElement.dataset.panel = narrow.matches && isOpen ? "open" : "closed";
  byId("panel-body").inert = narrow.matches && !isOpen;
  toggle.hidden = !narrow.matches;
  toggle.ariaExpanded = String(isOpen);
  toggle.textContent = string(isOpen ? "panel.close" : "panel.open");
}

/** The first line follows the finger; where it goes far enough, the sheet opens or closes. */
function addSwipes(bar) {
  let from = null;

  bar.addEventListener("pointerdown", (event) => {
    if (narrow.matches && !event.target.closest("button")) from = event.clientY;
  });
  addEventListener("pointerup", ({ clientY }) => {
    if (from === null) return;
    const moved = clientY - from;
    from = null;
    if (Math.abs(moved) < SWIPE) return setOpen(!isOpen); // a tap
    setOpen(moved < 0);
  });
  addEventListener("pointercancel", () => {
    from = null;
  });
}
