// The window: logs in, loads the strings, and shows the screen of its address. Data flows one way: the server's
// files, the questions of live.js, the screen.

import { byId, h } from "../../web/dom.js";
import { addStrings, say, string } from "../../web/strings.js";
import { enter, key } from "./basics/api.js";
import { makeHeader } from "./header.js";
import { showScreen } from "./screens.js";

const STRINGS = ["/static/web/strings.json", "/static/studio/window/strings.json"];

const tables = await Promise.all(STRINGS.map(async (address) => (await fetch(address)).json()));
tables.forEach(addStrings);
const hasKey = await enter();
makeHeader();

const tried = key();
const isIn = hasKey && (await showScreen());
if (!isIn) {
  byId("close").hidden = true;
  byId("main").replaceChildren(h("h1", {}, string("login.title")), h("p", {}, ...say("login.how")));
  const isNew = () => key() !== "" && key() !== tried;
  const enterToo = () => isNew() && location.reload();
  addEventListener("storage", enterToo); // another window of the studio gets a login
  enterToo(); // it has just got one
}
