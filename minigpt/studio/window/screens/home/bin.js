// The bin: models that were deleted, until it is emptied.

import { button, h } from "../../../../web/dom.js";
import { string } from "../../../../web/strings.js";
import { number } from "../../../../web/units.js";
import { post } from "../../basics/api.js";
import { attempt } from "../../basics/attempt.js";
import { makeCards } from "../../basics/cards.js";
import { ask } from "../../basics/dialog.js";

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
    (run) => makeRow(run.name, problem),
  );
  let count = 0;

  function empty() {
    const title = count === 1 ? string("home.emptyOne") : string("home.emptySeveral", { n: number(count) });
    const content = [h("p", {}, string("home.emptyHow"))];
    ask({ title, content, label: string("home.empty"), act: () => post("/api/empty-bin") });
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

function makeRow(name, problem) {
  const restore = () => attempt(problem, () => post(`/api/runs/${encodeURIComponent(name)}/restore`));
  const back = button(string("home.putBack"), restore, { "aria-label": string("home.putBackName", { name }) });
  const element = h("li", { className: "card model" }, h("div", { className: "about" }, h("h3", {}, name)), back);
  return { element, update: () => null };
}
