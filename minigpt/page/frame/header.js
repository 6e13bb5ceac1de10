// The head of the page: what this model is, in plain words and from the run's own facts.

import { button, byId, h } from "../../web/dom.js";
import { say, string } from "../../web/strings.js";
import { chooseTheme, followTheme, makeThemeButton } from "../../web/theme.js";
import { bytesOf, durationOf } from "../../web/units.js";
import { percent } from "../basics/numbers.js";
import { model } from "../core/client.js";
import { changed, state } from "../core/state.js";

const THEMES = ["light", "dark"];

/** Fill the head; `others` are buttons that come first in it. */
export function makeHeader(...others) {
  document.title = `${model.title} · minigpt`;
  byId("title").textContent = model.title;
  byId("hello").append(...hello(), " ", string("header.guesses"));
  byId("header-buttons").append(...others, makeAbout(), makeTheme());
}

/** What it has read and for how long, as far as that is known. */
function hello() {
  const { facts, title } = model;
  const name = (text) => h("em", {}, text);
  if (facts.kind === "base") {
    return facts.bytes === null ? say("header.base") : say("header.baseRead", { size: bytesOf(facts.bytes) });
  }
  if (facts.text === null) return say("header.other", { title: name(title) });

  const size = facts.bytes === null ? "" : say("header.sized", { size: bytesOf(facts.bytes) });
  const time = facts.seconds === null ? "" : say("header.timed", { time: durationOf(facts.seconds) });
  const sentence = say("header.read", { text: name(facts.text), size, time });
  const began = facts.beginning === null ? [] : [" ", ...say("header.began", { beginning: facts.beginning })];
  return [...sentence, ...began].flat();
}

/** The button that opens the model's sizes, each with what it means. */
function makeAbout() {
  const { config, parameters, weights, facts } = model;
  const count = (n) => h("b", {}, number(n));
  const heading = h("h2", { id: "about-title" }, string("header.about"));

  const statements = [
    say("header.parameters", { count: count(parameters) }),
    ...(weights.bits === 32
      ? []
      : [say("header.rounded", { bits: String(weights.bits), cost: percent(weights.cost) })]),
    say(config.num_layers === 1 ? "header.layer" : "header.layers", { count: count(config.num_layers) }),
    say(config.num_heads === 1 ? "header.head" : "header.heads", { count: count(config.num_heads) }),
    say("header.vocabulary", { count: count(config.vocab_size) }),
    say("header.context", { count: count(config.context_length) }),
    ...(facts.beginning === null ? [] : [say("header.began", { beginning: facts.beginning })]),
    say("header.private"),
  ];
  const list = h("ul", {}, ...statements.map((statement) => h("li", {}, ...statement)));

  const dialog = h("dialog", { id: "about", "aria-labelledby": "about-title" }, heading, list);
  dialog.append(button(string("header.close"), () => dialog.close()));
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // beside it
  });
  document.body.append(dialog);
  return button(string("header.about"), () => dialog.showModal(), { id: "open-about", "aria-haspopup": "dialog" });
}

/** The button between the themes. In a frame of a window that tells its theme it is not there: the window has one. */
function makeTheme() {
  const made = makeThemeButton();
  followTheme((theme) => {
    state.theme = theme;
    changed();
  });

  addEventListener("message", ({ source, data }) => {
    if (source !== parent || parent === window || !THEMES.includes(data?.theme)) return;
    made.hidden = true;
    chooseTheme(data.theme);
  });
  return made;
}
