// The screens by their addresses; each module has a function `show(main, name)`.

import { byId, h } from "../../web/dom.js";
import { string } from "../../web/strings.js";
import { Refusal } from "./basics/api.js";
import { sentenceOf } from "./basics/refusals.js";
import { notice } from "./notice.js";

const SCREENS = [
  [/^\/text\/([^/]+)$/, () => import("./screens/text.js")],
  [/^\/run\/([^/]+)$/, () => import("./screens/run.js")],
  [/^\/$/, () => import("./screens/home.js")],
];

/** Show the screen of this address. False if this window's login is not good any more. */
export async function showScreen() {
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
