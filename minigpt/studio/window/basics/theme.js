// The theme of the window, light or dark: the system's, until somebody chooses one, which is remembered.

const CHOSEN = "minigpt-studio-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
const listeners = [];

/** "light" or "dark". */
export function themeNow() {
  return localStorage.getItem(CHOSEN) ?? (dark.matches ? "dark" : "light");
}

/** Call `listener` with the theme, now and when it changes. */
export function followTheme(listener) {
  listeners.push(listener);
  listener(themeNow());
}

/** Choose a theme. */
export function choose(theme) {
  localStorage.setItem(CHOSEN, theme);
  tell();
}

function tell() {
  for (const listener of listeners) listener(themeNow());
}

dark.addEventListener("change", tell);
