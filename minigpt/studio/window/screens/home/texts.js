// The texts from which no model has learned: nobody loses one that was dropped and left.

import { button, h } from "../../../../web/dom.js";
import { string } from "../../../../web/strings.js";
import { bytesOf } from "../../../../web/units.js";
import { dayOf } from "../../basics/amounts.js";
import { post } from "../../basics/api.js";
import { makeCards } from "../../basics/cards.js";
import { ask } from "../../basics/dialog.js";

export function makeTexts() {
  const list = h("ul", { className: "cards" });
  const element = h("section", { "aria-labelledby": "texts", hidden: true }, [
    h("h2", { id: "texts" }, string("home.texts")),
    list,
  ]);
  const update = makeCards(list, (text) => text.id, makeCard);

  return {
    element,
    update(texts, runs) {
      const learned = new Set(runs.map((run) => run.text?.id));
      const others = texts.filter((text) => !learned.has(text.id));
      element.hidden = others.length === 0;
      update(others);
    },
  };
}

function makeCard({ id, name }) {
  const facts = h("p", { className: "facts" });
  const open = { className: "button", href: `/text/${id}`, "aria-label": string("home.openName", { name }) };
  const label = string("home.delete");
  const element = h("li", { className: "card model" }, [
    h("div", { className: "about" }, h("h3", {}, name), facts),
    h("a", open, string("home.open")),
    button(label, remove, { "aria-label": string("home.deleteName", { name }) }),
  ]);

  function remove() {
    const content = [h("p", {}, string("home.deleteTextHow"))];
    const act = () => post(`/api/texts/${id}/delete`);
    ask({ title: string("home.deleteTitle", { name }), content, label, act });
  }

  return {
    element,
    update(text) {
      const files = text.files === 1 ? string("home.oneFile") : string("home.files", { n: text.files });
      const state = string(`texts.${text.state}`);
      facts.textContent = [bytesOf(text.size), files, dayOf(text.changed), state].join(", ");
    },
  };
}
