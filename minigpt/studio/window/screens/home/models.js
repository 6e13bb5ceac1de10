// "Your models": a card for each run, those that learn now too.

import { h } from "../../../../web/dom.js";
import { string } from "../../../../web/strings.js";
import { bytesOf } from "../../../../web/units.js";
import { dayOf, lettersOf } from "../../basics/amounts.js";
import { post } from "../../basics/api.js";
import { attempt } from "../../basics/attempt.js";
import { makeCards } from "../../basics/cards.js";
import { ask } from "../../basics/dialog.js";
import { makeMenu } from "../../basics/menu.js";
import { ACTIVE, stateOf } from "../../basics/runs.js";

export function makeModels() {
  const none = h("p", { className: "quiet", hidden: true }, string("home.none"));
  const list = h("ul", { className: "cards" });
  const problem = h("div", { role: "alert" });
  const heading = h("h2", { id: "models", tabIndex: -1 }, string("home.models"));
  const element = h("section", { "aria-labelledby": "models" }, [heading, none, problem, list]);
  const update = makeCards(
    list,
    (run) => run.name,
    (run) => makeCard(run.name, problem),
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

function makeCard(name, problem) {
  const address = `/api/runs/${encodeURIComponent(name)}`;
  const beginning = h("p", { className: "beginning", dir: "auto" });
  const facts = h("span");
  const state = h("span", { className: "state" });
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
      location.assign(made.address);
    });
  }

  function remove() {
    const content = [h("p", {}, string("home.deleteHow"))];
    const act = () => post(`${address}/delete`);
    ask({ title: string("home.deleteTitle", { name }), content, label: string("home.delete"), act });
  }

  return {
    element,
    update(run) {
      beginning.textContent = run.text?.beginning ? string("home.beginning", { words: run.text.beginning }) : "";
      facts.textContent = `${factsOf(run).join(", ")}, `;
      state.textContent = stateOf(run);
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
