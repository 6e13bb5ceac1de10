// The panel beside the text: what it is about (a token and a question), and the one open view.

import { button, fill, h, roving } from "../basics/dom.js";
import { say, string } from "../basics/strings.js";
import { savePicture } from "../text/link.js";
import { changed, openView, state, subject } from "../text/state.js";
import { tokenName } from "../text/writing.js";
import { attentionView } from "../views/attention.js";
import { branchesView } from "../views/branches.js";
import { drawView } from "../views/draw.js";
import { headsView } from "../views/heads.js";
import { layersView } from "../views/layers.js";
import { learnedView } from "../views/learned.js";
import { numbersView } from "../views/numbers.js";
import { sourcesView } from "../views/sources.js";
import { whyView } from "../views/why.js";

const views = [
  whyView,
  drawView,
  attentionView,
  numbersView,
  headsView,
  layersView,
  sourcesView,
  branchesView,
  learnedView,
];
const draws = {}; // id of a view -> the function that draws it
const inPage = (id) => document.getElementById(id);
let drawCount = 0; // counts the drawings of views

export function makePanels() {
  makeSubject();
  makeTabs();
  for (const view of views) makePanel(view);
}

function makePanel(view) {
  const panel = h("section", { className: "view", id: `panel-${view.id}`, "aria-labelledby": `title-${view.id}` });
  const title = h("h2", { id: `title-${view.id}` }, string(`views.${view.id}`));
  const save = (kind) => button(string(`panel.${kind}`), () => savePicture(panel, `minigpt-${view.id}`, kind));
  const saves = h("div", { className: "row save" }, save("svg"), save("png"));

  panel.append(h("div", { className: "view-head" }, title, saves));
  inPage("panels").append(panel);
  draws[view.id] = view.make(panel);
}

/** The line that says which token all views are about, and the switch between the two questions. */
function makeSubject() {
  const choose = (question) => {
    state.question = question;
    if (question === "why" && state.chosen === null) state.chosen = state.text.ids.length - 1;
    changed();
  };
  const why = button(string("panel.why"), () => choose("why"), { id: "question-why" });
  const next = button(string("panel.next"), () => choose("next"), { id: "question-next" });

  const meaning = { className: "switch", role: "group", "aria-label": string("panel.question") };
  inPage("subject").append(h("p", { id: "subject-line", "aria-live": "polite" }), h("div", meaning, why, next));
}

function drawSubject() {
  const { token, question, row } = subject();
  const before = state.text.ids[row];
  const line = inPage("subject-line");

  if (question === "why") {
    fill(line, say("panel.whyToken", { token: tokenName(token) }));
  } else if (row < state.text.hidden) {
    fill(line, say("panel.first"));
  } else {
    fill(line, say("panel.nextAfter", { token: tokenName(before) }));
  }
  inPage("question-why").ariaPressed = String(question === "why");
  inPage("question-next").ariaPressed = String(question === "next");
}

/** The way around, until the map of the model takes its place. */
function makeTabs() {
  const tabs = views.map(({ id }) => {
    const open = () => openView(id);
    return button(string(`views.${id}`), open, { role: "tab", id: `tab-${id}`, "aria-controls": `panel-${id}` });
  });
  const list = h("div", { id: "tabs", role: "tablist", "aria-label": string("panel.views") }, tabs);
  inPage("map").append(list);

  roving(list, "[role=tab]", (key, at, items) => {
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: items.length - 1 }[key];
    return to === undefined ? to : (to + items.length) % items.length;
  });
  list.addEventListener("focusin", (event) => openView(event.target.id.slice(4)));
}

/** Draw the open view. Until its answer is there it is marked as busy: what it shows may be about another text. */
export async function drawPanel() {
  drawSubject();
  for (const { id } of views) {
    const isOpen = id === state.view;
    const tab = inPage(`tab-${id}`);
    tab.ariaSelected = String(isOpen);
    tab.tabIndex = isOpen ? 0 : -1;
    inPage(`panel-${id}`).hidden = !isOpen;
  }

  drawCount += 1;
  const mine = drawCount;
  const panel = inPage(`panel-${state.view}`);
  panel.ariaBusy = "true";
  await draws[state.view]();
  if (mine === drawCount) panel.ariaBusy = "false";
}
