// What several views show alike: what comes before the place in question.

import { h } from "../basics/dom.js";
import { string } from "../basics/strings.js";
import { state } from "../text/state.js";
import { tokenName } from "../text/writing.js";

/** The token at a row in a sentence; before the first token that is shown there is the beginning. */
export function rowName(row) {
  return row < state.text.hidden ? h("b", {}, string("bars.beginning")) : tokenName(state.text.ids[row]);
}
