// The theme, light or dark: the system's, until somebody chooses one.

import { button } from "./dom.js";
import { string } from "./strings.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
const listeners = [];
let chosen = null; // instead of the system's

/** "light" or "dark". */
export function themeNow() {
  return chosen ?? (dark.matches ? "dark" : "light");
}

/** Choose a theme; null: the system's. */
export function chooseTheme(theme) {
  chosen = theme;
  tellTheme();
}

/** Call `listener` with the theme, now and when it changes. */
export function followTheme(listener) {
  listeners.push(listener);
  listener(themeNow());
}

/** The button between the two; `pressed` gets the theme that somebody chooses with it. */
export function makeThemeButton(pressed = () => {}) {
  const choose = () => {
    const theme = themeNow() === "dark" ? "light" : "dark";
    chooseTheme(theme);
    pressed(theme);
  };
  const made = button("", choose, { id: "theme" });

  followTheme((theme) => {
    document.documentElement.dataset.theme = theme;
    made.textContent = string(theme === "dark" ? "theme.light" : "theme.dark");
  });
  return made;
}

function tellTheme() {
  for (const listener of listeners) listener(themeNow());
}

dark.addEventListener("change", tellTheme);
