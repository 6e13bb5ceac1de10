// The beginning of the texts, tinted by how much one head looks at each piece of it. At first it is the head that has
// changed most.

import { fill, h } from "../../../../web/dom.js";
import { say, string } from "../../../../web/strings.js";
import { percent } from "../../basics/words.js";

const MOST = "most"; // follow the head that has changed most

/** The card of one head; `shown()` is the text that is looked at. */
export function makeLooks(record, shown) {
  const choice = h("select", { "aria-label": string("learning.head") });
  const pieces = h("p", { className: "pieces" });
  const words = h("p", { className: "quiet" });
  const title = h("h2", {}, string("learning.looks"));
  const label = h("label", { className: "row" }, string("learning.head"), choice);
  const element = h("section", { className: "looks card" }, title, label, pieces, words);
  let heads = ""; // of the model, as the choice shows them

  choice.addEventListener("change", draw);

  function drawChoice(looks, changed) {
    const names = looks.flatMap((layer, l) => layer.map((_, i) => nameOf([l, i])));
    if (names.join() !== heads) {
      heads = names.join();
      choice.replaceChildren(h("option", { value: MOST }), ...names.map((name) => h("option", { value: name }, name)));
      choice.value = MOST;
    }
    const most = string("learning.headMost", { head: nameOf(changed) });
    if (choice.options[0].textContent !== most) choice.options[0].textContent = most;
  }

  function draw() {
    const row = shown();
    element.hidden = !row?.looks;
    if (element.hidden) return;

    const changed = changedMost(record.samples);
    drawChoice(row.looks, changed);
    const name = choice.value === MOST ? nameOf(changed) : choice.value;
    const [layer, head] = name.split(".").map((part) => Number(part) - 1);
    const shares = row.looks[layer]?.[head] ?? [];
    fill(pieces, ...row.tokens.map((token, i) => piece(token, shares[i] ?? 0, i === row.tokens.length - 1)));

    const most = shares.indexOf(Math.max(...shares));
    const values = { last: quoted(row.tokens.at(-1)), share: percent(shares[most] ?? 0) };
    const sentence = most === row.tokens.length - 1 ? "learning.looksAtItself" : "learning.looksAt";
    fill(words, ...say(sentence, { ...values, head: name, piece: quoted(row.tokens[most] ?? "") }));
  }

  return { element, draw };
}

function piece(token, share, isLast) {
  const className = isLast ? "piece last" : "piece";
  return h("span", { className, "--share": share.toFixed(3), title: percent(share) }, shownToken(token));
}

/** A piece as it is read: the sign for a space becomes one. */
function shownToken(token) {
  return token.replaceAll("␣", " ");
}

/** A piece in a sentence; one of white space alone is named. */
function quoted(token) {
  const isSpace = /^[␣⇥]*$/.test(token);
  const isBreak = /^[␣⇥↵]*$/.test(token) && !isSpace;
  if (isSpace) return h("b", {}, string("learning.aSpace"));
  if (isBreak) return h("b", {}, string("learning.aLineBreak"));
  return h("b", {}, shownToken(token).trim());
}

/** The third head of the first layer is 1.3. */
function nameOf([layer, head]) {
  return `${layer + 1}.${head + 1}`;
}

/** The head whose looks have changed most from the first text to the newest. */
function changedMost(samples) {
  const first = samples[0]?.looks;
  const newest = samples.at(-1)?.looks;
  let most = -1;
  let found = [0, 0];
  if (!first || !newest) return found;
  for (const [l, layer] of newest.entries()) {
    for (const [i, shares] of layer.entries()) {
      const before = first[l]?.[i] ?? [];
      const change = shares.reduce((sum, share, t) => sum + Math.abs(share - (before[t] ?? 0)), 0);
      if (change > most) {
        most = change;
        found = [l, i];
      }
    }
  }
  return found;
}
