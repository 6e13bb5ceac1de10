// The cards of the home screen: models, those that learn now too; texts from which none has learned, so that nobody loses
// one that was dropped and left; and the bin, until it is emptied. A card stays the same element as long as its row is
// there, so that an open menu and the focus outlive each change.

import { button, h } from "../../../../web/dom.js";
import { string } from "../../../../web/strings.js";
import { bytesOf, number } from "../../../../web/units.js";
import { post } from "../../basics/api.js";
import { ask, makeMenu } from "../../basics/controls.js";
import { attempt } from "../../basics/told.js";
import { ACTIVE, dayOf, lettersOf, stateOf } from "../../basics/words.js";

export function makeModels() {
  const none = h("p", { className: "quiet", hidden: true }, string("home.none"));
  const list = h("ul", { className: "cards" });
  const problem = h("div", { role: "alert" });
  const heading = h("h2", { id: "models", tabIndex: -1 }, string("home.models"));
  const element = h("section", { "aria-labelledby": "models" }, [heading, none, problem, list]);
  const update = makeCards(
    list,
    (run) => run.name,
    (run) => makeModelCard(run.name, problem),
  );

  return {
    element,
    heading,
    say: (words) => problem.replaceChildren(h("p", { className: "bad" }, words)),
    update(runs) {
      none.hidden = runs.length > 0;
      update(runs);
    },
  };
}

function makeModelCard(name, problem) {
  const address = `/api/runs/${encodeURIComponent(name)}`;
  const beginning = h("p", { className: "beginning", dir: "auto" });
  const facts = h("span");
  const state = h("span", { className: "state" });
  let isKept = true; // in the bin, when it is deleted
  const open = { className: "button", href: `/run/${encodeURIComponent(name)}` };
  const menu = makeMenu(string("home.more", { name }), [
    [string("home.rename"), rename],
    [string("home.download"), download],
    [string("home.delete"), remove],
  ]);
  const element = h("li", { className: "card model" }, [
    h("div", { className: "about" }, h("h3", {}, name), beginning, h("p", { className: "facts" }, facts, state)),
    h("a", { ...open, "aria-label": string("home.openName", { name }) }, string("home.open")),
    menu,
  ]);

  function rename() {
    const input = h("input", { value: name, required: true, maxLength: 80, autocomplete: "off" });
    const content = [h("label", { className: "field" }, string("home.name"), input)];
    const act = () => post(`${address}/rename`, { name: input.value });
    ask({ title: string("home.renameTitle", { name }), content, label: string("home.rename"), act });
  }

  function download() {
    attempt(problem, async () => {
      const made = await post(`${address}/download`);
      h("a", { href: made.address, download: "" }).click(); // to leave the page would end an upload
    });
  }

  function remove() {
    const content = [h("p", {}, string(isKept ? "home.deleteHow" : "home.deleteWaitingHow"))];
    const act = () => post(`${address}/delete`);
    ask({ title: string("home.deleteTitle", { name }), content, label: string("home.delete"), act });
  }

  return {
    element,
    update(run) {
      beginning.textContent = run.text?.beginning ? string("home.beginning", { words: run.text.beginning }) : "";
      facts.textContent = `${factsOf(run).join(", ")}, `;
      state.textContent = stateOf(run);
      isKept = run.state !== "waiting" || run.has_checkpoint;
      element.classList.toggle("active", ACTIVE.includes(run.state));
    },
  };
}

/** "312 kB, chooses among 2.3 letters, today". What is not known yet is said, unless the state says it. */
function factsOf(run) {
  const facts = [run.text?.size ? bytesOf(run.text.size) : string("home.noSize")];
  if (run.letters !== null) facts.push(string("home.letters", { n: lettersOf(run.letters) }));
  else if (run.state !== "waiting") facts.push(string("home.noLetters"));
  if (run.changed !== null) facts.push(dayOf(run.changed));
  return facts;
}

export function makeTexts() {
  const list = h("ul", { className: "cards" });
  const element = h("section", { "aria-labelledby": "texts", hidden: true }, [
    h("h2", { id: "texts" }, string("home.texts")),
    list,
  ]);
  const update = makeCards(list, (text) => text.id, makeTextCard);

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

function makeTextCard({ id, name }) {
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

export function makeBin() {
  const list = h("ul", { className: "cards" });
  const problem = h("div", { role: "alert" });
  const element = h("section", { className: "bin", "aria-labelledby": "bin", hidden: true }, [
    h("div", { className: "row" }, h("h2", { id: "bin" }, string("home.bin")), button(string("home.empty"), empty)),
    problem,
    list,
  ]);
  const update = makeCards(
    list,
    (run) => run.name,
    (run) => makeBinCard(run.name, problem),
  );
  let count = 0;

  function empty() {
    const title = count === 1 ? string("home.emptyOne") : string("home.emptySeveral", { n: number(count) });
    const content = [h("p", {}, string("home.emptyHow"))];
    ask({ title, content, label: string("home.empty"), act: emptyNow });
  }

  async function emptyNow() {
    const { problems } = await post("/api/empty-bin");
    const sentences = problems.map((why) => h("p", { className: "bad" }, string("home.emptyNot", { why })));
    problem.replaceChildren(...sentences);
  }

  return {
    element,
    update(runs) {
      count = runs.length;
      element.hidden = count === 0;
      update(runs);
    },
  };
}

function makeBinCard(name, problem) {
  const restore = () => attempt(problem, () => post(`/api/runs/${encodeURIComponent(name)}/restore`));
  const back = button(string("home.putBack"), restore, { "aria-label": string("home.putBackName", { name }) });
  const element = h("li", { className: "card model" }, h("div", { className: "about" }, h("h3", {}, name)), back);
  return { element, update: () => null };
}

/** A function that makes a list show one card for each of some rows. `make(row)` gives a card, {element, update(row)};
 * `keyOf(row)` is what tells rows apart. */
function makeCards(list, keyOf, make) {
  const cards = new Map();

  return function update(rows) {
    const keys = new Set(rows.map(keyOf));
    for (const [key, card] of cards) {
      if (keys.has(key)) continue;
      card.element.remove();
      cards.delete(key);
    }

    let next = list.firstElementChild;
    for (const row of rows) {
      const card = cards.get(keyOf(row)) ?? make(row);
      cards.set(keyOf(row), card);
      card.update(row);
      if (card.element === next) next = next.nextElementSibling;
      else list.insertBefore(card.element, next);
    }
  };
}
