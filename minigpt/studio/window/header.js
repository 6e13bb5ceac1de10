// The head of the window: what is learning now, the theme, and the button that closes the studio.

import { post } from "./basics/api.js";
import { button, byId, h } from "./basics/dom.js";
import { say, string } from "./basics/strings.js";

const THEME = "minigpt-studio-theme";

export function makeHeader() {
  const title = h("a", { href: "/", className: "title" }, "minigpt studio");
  const learning = h("a", { id: "learning", hidden: true });
  const close = button(string("header.close"), askToClose);
  byId("header").replaceChildren(title, learning, makeTheme(), close);
}

/** Say what is learning, such as "Learning: diary, 3 min left"; `left` is null while that is not known. */
export function showLearning(name, left) {
  const link = byId("learning");
  link.hidden = name === null;
  if (name === null) return;
  link.href = `/run/${encodeURIComponent(name)}`;
  const words = left === null ? say("header.learning", { name }) : say("header.learningLeft", { name, left });
  link.replaceChildren(...words);
}

/** The button between the light and the dark theme; at first the window follows the system. */
function makeTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const made = button("", () => use(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));

  function use(theme) {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem(THEME, theme);
    made.textContent = string(theme === "dark" ? "header.light" : "header.dark");
  }

  use(localStorage.getItem(THEME) ?? system);
  return made;
}

/** The studio closes after a second press. */
async function askToClose(event) {
  const pressed = event.currentTarget;
  if (pressed.dataset.asks !== "true") {
    pressed.dataset.asks = "true";
    pressed.textContent = string("header.closeSure");
    return;
  }
  await post("/api/close");
  byId("main").replaceChildren(h("h1", {}, string("closed.title")), h("p", {}, string("closed.how")));
}
