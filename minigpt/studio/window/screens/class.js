// The teacher's class: its address and code for the board, who waits at the door, and what each pupil does.

import { get, post } from "../basics/api.js";
import { ask } from "../basics/dialog.js";
import { button, fill, h } from "../basics/dom.js";
import { say, string } from "../basics/strings.js";
import { bytesOf, number } from "../basics/units.js";
import { speak } from "../notice.js";

const EVERY = 2000; // milliseconds from one look to the next

export async function show(main) {
  const told = await get("/api/class");
  const door = h("section", { className: "card" });
  const inside = h("section", { className: "card" });
  const screen = h(
    "div",
    { className: "class-screen" },
    h("h1", {}, string("class.title", { name: told.name })),
    board(told),
    h("div", { className: "columns" }, door, inside),
    endings(main, told),
  );
  main.replaceChildren(screen);

  let waiting = 0;
  function draw(now) {
    fill(door, h("h2", {}, string("class.door")), ...doorRows(now, look));
    fill(inside, h("h2", {}, string("class.inside")), pupilTable(now, look));
    const there = now.pupils.filter((pupil) => pupil.state === "waiting").length;
    if (there > waiting) speak(string("class.someoneWaits"));
    if (there === 0 && waiting > 0) speak(string("class.nobodyWaits"));
    waiting = there;
  }

  async function look() {
    const now = await get("/api/class");
    if (now.hasEnded) clearInterval(timer);
    draw(now);
  }

  const timer = setInterval(look, EVERY);
  draw(told);
}

/** What is written on the board. */
function board(told) {
  const address = h("strong", { className: "board" }, told.address);
  const code = h("strong", { className: "board" }, told.code);
  const how = h("p", {}, ...say(told.isLesson ? "class.boardLesson" : "class.board", { address, code }));
  return h("section", { className: "card" }, how, h("p", {}, ...say("class.boardWarning")));
}

function doorRows(now, look) {
  const waiting = now.pupils.filter((pupil) => pupil.state === "waiting");
  if (waiting.length === 0) return [h("p", { className: "gone" }, string("class.nobodyWaits"))];

  return waiting.map((pupil) => {
    const name = pupil.hasBeenHere ? string("class.wasHere", { name: pupil.name }) : pupil.name;
    const act = (what) => () => post(`/api/class/${what}`, { pupil: pupil.folder }).then(look);
    const admit = button(string("class.admit"), act("admit"), {
      className: "main",
      "data-key": `admit ${pupil.folder}`,
      "aria-label": string("class.admitName", { name: pupil.name }),
    });
    const refuse = button(string("class.refuse"), act("refuse"), {
      "data-key": `refuse ${pupil.folder}`,
      "aria-label": string("class.refuseName", { name: pupil.name }),
    });
    return h("p", { className: "pupil" }, h("span", {}, name), admit, refuse);
  });
}

function pupilTable(now, look) {
  const admitted = now.pupils.filter((pupil) => pupil.state === "admitted");
  if (admitted.length === 0) return h("p", { className: "gone" }, string("class.nobodyInside"));

  const heads = ["pupil", "does", "models", "size", "away"].map((name) =>
    h("th", { scope: "col" }, string(`class.${name}`)),
  );
  const rows = admitted.map((pupil) => {
    const away = button(string("class.sendAway"), () => post("/api/class/refuse", { pupil: pupil.folder }).then(look), {
      "data-key": `away ${pupil.folder}`,
      "aria-label": string("class.sendAwayName", { name: pupil.name }),
    });
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, pupil.name),
      h("td", {}, doing(pupil)),
      h("td", {}, number(pupil.models)),
      h("td", {}, pupil.bytes === 0 ? "–" : bytesOf(pupil.bytes)),
      h("td", {}, away),
    );
  });
  return h("table", {}, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows));
}

/** What a pupil's studio does. */
function doing(pupil) {
  if (pupil.learning !== null) return string("class.learns", { name: pupil.learning });
  if (pupil.waits !== null) return string("class.waitsInLine", { n: number(pupil.waits) });
  return string(pupil.models > 0 ? "class.hasModels" : "class.begins");
}

/** The two ways to end a class; both ask, and say what stays and what goes. */
function endings(main, told) {
  async function end(deletes) {
    await post("/api/class/end", { deletes });
    const words = string(deletes ? "class.deleted" : "class.ended", { folder: told.folder });
    main.replaceChildren(h("h1", {}, words), h("a", { href: "/" }, string("header.home")));
    speak(words);
  }

  const askToEnd = () =>
    ask({
      title: string("class.endTitle", { name: told.name }),
      content: [h("p", {}, string("class.endHow", { folder: told.folder }))],
      label: string("class.endSure"),
      act: () => end(false),
    });
  const askToDelete = () =>
    ask({
      title: string("class.deleteTitle", { name: told.name }),
      content: [h("p", {}, string("class.deleteHow", { folder: told.folder }))],
      label: string("class.deleteSure"),
      act: () => end(true),
    });
  return h(
    "section",
    { className: "endings" },
    button(string("class.end"), askToEnd),
    button(string("class.endAndDelete"), askToDelete),
  );
}
