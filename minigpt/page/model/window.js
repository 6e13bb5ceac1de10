// The model's window: the tokens that it sees when it predicts the next one. As minigpt/generation/window.py has it,
// a full window forgets its earlier half; `start` is the first token in it, counted in the whole text.

/** Where the window begins once the model has read n tokens, if it began at `start` before the last of them. */
export function movedWindow(start, n, size) {
  return n - start > size ? start + Math.floor(size / 2) + 1 : start;
}

/** Where the window begins for the token that comes next after a text, if the text does not say so itself. What is
 * written goes on in the window in which it was written; of a prompt that is longer than the context, its end is read.
 * @param {{ids: number[], starts?: number[], origin?: ("typed"|"written")[], nextStart?: number?}} text */
export function nextWindow({ ids, starts = [], origin = [], nextStart = null }, size) {
  const n = ids.length;
  if (nextStart !== null) return nextStart;
  if (origin[n - 1] === "written") return movedWindow(starts[n - 1] ?? 0, n, size);
  return Math.max(0, n - size);
}

/** Where the window of each token of a text begins, as far as that is not known. */
export function windowsOf(ids, known, size) {
  const starts = [];
  ids.forEach((_, place) => {
    const before = place > 0 ? starts[place - 1] : 0;
    starts.push(known[place] ?? movedWindow(before, place, size));
  });
  return starts;
}
