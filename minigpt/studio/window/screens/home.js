// The screen `home`: where a text comes in, and all that is here.

import { get } from "../basics/api.js";
import { string } from "../basics/strings.js";
import { live } from "../live.js";
import { makeBin } from "./home/bin.js";
import { makeDrop } from "./home/drop.js";
import { makeModels } from "./home/models.js";
import { makeTexts } from "./home/texts.js";

export async function show(main) {
  document.title = string("home.title");
  const models = makeModels();
  const texts = makeTexts();
  const bin = makeBin();
  main.replaceChildren(makeDrop(), models.element, texts.element, bin.element);

  function update(state) {
    models.update(state.runs);
    texts.update(state.texts, state.runs);
    bin.update(state.bin);
  }

  live("", "", (event, data) => {
    if (event === "state") update(data);
  });
  update(await get("/api/state"));
}
