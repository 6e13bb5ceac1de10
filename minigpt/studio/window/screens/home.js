// The screen `home`: where a text comes in, and all that is here.

import { h } from "../../../web/dom.js";
import { string } from "../../../web/strings.js";
import { get, Refusal } from "../basics/api.js";
import { keepingFocus } from "../basics/controls.js";
import { sentenceOf, speak, wasDeleted } from "../basics/told.js";
import { stateOf } from "../basics/words.js";
import { live } from "../live.js";
import { makeBin, makeModels, makeTexts } from "./home/cards.js";
import { makeDrop } from "./home/drop.js";

export async function show(main) {
  document.title = string("home.title");
  const models = makeModels();
  const texts = makeTexts();
  const bin = makeBin();
  const hasDeleted = wasDeleted();
  const deleted = h("p", { className: "deleted", tabIndex: -1 }, hasDeleted ? string("home.deleted") : "");
  main.replaceChildren(deleted, makeDrop(), models.element, texts.element, bin.element);
  if (hasDeleted) deleted.focus(); // a screen reader says it

  const states = new Map(); // of the runs, as a screen reader has heard them

  function update(state) {
    for (const run of state.runs) {
      const before = states.get(run.name);
      if (before !== undefined && before !== run.state)
        speak(string("home.spoken", { name: run.name, state: stateOf(run) }));
      states.set(run.name, run.state);
    }
    keepingFocus(() => {
      models.update(state.runs);
      texts.update(state.texts, state.runs);
      bin.update(state.bin);
    }, models.heading);
  }

  live(update);
  try {
    update(await get("/api/state"));
  } catch (error) {
    if (!(error instanceof Refusal) || error.status < 404) throw error; // there is no login, or no studio
    models.say(sentenceOf(error)); // a text can be dropped all the same
  }
}
