// Versions: the tree of all that was typed and written in this visit, and two of them side by side.

import { button, fill, h } from "../basics/dom.js";
import { say, string } from "../basics/strings.js";
import { sheetText, whatIsSame } from "../text/edit.js";
import { changed, state } from "../text/state.js";
import { lookAt } from "../text/writing.js";

const IN_LABEL = 60; // characters of a version in the tree
const CONTEXT = 120; // characters that both have in common, around what differs

export const branchesView = {
  id: "branches",

  make(panel) {
    const sentence = h("p", { className: "sentence" });
    const pair = h("div", { className: "pair" });
    const tree = h("ol", { className: "versions", "aria-label": string("branches.tree") });
    panel.append(sentence, pair, h("h3", {}, string("branches.all")), tree);

    let compared = null; // the version beside the one on the sheet, if one was asked for
    const compare = (text) => {
      compared = text;
      changed();
    };

    return () => {
      const { text, texts } = state;
      if (!texts.includes(compared) || compared === text) compared = null;
      const other = compared ?? text.parent ?? texts.findLast(({ parent }) => parent === text) ?? null;

      fill(sentence, sentenceAbout(text, other));
      fill(pair, other ? sideBySide(other, text) : []);
      fill(
        tree,
        inTree(texts).map((branch) => item(branch, { other, compare })),
      );
    };
  },
};

/** "Version 4" */
function nameOf(text) {
  return string("branches.version", { n: text.number });
}

function sentenceAbout(text, other) {
  if (!other) return say("branches.alone");

  const { same } = whatIsSame(sheetText(other), sheetText(text));
  const names = { one: nameOf(text), other: nameOf(other), n: same.toLocaleString("en") };
  const word = sheetText(text).slice(0, same).trim().split(/\s/).at(-1);
  if (!word) return say("branches.nothingShared", names);
  return say("branches.shared", { ...names, word: h("q", {}, word) });
}

/** The older version at the left, the newer one at the right; where they differ, both are marked. */
function sideBySide(one, other) {
  const inOrder = [one, other].sort((a, b) => a.number - b.number);
  const { same, end } = whatIsSame(...inOrder.map(sheetText));
  return inOrder.map((text) => column(text, same, end));
}

function column(text, same, end) {
  const shown = sheetText(text);
  const before = shortened(shown.slice(0, same), -CONTEXT);
  const after = shortened(shown.slice(shown.length - end), CONTEXT);
  const different = shown.slice(same, shown.length - end);
  const mark = h("mark", {}, different || string("branches.nothing"));

  const isShown = text === state.text;
  const look = button(string("branches.look"), () => lookAt(text), { "data-key": `look-${text.number}` });
  const title = h("h3", {}, nameOf(text), isShown ? string("branches.onSheet") : "");
  return h("section", {}, title, h("blockquote", {}, before, mark, after), isShown ? null : look);
}

/** So many characters of a text, from its end if the number is negative. */
function shortened(text, most) {
  if (text.length <= Math.abs(most)) return text;
  return most < 0 ? `…${text.slice(most)}` : `${text.slice(0, most)}…`;
}

/** The versions in the order of the tree, with their depth: a version that alone goes on from another one is not deeper. */
function inTree(texts) {
  const found = [];
  const todo = texts.filter(({ parent }) => !texts.includes(parent)).map((text) => ({ text, depth: 0 }));
  while (todo.length) {
    const branch = todo.shift();
    found.push(branch);
    const children = texts.filter(({ parent }) => parent === branch.text);
    const depth = branch.depth + (children.length > 1 ? 1 : 0);
    todo.unshift(...children.map((text) => ({ text, depth })));
  }
  return found;
}

function item({ text, depth }, { other, compare }) {
  const shown = sheetText(text);
  const { same, end } = whatIsSame(text.parent ? sheetText(text.parent) : "", shown);
  const own = shown
    .slice(same, shown.length - end)
    .replace(/\s+/g, " ")
    .trim();
  const kind = string(text.begun === null ? "branches.typed" : "branches.written");
  const label = say("branches.item", { n: String(text.number), kind, text: h("q", {}, shortened(own, IN_LABEL)) });

  const isShown = text === state.text;
  const choose = () => (isShown ? undefined : compare(text));
  const chosen = h("button", { type: "button", onclick: choose, "data-key": `version-${text.number}` }, label);
  if (isShown) chosen.ariaCurrent = "true";
  chosen.ariaPressed = String(text === other);
  const look = isShown
    ? null
    : button(string("branches.lookShort"), () => lookAt(text), {
        "aria-label": `${string("branches.look")}: ${nameOf(text)}`,
        "data-key": `tree-${text.number}`,
      });
  return h("li", { "--depth": depth }, chosen, look);
}
