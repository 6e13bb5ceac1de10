// Where did it learn this? The longest stretch that is copied from the training text word for word, and the
// passages that are nearest. Only in a page that was made with --with-text.

import { button, fill, h, lastAsked, paragraph, percent } from "../basics/dom.js";
import { say, string } from "../basics/strings.js";
import { ask, hasText } from "../text/client.js";
import { selection, tint } from "../text/spans.js";
import { changed, state } from "../text/state.js";
import { shownText } from "../text/writing.js";

const LEAST = 30; // characters: shorter stretches are ordinary language

export const sourcesView = {
  id: "sources",
  make(panel) {
    if (!hasText) {
      const command = h("code", {}, "minigpt page --with-text");
      panel.append(paragraph(...say("sources.notHere", { command })));
      return () => {};
    }

    const sentence = h("p", { className: "sentence" });
    const found = h("div");
    const share = h("p", { className: "readout" });
    let isMarking = false;
    const mark = button(string("sources.mark"), () => {
      isMarking = !isMarking;
      changed();
    });
    panel.append(sentence, h("p", {}, string("sources.what")), found, h("p", { className: "row" }, mark), share);

    const asking = lastAsked();

    return async () => {
      mark.ariaPressed = String(isMarking);
      const isLast = asking();
      const whole = shownText();
      const part = selectedPart();
      if (whole === "" || part.end <= part.start) {
        fill(sentence, say("sources.empty"));
        share.textContent = "";
        found.replaceChildren();
        return tint(null, "sources");
      }

      const answer = await ask("sources", whole, part.start, part.end);
      const copies = isMarking ? await ask("copies", whole, LEAST) : [];
      if (!isLast()) return;

      fill(sentence, copySentence(answer, whole.slice(part.start, part.end)));
      fill(found, drawFound(answer));
      const copied = whole.length ? copiedCharacters(copies) / whole.length : 0;
      fill(share, isMarking ? say("sources.share", { share: percent(copied), least: LEAST }) : []);
      return tint(isMarking ? markedTokens(copies) : null, "sources");
    };
  },
};

/** Where the chosen tokens begin and end in the shown text, in characters. */
function selectedPart() {
  const [first, last] = selection();
  const ends = tokenEnds();
  return { start: ends[first - 1] ?? 0, end: ends[last] ?? 0 };
}

/** Where each token ends in the shown text, in characters. */
function tokenEnds() {
  const { text } = state;
  let end = 0;
  return text.pieces.map((piece, i) => {
    if (i >= text.hidden) end += piece.length;
    return end;
  });
}

/** How many characters lie in at least one copy; copies come in order and may overlap. */
function copiedCharacters(copies) {
  let copied = 0;
  let reached = 0;
  for (const { start, end } of copies) {
    copied += end - Math.max(start, reached);
    reached = end;
  }
  return copied;
}

/** The tints of the tokens that lie in a copy. */
function markedTokens(copies) {
  const ends = tokenEnds();
  const tints = {};
  ends.forEach((end, i) => {
    const begin = ends[i - 1] ?? 0;
    if (copies.some((copy) => end > copy.start && begin < copy.end)) tints[i] = 0.7;
  });
  return tints;
}

function copySentence({ copy }, asked) {
  const around = h("b", { className: "token" }, asked.trim() || "↵");
  if (!copy) return say("sources.noCopy", { around });
  return say("sources.copy", { around, count: copy.copied.length });
}

function drawFound({ copy, nearest }) {
  const copied = copy && h("blockquote", {}, `…${copy.before}`, h("mark", {}, copy.copied), `${copy.after}…`);
  const passages = nearest.map(({ passage, shared }) => {
    const parts = passage.split(/([\p{L}\p{N}\p{M}]+)/u);
    const marked = parts.map((part) => (shared.includes(part.toLowerCase()) ? h("b", {}, part) : part));
    return h("blockquote", {}, marked);
  });
  return [copied ?? null, h("h3", {}, string("sources.nearest")), ...passages];
}
