// The panel beside the text: one view is open, all about the same token.

import { button, h, roving } from "../basics/dom.js";
import { string } from "../basics/strings.js";
import { savePicture } from "../text/link.js";
import { openView, state } from "../text/state.js";
import { attentionView } from "../views/attention.js";
import { drawView } from "../views/draw.js";
import { headsView } from "../views/heads.js";
import { layersView } from "../views/layers.js";
import { numbersView } from "../views/numbers.js";
import { sourcesView } from "../views/sources.js";

const views = [drawView, attentionView, numbersView, headsView, layersView, sourcesView];
const draws = {}; // id of a view -> the function that draws it
const inPage = (id) => document.getElementById(id);

export function makePanels() {
  for (const view of views) makePanel(view);

  roving(inPage("tabs"), "[role=tab]", (key, at, items) => {
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: items.length - 1 }[key];
    return to === undefined ? to : (to + items.length) % items.length;
  });
  inPage("tabs").addEventListener("focusin", (event) => openView(event.target.id.slice(4)));
}

function makePanel(view) {
  const tabId = `tab-${view.id}`;
  const panelId = `panel-${view.id}`;
  const title = string(`views.${view.id}`);

  const tab = button(title, () => openView(view.id), { role: "tab", id: tabId, "aria-controls": panelId });
  const panel = h("div", { role: "tabpanel", id: panelId, "aria-labelledby": tabId, tabIndex: 0 });
  inPage("tabs").append(tab);
  inPage("panels").append(panel);
  draws[view.id] = view.make(panel);

  const save = (kind) => button(`Save ${kind.toUpperCase()}`, () => savePicture(panel, `minigpt-${view.id}`, kind));
  panel.append(h("p", { className: "row save" }, save("svg"), save("png")));
}

/** Draw the open view; a promise, if it asks the model. */
export function drawPanel() {
  for (const { id } of views) {
    const isOpen = id === state.view;
    const tab = inPage(`tab-${id}`);
    tab.ariaSelected = String(isOpen);
    tab.tabIndex = isOpen ? 0 : -1;
    inPage(`panel-${id}`).hidden = !isOpen;
  }
  return draws[state.view]();
}
