// The window: logs in, loads the strings, and shows the screen of its address. Data flows one way: the server's
// files, the questions of live.js, the screen.

import { byId, h } from "../../web/dom.js";
import { addStrings, say, string } from "../../web/strings.js";
import { enter, key, Refusal } from "./basics/api.js";
import { notice, sentenceOf } from "./basics/told.js";
import { makeHeader } from "./header.js";

const SCREENS = [
  [/^\/text\/([^/]+)$/, () => import("./screens/text.js")],
  [/^\/run\/([^/]+)$/, () => import("./screens/run.js")],
  [/^\/$/, () => import("./screens/home.js")],
];
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

/** Show the screen of this address. False if this window's login is not good any more. */
async function showScreen() {
  try {
    await show();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    if (error.status === 401) return false;
    if (error.status === 0) notice(string("closed.how"));
    else byId("main").replaceChildren(h("h1", {}, sentenceOf(error)), h("a", { href: "/" }, string("header.home")));
  }
  return true;
}

async function show() {
  for (const [address, load] of SCREENS) {
    const found = location.pathname.match(address);
    if (found) {
      const main = byId("main"); // another one is there if the studio is closed meanwhile
      const screen = await loaded(load);
      await screen.show(main, decodeURIComponent(found[1] ?? ""));
      return;
    }
  }
}

/** A module of the window; a Refusal if the studio has gone before it was here. */
async function loaded(load) {
  try {
    return await load();
  } catch (error) {
    if (error instanceof TypeError) throw new Refusal(0, error);
    throw error;
  }
}
