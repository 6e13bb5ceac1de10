// Something that the studio is asked for with one press, and what it answers instead.

import { h } from "../../../web/dom.js";
import { Refusal } from "./api.js";
import { sentenceOf } from "./refusals.js";

/** Do it; what it is refused is said in `place`. */
export async function attempt(place, act) {
  place.replaceChildren();
  try {
    await act();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    place.append(h("p", { className: "bad" }, sentenceOf(error)));
  }
}
