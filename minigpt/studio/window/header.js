// The head of the window: what is learning now, the theme, and the button that closes the studio.

import { button, byId, h } from "../../web/dom.js";
import { string } from "../../web/strings.js";
import { chooseTheme, makeThemeButton } from "../../web/theme.js";
import { post, Refusal } from "./basics/api.js";
import { ACTIVE, shortDurationOf } from "./basics/words.js";

const THEME = "minigpt-studio-theme"; // where it is remembered
const ASKED = 5000; // milliseconds in which a second press closes the studio
const LONGEST = 28; // characters of a name: the buttons stay in one line

export function makeHeader() {
  const title = h("a", { href: "/", className: "title" }, "minigpt studio");
  const learning = h("a", { id: "learning", hidden: true });
  const close = button(string("header.close"), askToClose, { id: "close" });
  byId("header").replaceChildren(title, learning, makeTheme(), close);
}

let ticking = null;
let hasLine = false; // whether something waits in line

/** Say what is learning now, of a state of the studio: "Learning: diary, 3 min left". */
export function showState(state) {
  hasLine = state.line.length > 0;
  const run = state.runs.find((one) => ACTIVE.includes(one.state));
  const show = () => showLearning(run);
  clearInterval(ticking);
  if (run !== undefined && run.ends_at !== null) ticking = setInterval(show, 1000);
  show();
}

/** Say that a run is learning, and how long it will; nothing without a run, and on its own screen, which says so. */
function showLearning(run) {
  const link = byId("learning");
  const address = run === undefined ? "" : `/run/${encodeURIComponent(run.name)}`;
  link.hidden = run === undefined || location.pathname === address;
  if (link.hidden) return;

  const seconds = run.ends_at === null || run.state === "stopping" ? 0 : run.ends_at - Date.now() / 1000;
  const left = seconds < 1 ? null : shortDurationOf(seconds); // it only saves then
  const words = left === null ? "header.learning" : "header.learningLeft";
  link.href = address;
  link.textContent = string(words, { name: shortened(run.name), left });
}

function shortened(name) {
  return name.length <= LONGEST ? name : `${name.slice(0, LONGEST - 1).trimEnd()}…`;
}

/** The button between the themes; the browser remembers what somebody chooses. */
function makeTheme() {
  chooseTheme(localStorage.getItem(THEME));
  return makeThemeButton((theme) => localStorage.setItem(THEME, theme));
}

/** The studio closes after a second press, if that comes soon. */
async function askToClose(event) {
  const pressed = event.currentTarget;
  if (pressed.dataset.asks !== "true") {
    pressed.dataset.asks = "true";
    pressed.textContent = string(hasLine ? "header.closeSureLine" : "header.closeSure");
    setTimeout(() => {
      pressed.dataset.asks = "false";
      pressed.textContent = string("header.close");
    }, ASKED);
    return;
  }
  try {
    await post("/api/close");
  } catch (error) {
    const isGone = error instanceof Refusal && error.status === 0; // before its answer has come
    if (!isGone) throw error;
  }
  pressed.hidden = true;
  const main = byId("main").cloneNode(false); // a screen that is still coming is not to write over it
  const how = string(hasLine ? "closed.howLine" : "closed.how");
  main.append(h("h1", {}, string("closed.title")), h("p", {}, how));
  byId("main").replaceWith(main);
  main.focus();
}
