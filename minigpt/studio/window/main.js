// The window: logs in, loads the strings, and shows the screen of its address. Data flows one way: the server's
// files, the stream of events, the screen.

import { byId, h } from "./basics/dom.js";
import { enter, key } from "./basics/login.js";
import { loadStrings, say, string } from "./basics/strings.js";
import { makeHeader } from "./header.js";
import { showScreen } from "./screens.js";

await loadStrings();
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
