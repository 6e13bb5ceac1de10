// The theme, light or dark: the system's until somebody chooses, or that of the window which shows the page in a frame.

import { button } from "../basics/dom.js";
import { string } from "../basics/strings.js";
import { changed, state } from "../text/state.js";

const THEMES = ["light", "dark"];

/** The button between the two. In a frame of a window that tells its theme it is not there: the window has one. */
export function makeTheme() {
  const made = button("", () => use(state.theme === "dark" ? "light" : "dark"), { id: "theme" });

  function use(theme) {
    state.theme = theme;
    document.documentElement.dataset.theme = theme;
    made.textContent = string(theme === "dark" ? "header.light" : "header.dark");
    changed();
  }

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => use(dark.matches ? "dark" : "light");
  dark.addEventListener("change", follow);
  follow();

  addEventListener("message", ({ source, data }) => {
    if (source !== parent || parent === window || !THEMES.includes(data?.theme)) return;
    dark.removeEventListener("change", follow);
    made.hidden = true;
    use(data.theme);
  });
  return made;
}
