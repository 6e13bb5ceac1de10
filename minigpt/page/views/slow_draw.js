// One token drawn in slow motion: the model's chances, what the settings make of them, the die, the token that
// lies there, and how it flies into the text. By itself or step by step.

import { button, fill, h } from "../../web/dom.js";
import { say, string } from "../../web/strings.js";
import { number } from "../../web/units.js";
import { percent } from "../basics/numbers.js";
import { visibleToken } from "../text/client.js";
import { tokenElement } from "../text/spans.js";
import { state } from "../text/state.js";
import { tokenName, write } from "../text/writing.js";
import { drawPieces, layPieces } from "./strip.js";

const OF_SLOW_DRAW = ["model", "settings", "die", "token"];
const PAUSE = 2500; // milliseconds that a step is shown: time to read its sentence
const FLIGHT = 700;
const IN_WORDS = 5; // tokens of a strip

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
