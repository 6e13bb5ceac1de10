// A button that shows more buttons below it.

import { button, h } from "../../../web/dom.js";

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
