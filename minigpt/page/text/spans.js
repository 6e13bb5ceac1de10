// The spans of the text's tokens, on the sheet or in the talk, whichever is in sight: where each is, and how it looks.
// And the end of the text, which stays in sight while it grows.

import { state, subject } from "../core/state.js";

const MOST_BITS = 10; // as dark as it gets: less likely than one in a thousand
const NEAR = 40; // pixels from the end at which what is shown follows what is written
const looks = {}; // name of a look -> what shows the text there

/** @typedef {{layer: Element, room: Element, hand: Element, paper: Element, draw: () => void,
 * tokenElement: (index: number) => Element?}} Look
 * the element that holds the spans, the one that arcs can be drawn over, the one that the mouse is on, the one that
 * scrolls, how it is drawn, and the span of a token, if it has one */

/** Make a look known. @param {"sheet"|"talk"} name @param {Look} look */
export function addLook(name, look) {
  looks[name] = look;
}

/** What shows the text now. @returns {Look} */
export function currentLook() {
  return looks[state.look];
}

/** Every look that there is. */
export function allLooks() {
  return Object.values(looks);
}

/** Show in the text how much its tokens are looked at (index -> 0 to 1; null: their surprise again). */
export function tint(tints) {
  if (tints === null && state.tints === null) return;

  state.tints = tints;
  currentLook().draw();
}

/** The element that shows a token; undefined if it is far from what is looked at. */
export function tokenElement(index) {
  return currentLook().tokenElement(index);
}

/** The token at a point of the window, or null. */
export function tokenAtPoint(x, y) {
  const found = document.elementsFromPoint(x, y).find((element) => element.dataset.index !== undefined);
  return found ? Number(found.dataset.index) : null;
}

/** From where to where the selection goes, [first, last]; of a single token, twice the same. */
function selection() {
  const last = state.chosen ?? state.text.ids.length - 1;
  const other = state.anchor ?? last;
  return [Math.min(last, other), Math.max(last, other)];
}

/** How spans look: their tints, whether the model sees them, what is chosen. @param {Iterable<Element>} spans */
export function drawLooks(layer, spans) {
  const { text, chosen, tints } = state;
  const { start } = subject().window;
  const [from, to] = selection();
  layer.dataset.tints = tints ? "attention" : "surprise";

  for (const span of spans) {
    const i = span.index;
    const bits = text.bits[i];
    let strength = 0;
    if (tints) strength = tints[i] ?? 0;
    else if (bits > 0) strength = Math.min(1, bits / MOST_BITS);

    if (span.tinted !== strength) {
      span.tinted = strength;
      span.style.setProperty("--tint", strength.toFixed(3));
    }
    toggle(span, "out-of-sight", i < start);
    toggle(span, "chosen", i === chosen);
    toggle(span, "selected", from !== to && i >= from && i <= to);
  }
}

/** classList.toggle, which is slow for thousands of spans where nothing has changed. */
function toggle(span, name, isOn) {
  if (Boolean(span[name]) === isOn) return;

  span[name] = isOn;
  span.classList.toggle(name, isOn);
}

/** Follow the end of what scrolls in `paper`, also when one of its contents or itself gets another size.
 * @returns {{follow: () => void, show: () => void}} what to do when the text has grown, and to come back to its end */
export function followingEnd(paper, content) {
  let follows = true;

  function follow() {
    if (follows) paper.scrollTop = paper.scrollHeight;
  }

  function show() {
    follows = true;
    follow();
  }

  const isNearEnd = () => paper.scrollTop + paper.clientHeight > paper.scrollHeight - NEAR;
  paper.addEventListener("scroll", () => (follows = isNearEnd()), { passive: true });
  for (const element of [paper, content]) new ResizeObserver(follow).observe(element);
  return { follow, show };
}
