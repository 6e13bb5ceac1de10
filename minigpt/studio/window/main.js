// The window: logs in, loads the strings, and shows the screen of its address. Data flows one way: the server's
// files, the stream of events, the screen.

import { Refusal } from "./basics/api.js";
import { byId, h } from "./basics/dom.js";
import { enter } from "./basics/login.js";
import { loadStrings, say, string } from "./basics/strings.js";
import { makeHeader } from "./header.js";
import { notice } from "./notice.js";

/** Addresses, and the modules of their screens, each with a function `show(main, name)`. */
const SCREENS = [
  [/^\/text\/([^/]+)$/, () => import("./screens/text.js")],
  [/^\/run\/([^/]+)$/, () => import("./screens/run.js")],
  [/^\/compare$/, () => import("./screens/compare.js")],
  [/^\/$/, () => import("./screens/home.js")],
];

async function main() {
  await loadStrings();
  const isIn = await enter();
  makeHeader();
  if (!isIn) {
    showLogin();
    return;
  }

  try {
    await showScreen();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    if (error.status === 401) showLogin();
    else if (error.status === 0) notice(string("closed.how"));
    else byId("main").replaceChildren(h("h1", {}, error.message), h("a", { href: "/" }, string("header.home")));
  }
}

async function showScreen() {
  for (const [address, load] of SCREENS) {
    const found = location.pathname.match(address);
    if (found) {
      const screen = await load();
      await screen.show(byId("main"), decodeURIComponent(found[1] ?? ""));
      return;
    }
  }
}

/** This window has no login, or one of a studio that is closed; it takes the next one that another window gets. */
function showLogin() {
  byId("main").replaceChildren(h("h1", {}, string("login.title")), h("p", {}, ...say("login.how")));
  addEventListener("storage", () => location.reload());
}

main();
