// The panel beside the text: what it is about (a token and a question), and the one open view.

import { button, byId, fill, h, lastAsked } from "../../web/dom.js";
import { say, string } from "../../web/strings.js";
import { savePicture } from "../basics/picture.js";
import { changed, state, subject } from "../core/state.js";
import { tokenName } from "../core/writing.js";
import { attentionView } from "../views/attention.js";
import { drawView } from "../views/chances.js";
import { feedForwardView } from "../views/feed_forward.js";
import { headsView } from "../views/heads.js";
import { layersView } from "../views/layers.js";
import { learnedView } from "../views/learned.js";
import { numbersView } from "../views/numbers.js";
import { vectorsView } from "../views/vectors.js";
import { whyView } from "../views/why.js";
import { drawMap, lightMap, makeMap } from "./map.js";

const views = [
  whyView,
  drawView,
  attentionView,
  numbersView,
  feedForwardView,
  vectorsView,
  layersView,
  headsView,
  learnedView,
];
const ANSWERS = ["why", "draw", "learned"]; // the answer to a question takes their place; other views have both
const draws = {}; // id of a view -> the function that draws it
const drawingViews = lastAsked();

export function makePanels() {
  makeSubject();
  makeMap(
    byId("map"),
    views.map(({ id }) => id),
  );
  for (const view of views) makePanel(view);
  showOpenView();
}

function showOpenView() {
  for (const { id } of views) {
    const panel = byId(`panel-${id}`);
    panel.hidden = id !== state.view;
    if (panel.hidden) panel.ariaBusy = "false"; // it was left while it was drawn, and is drawn anew when it is opened
  }
}

function makePanel(view) {
  const panel = h("section", { className: "view", id: `panel-${view.id}`, "aria-labelledby": `title-${view.id}` });
  const title = h("h2", { id: `title-${view.id}` }, string(`views.${view.id}`));
  const save = (kind) => button(string(`panel.${kind}`), () => savePicture(panel, `minigpt-${view.id}`, kind));
  const saves = h("div", { className: "row save" }, save("svg"), save("png"));

  const computing = h("span", { className: "computing", "aria-hidden": "true" }, string("panel.computing"));
  panel.append(h("div", { className: "view-head" }, title, computing, saves));
  byId("panels").append(panel);
  draws[view.id] = view.make(panel);
}

/** The line that says which token all views are about, and the switch between the two questions. */
function makeSubject() {
  const choose = (question) => {
    state.question = question;
    if (ANSWERS.includes(state.view)) state.followsChoice = true;
    if (question === "why" && state.chosen === null) state.chosen = state.text.ids.length - 1;
    changed();
  };
  const why = button(string("panel.why"), () => choose("why"), { id: "question-why" });
  const next = button(string("panel.next"), () => choose("next"), { id: "question-next" });

  const meaning = { className: "switch", role: "group", "aria-label": string("panel.question") };
  byId("subject").append(h("p", { id: "subject-line", "aria-live": "polite" }), h("div", meaning, why, next));
}

function drawSubject() {
  const { token, question, row } = subject();
  const before = state.text.ids[row];
  const line = byId("subject-line");

  if (question === "why") {
    fill(line, say("panel.whyToken", { token: tokenName(token) }));
  } else if (row < state.text.hidden) {
    fill(line, say("panel.first"));
  } else {
    fill(line, say("panel.nextAfter", { token: tokenName(before) }));
  }
  byId("question-why").ariaPressed = String(question === "why");
  byId("question-next").ariaPressed = String(question === "next");
}

/** Draw the open view. Until its answer is there it is marked as busy: what it shows may be about another text. */
export async function drawPanel() {
  drawSubject();
  showOpenView();

  const isLast = drawingViews();
  const panel = byId(`panel-${state.view}`);
  panel.ariaBusy = "true";
  await Promise.all([drawMap(), draws[state.view]()]);
  lightMap(); // a view may have chosen its head by now
  if (isLast()) panel.ariaBusy = "false";
}

/** A text is being written: what the open view shows is about the text before it. */
export function waitForWriting() {
  drawingViews(); // an answer that is still awaited is no longer wanted
  fill(byId("subject-line"), string("panel.writing"));
  showOpenView();
  if (state.view !== "learned") byId(`panel-${state.view}`).ariaBusy = "true";
}
