// What several views show alike: a token with its chances as bars, and what comes before the place in question.

import { h } from "../../web/dom.js";
import { string } from "../../web/strings.js";
import { visibleToken } from "../core/client.js";
import { state } from "../core/state.js";
import { tokenName } from "../core/writing.js";

/** The token at a row in a sentence; before the first token that is shown there is the beginning. */
export function rowName(row) {
  return row < state.text.hidden ? h("b", {}, string("bars.beginning")) : tokenName(state.text.ids[row]);
}

/** A token with a chance as an outline and another one as a filled bar, relative to the largest of all.
 * @param {{id: number, outline: number, filled: number, most: number}} shares
 * @param {[string, Node][]} figures what each of both chances is, and the chance as it is read */
export function bar(tag, { id, outline, filled, most }, figures, properties = { className: "bar" }) {
  const bars = [h("span", { className: "after" }), h("span", { className: "before" })];
  return h(
    tag,
    { ...properties, "--before": outline / most, "--after": filled / most },
    h("span", { className: "token" }, visibleToken(id)),
    h("span", { className: "track" }, bars),
    figures.map(([what, figure]) =>
      h("span", { className: "figure" }, h("span", { className: "unseen" }, `${what} `), figure),
    ),
  );
}

/** What the two columns of figures beside bars are. */
export function barHeads(outline, filled) {
  const heads = [outline, filled].map((name) => h("span", { className: "figure" }, name));
  return h("div", { className: "bar heads-of-bars", "aria-hidden": "true" }, h("span"), h("span"), heads);
}

/** One value as a bar: its name, a length from 0 to 1 and the figure. */
export function lengthBar(name, share, figure, properties = {}) {
  const length = h("span", { className: "length", "--share": share });
  return h("li", properties, h("span", { className: "name" }, name), h("span", { className: "track" }, length), figure);
}
