// Where did it learn this? The longest stretch that is copied from the training text word for word,
// and the passages that are nearest. Only in a page that was made with --with-text.

import { button, fill, h, lastAsked, paragraph, percent, whatIsThis } from "../basics/dom.js";
import { ask, hasText } from "../text/client.js";
import { drawTokens, selection } from "../text/sheet.js";
import { changed, state } from "../text/state.js";
import { shownText } from "../text/writing.js";

const LEAST = 30; // characters: shorter stretches are ordinary language

export const sourcesView = {
  id: "sources",
  make(panel) {
    const what = whatIsThis(
      "A model of this size has read little, so one can look where it has something from. Choose a token, or select ",
      "some (drag, or hold Shift with the arrow keys). A long copied stretch means that the model knows it by heart.",
    );

    if (!hasText) {
      const how = h("code", {}, "minigpt page --with-text");
      const why = " shows where the model learned what it writes.";
      panel.append(what, paragraph("The training text is not in this page. A page made with ", how, why));
      return () => {};
    }

    const found = h("div", {});
    const share = h("p", { className: "readout" });
    let isMarking = false;
    const mark = button("Mark copies in the text", () => ((isMarking = !isMarking), changed()));
    panel.append(what, found, h("p", { className: "row" }, mark), share);

    const asking = lastAsked();

    return async () => {
      if (state.busy) return;
      mark.ariaPressed = String(isMarking);
      const { text } = state;

      const [first, last] = selection();
      if (last < text.hidden) return;
      const isLast = asking();

      const starts = [0];
      for (let i = text.hidden; i < text.ids.length; i++) starts.push(starts.at(-1) + text.pieces[i].length);
      const startOf = (i) => starts[Math.max(0, i - text.hidden)];

      const whole = shownText();
      const answer = await ask("sources", whole, startOf(first), Math.max(startOf(first) + 1, startOf(last + 1)));
      const copies = isMarking ? await ask("copies", whole, LEAST) : [];
      if (!isLast()) return;

      fill(found, drawFound(answer, whole.slice(startOf(first), startOf(last + 1))));
      state.tints = isMarking ? {} : null;

      let copied = 0;
      let reached = 0;
      for (const { start, end } of copies) {
        copied += end - Math.max(start, reached);
        reached = end;
        for (let i = text.hidden; i < text.ids.length; i++)
          if (startOf(i + 1) > start && startOf(i) < end) state.tints[i] = 0.7;
      }

      share.textContent = isMarking
        ? `${percent(whole.length ? copied / whole.length : 0)} of the text stands in copied stretches of at least ${LEAST} characters.`
        : "";
      drawTokens();
    };
  },
};

function drawFound({ copy, nearest }, asked) {
  const around = `around “${asked.trim() || "↵"}”`;
  const long = `has ${copy?.copied.length} characters:`;
  const copied = copy
    ? [
        paragraph(`The longest stretch ${around} that is in the training text word for word ${long}`),
        h("blockquote", {}, `…${copy.before}`, h("mark", {}, copy.copied), `${copy.after}…`),
      ]
    : [paragraph(`No stretch ${around} is in the training text word for word.`)];
  const passages = nearest.map(({ passage, shared }) => {
    const parts = passage.split(/([\p{L}\p{N}\p{M}]+)/u);
    const marked = parts.map((part) => (shared.includes(part.toLowerCase()) ? h("b", {}, part) : part));
    return h("blockquote", {}, marked);
  });
  return [...copied, paragraph("The nearest passages, shared words bold:"), ...passages];
}
