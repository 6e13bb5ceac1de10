// The strip: all tokens side by side, each as long as it is likely, the likeliest first. The die is a number from 0 to 1,
// and the token that lies there is drawn. In slow motion, by itself or step by step, one sees the model's chances, what
// the settings make of them, the die, and how the token flies into the text.

import { button, fill, h } from "../../web/dom.js";
import { say, string } from "../../web/strings.js";
import { number } from "../../web/units.js";
import { percent } from "../basics/numbers.js";
import { visibleToken } from "../core/client.js";
import { state } from "../core/state.js";
import { tokenName, write } from "../core/writing.js";
import { tokenElement } from "../text/spans.js";

const MOST_PIECES = 40; // tokens that are shown one by one; the others are one length
const LETTER = 8; // pixels, about
const OF_SLOW_DRAW = ["model", "settings", "die", "token"];
const PAUSE = 2500; // milliseconds that a step is shown: time to read its sentence
const FLIGHT = 700;
const IN_WORDS = 5; // tokens of a strip

/** Tokens in this order side by side on the strip, each as long as its share: a list of {id, start, end}. */
export function layPieces(shares, order) {
  let end = 0;
  return order.map((id) => {
    const start = end;
    end += shares[id];
    return { id, start, end };
  });
}

/** The token on which a number falls. */
export function lyingAt(pieces, number) {
  const isLong = ({ start, end }) => end > start;
  const found = pieces.find((piece) => isLong(piece) && piece.end > number);
  return (found ?? pieces.findLast(isLong)).id; // the lengths may add up to a little less than 1
}

/** The pieces that are shown, (id, share) each; id is null where many unlikely tokens lie. `drawn` has its own piece. */
function shownPieces(pieces, drawn) {
  const found = [];
  let others = 0;
  const closeOthers = () => {
    if (others > 0) found.push({ id: null, share: others });
    others = 0;
  };

  pieces.forEach(({ id, start, end }, i) => {
    if (i >= MOST_PIECES && id !== drawn) {
      others += end - start;
    } else {
      closeOthers();
      found.push({ id, share: end - start });
    }
  });
  closeOthers();
  return found;
}

/** Draw a strip into an element; a piece that is there already changes its length. */
function drawPieces(strip, pieces, drawn) {
  const known = new Map([...strip.querySelectorAll("[data-token]")].map((piece) => [piece.dataset.token, piece]));
  let others = 0;

  const shown = shownPieces(pieces, drawn).map(({ id, share }) => {
    if (id === null) others += 1;
    const key = id === null ? `others-${others}` : String(id);
    const piece = known.get(key) ?? h("span", { className: "piece", "data-token": key });
    piece.style.setProperty("--share", share);
    piece.classList.toggle("others", id === null);
    piece.classList.toggle("drawn", id !== null && id === drawn);

    const name = id === null ? string("draw.others") : visibleToken(id);
    const isWide = share * strip.clientWidth > LETTER * (name.length + 1);
    piece.textContent = isWide ? name : "";
    piece.title = name;
    return piece;
  });
  strip.replaceChildren(...shown);
}

// One token drawn in slow motion

/** What throws the die on two strips: {controls, draw, rest}. At rest `howDrawn(draw, about)` says how it fell. */
export function makeSlowDraw(strips, howDrawn) {
  const byModel = h("div", { className: "strip thin", role: "img" });
  const bySettings = h("div", { className: "strip", role: "img" });
  const needle = h("span", { className: "needle", "aria-hidden": "true" });
  const label = (name) => h("span", { className: "strip-name" }, string(name));
  strips.append(
    label("draw.byModel"),
    byModel,
    label("draw.bySettings"),
    h("div", { className: "under-needle" }, bySettings, needle),
  );

  const caption = h("p", { className: "draw-caption", role: "status" });
  const slowly = button(string("draw.slowly"), () => run());
  const once = button(string("draw.step"), () => next());
  const controls = h("div", {}, caption, h("p", { className: "row" }, slowly, once));

  let step = null; // which of OF_SLOW_DRAW is shown; null: the whole draw at rest
  let shown = null; // the draw and what it is about
  let timer;

  /** The whole draw, at once. */
  function rest() {
    clearTimeout(timer);
    step = null;
  }

  function run() {
    rest();
    const goOn = async () => {
      await next();
      if (step !== null) timer = setTimeout(goOn, PAUSE);
    };
    goOn();
  }

  /** Show the next step; after the last one a new token is in the text. */
  async function next() {
    clearTimeout(timer);
    const at = step === null ? 0 : OF_SLOW_DRAW.indexOf(step) + 1;
    step = OF_SLOW_DRAW[at] ?? null;
    show();
    if (step !== "token") return;

    const { about } = shown;
    if (about.token !== undefined) return; // there is one in the text already
    await fly(bySettings.querySelector(".drawn"), about.place);
    if (step !== "token") return; // something else has been chosen meanwhile
    rest();
    await write({ kept: about.place, count: 1 });
  }

  function show() {
    const { draw, about } = shown;
    const { before, order, pieces, isThrown, die, falls } = draw;
    const untouched = layPieces(before, order);
    const isFallen = step === null || step === "token";
    drawPieces(byModel, untouched, null);
    drawPieces(bySettings, step === "model" ? untouched : pieces, isFallen ? falls : null);
    byModel.ariaLabel = stripLabel("draw.byModel", untouched);
    bySettings.ariaLabel = stripLabel("draw.bySettings", step === "model" ? untouched : pieces);

    needle.hidden = !isThrown || step === "model" || step === "settings";
    needle.style.setProperty("--at", die);
    needle.classList.toggle("falling", step === "die");
    slowly.disabled = state.busy;
    once.disabled = state.busy;

    const words = { number: number(die, 3), falls: tokenName(falls) };
    fill(caption, step === null ? howDrawn(draw, about) : say(`draw.${captionOf(step, draw, about)}`, words));
  }

  function draw(drawing, about) {
    shown = { draw: drawing, about };
    show();
  }

  return { controls, draw, rest };
}

/** What is on a strip, in words: its first tokens. */
function stripLabel(name, pieces) {
  const first = pieces.slice(0, IN_WORDS);
  const shares = first.map(({ id, start, end }) => `${visibleToken(id)} ${percent(end - start)}`);
  return `${string(name)}: ${shares.join(", ")}`;
}

/** The name of the sentence that says what a step shows. */
function captionOf(step, { isThrown, falls }, { token }) {
  if (step === "die" && !isThrown) return "stepCold";
  if (step === "token" && token !== undefined && token !== falls) return "stepOther";
  return { model: "stepModel", settings: "stepSettings", die: "stepDie", token: "stepToken" }[step];
}

/** The piece of the strip flies to where the token will be in the text. */
async function fly(piece, place) {
  const target = tokenElement(place) ?? tokenElement(place - 1);
  if (!piece || !target || matchMedia("(prefers-reduced-motion: reduce)").matches) return;

  const from = piece.getBoundingClientRect();
  const to = target.getBoundingClientRect();
  const flying = h("span", { className: "flying token", "aria-hidden": "true" }, piece.title);
  document.body.append(flying);

  const at = ({ x, y }) => ({ transform: `translate(${x}px, ${y}px)` });
  await flying.animate([at(from), at(to)], { duration: FLIGHT, easing: "ease-in-out" }).finished;
  flying.remove();
}
