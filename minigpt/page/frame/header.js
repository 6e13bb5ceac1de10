// The head of the page: what this model is, in one sentence, and the theme.

import { button } from "../basics/dom.js";
import { string } from "../basics/strings.js";
import { model } from "../text/client.js";
import { changed, state } from "../text/state.js";

const inHeader = (id) => document.getElementById(id);

export function makeHeader() {
  const { beginning, config, parameters, title } = model;
  document.title = `${title} · minigpt`;
  inHeader("title").textContent = title;
  const millions = (parameters / 1e6).toFixed(parameters < 1e7 ? 2 : 0);
  const tokens = config.vocab_size.toLocaleString("en");
  inHeader("hello").textContent = [
    `${millions} million parameters, ${config.num_layers} layers of ${config.num_heads} heads, ` +
      `${tokens} tokens, ${config.context_length} of them in sight.`,
    ...(beginning ? [`The training began with ${beginning}.`] : []),
    "It runs in your browser; nothing leaves this page.",
  ].join(" ");

  inHeader("header-buttons").append(makeTheme());
}

/** The button between the light and the dark theme; at first the page follows the system. */
function makeTheme() {
  const theme = button("", () => setTheme(state.theme === "dark" ? "light" : "dark"), { id: "theme" });

  function setTheme(name) {
    state.theme = name;
    document.documentElement.dataset.theme = name;
    theme.textContent = string(name === "dark" ? "header.light" : "header.dark");
    changed();
  }

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => setTheme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", follow);
  follow();
  return theme;
}
