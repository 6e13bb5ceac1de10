// Why what a small model writes makes little sense.

import { h } from "../../../../web/dom.js";
import { string } from "../../../../web/strings.js";

export function makeNonsense() {
  return h(
    "details",
    { className: "nonsense" },
    h("summary", {}, string("nonsense.title")),
    h("p", {}, string("nonsense.learns")),
    h("p", {}, string("nonsense.little")),
  );
}
