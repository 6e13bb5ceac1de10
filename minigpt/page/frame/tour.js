// A tour of five steps on the text on view: guess the next word, tokens, surprise, attention, a head switched off. It
// lies at the top of the panel, leaves the page free, and ends whenever somebody likes or the text becomes another.

import { button, byId, fill, h, lastAsked } from "../../web/dom.js";
import { say, string } from "../../web/strings.js";
import { number } from "../../web/units.js";
import { chance, fact, largestFirst, probabilities } from "../basics/numbers.js";
import { ask, askAndHear, model } from "../core/client.js";
import {
  changed,
  headOf,
  headsOff,
  isOff,
  offKey,
  onChange,
  openView,
  state,
  switchHead,
  windowOf,
} from "../core/state.js";
import { firstUnread, tokenName, write } from "../core/writing.js";
import { openPanel } from "./bottom_sheet.js";

const STEPS = [guessStep, tokensStep, surpriseStep, attentionStep, headStep];
const OPTIONS = 5; // words to guess from
const SHORTEST = 12; // tokens of a text that has an example
const TO_WRITE = 40; // tokens, where it is shorter
const BEFORE = 60; // characters of the text before the word to guess
const SURE = 60; // percent, at first
const PLACES = 12; // that are tried for an example, the best predicted first
const HEADS = 4; // that are tried at each place: those that add the most to the token's logit
const TIME = 6000; // milliseconds, after which the best example so far is taken
const EARLIEST = 4; // tokens that should be there before the example

const drawing = lastAsked();
let box; // the element
let tour = null; // the tour that goes on: {text, step, example, guess}

/** The button that begins the tour. */
export function makeTour() {
  box = h("section", { id: "tour", "aria-label": string("tour.title"), hidden: true });
  byId("panel-body").prepend(box);
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    endTour();
  });

  onChange(() => {
    if (tour?.example && state.text !== tour.text) endTour();
    if (tour && tour.by !== offKey()) drawTour();
  });
  return button(string("tour.begin"), beginTour, { id: "begin-tour" });
}

async function beginTour() {
  const mine = { step: 0, example: null, guess: null, by: offKey() };
  tour = mine;
  box.hidden = false;
  openPanel();
  openView("draw"); // it leaves explanations to the search for an example
  cover(true);
  showStep(string("tour.looking"), []);

  if (state.busy || state.text.ids.length < SHORTEST) await write({ count: TO_WRITE, pace: 0, isTurn: false });
  if (tour !== mine) return;
  await surprisesKnown();
  const example = await findExample(() => tour !== mine);
  if (tour !== mine) return;

  if (example === null) {
    cover(false);
    return showStep(string("tour.title"), [h("p", {}, string("tour.nothing"))]);
  }
  Object.assign(mine, { example, text: state.text });
  await goTo(0);
}

/** Wait until the model has read the text on view. */
async function surprisesKnown() {
  const isUnknown = () => firstUnread(state.text) < state.text.ids.length;
  for (let i = 0; i < 100 && isUnknown(); i++) await new Promise((resolve) => setTimeout(resolve, 50));
}

function endTour() {
  const { layer, head } = tour.example ?? {};
  if (tour.hasSwitched && isOff(layer, head)) switchHead(layer, head);
  tour = null;
  cover(false);
  box.hidden = true;
  changed();
  byId("begin-tour").focus();
}

async function goTo(step) {
  tour.step = step;
  await drawTour(true);
}

/** Draw the step; with `isNew` it opens its view and takes the focus. */
async function drawTour(isNew = false) {
  tour.by = offKey();
  const mine = tour;
  const isLast = drawing();
  const content = await STEPS[tour.step](tour, isNew);
  if (isLast() && tour === mine) showStep(string(`tour.title${tour.step + 1}`), content, isNew);
}

function showStep(title, content, isNew = true) {
  const heading = h("h2", { id: "tour-title", tabIndex: -1 }, title);
  const isLast = tour.step === STEPS.length - 1;
  const next =
    tour.example && !isLast ? button(string("tour.next"), () => goTo(tour.step + 1), { id: "tour-next" }) : null;
  const back = tour.example && tour.step > 0 ? button(string("tour.back"), () => goTo(tour.step - 1)) : null;
  const end = button(string(isLast ? "tour.end" : "tour.skip"), endTour, { id: "tour-end" });
  const count = tour.example ? string("tour.count", { step: tour.step + 1, steps: STEPS.length }) : "";

  fill(box, heading, ...content, h("div", { className: "row" }, back, next, end, h("small", {}, count)));
  if (isNew) heading.focus({ preventScroll: true });
}

/** Hide the text and the views while a word of it is to be guessed. */
function cover(isCovered) {
  document.documentElement.dataset.tour = isCovered ? "guess" : "";
}

/** All views are about the example. */
function chooseExample() {
  state.chosen = tour.example.place;
  state.question = "why";
}

// The steps: each gives what it shows.

/** Guess the next word, and say how sure you are. */
async function guessStep({ example, guess }) {
  const { place, token } = example;
  if (guess) return guessed(example, guess);

  cover(true);
  state.chosen = null;
  changed();
  const chances = probabilities(await ask("logits", windowOf(place).ids, headsOff()));
  const options = largestFirst(chances)
    .filter((id) => id !== token)
    .slice(0, OPTIONS - 1);
  options.push(token);
  options.sort((a, b) => a - b); // in an order that tells nothing

  const output = h("output", {}, `${SURE} %`);
  const oninput = () => {
    output.textContent = `${sure.value} %`;
  };
  const sure = h("input", { type: "range", id: "tour-sure", min: 25, max: 99, value: SURE, oninput });
  const choose = (id) => {
    tour.guess = { id, sure: Number(sure.value) / 100, options, chances };
    cover(false);
    goTo(0);
  };
  const choices = options.map((id) => button(tokenName(id), () => choose(id), { className: "guess" }));

  const before = state.text.pieces.slice(state.text.hidden, place).join("").slice(-BEFORE);
  return [
    h("p", {}, string("tour.guess")),
    h("blockquote", {}, "…", before, h("b", {}, " ?")),
    h("p", { className: "row" }, h("label", { htmlFor: "tour-sure" }, string("tour.sure")), sure, output),
    h("div", { className: "row", role: "group", "aria-label": string("tour.options") }, choices),
  ];
}

/** How well it was guessed, beside the model: bits are what the right answer costs whoever was so sure of it. */
function guessed({ place, token }, { id, sure, options, chances }) {
  chooseExample();
  changed();
  const isRight = id === token;
  const yours = isRight ? sure : (1 - sure) / (options.length - 1);
  const all = options.reduce((sum, option) => sum + chances[option], 0);
  const bits = (p) => h("b", {}, number(-Math.log2(p), 1));
  const scores = { you: bits(yours), model: bits(chances[token] / all), blind: number(Math.log2(options.length), 1) };

  const probability = chance("probability", chances[token], { place, token });
  const whole = { probability, token: tokenName(token), count: number(model.config.vocab_size) };
  return [
    h("p", {}, ...say(isRight ? "tour.right" : "tour.wrong", { token: tokenName(token) })),
    h("p", {}, ...say("tour.scores", scores)),
    h("p", {}, ...say("tour.whole", whole)),
  ];
}

/** What a token is. */
function tokensStep({ example: { token } }, isNew) {
  cover(false);
  chooseExample();
  if (isNew) openView("vectors");
  const { ids, hidden } = state.text;
  const counts = { count: ids.length - hidden, token: tokenName(token), number: number(token) };
  const size = number(model.config.vocab_size);
  return [h("p", {}, ...say("tour.tokens", { ...counts, size }))];
}

/** What surprise is. */
function surpriseStep({ example: { place, token } }, isNew) {
  chooseExample();
  if (isNew) openView("draw");
  const { bits, ids } = state.text;
  const known = bits.map((value, i) => (Number.isFinite(value) ? i : -1)).filter((i) => i >= 0);
  const most = known.reduce((a, b) => (bits[b] > bits[a] ? b : a));
  const surprise = (i) => fact("bits", bits[i], { place: i }, number(bits[i], 1));
  const values = { token: tokenName(token), bits: surprise(place), other: tokenName(ids[most]), most: surprise(most) };
  return [h("p", {}, ...say("tour.surprise", values))];
}

/** Where the head looks that matters here. */
function attentionStep({ example: { token, name, layer, head } }, isNew) {
  chooseExample();
  if (isNew) openView("attention", { layer, head });
  return [h("p", {}, ...say("tour.attention", { token: tokenName(token), head: h("b", {}, name) }))];
}

/** What it is worth: the token without it. */
async function headStep({ example }, isNew) {
  const { place, token, name, layer, head } = example;
  chooseExample();
  if (isNew) openView("heads", { layer, head });

  const toggle = () => {
    switchHead(layer, head);
    tour.hasSwitched = isOff(layer, head);
  };
  const { ids } = windowOf(place);
  const p = probabilities(await ask("logits", ids, headsOff()))[token];
  const values = { token: tokenName(token), head: h("b", {}, name) };
  const now = chance("probability", p, { place, token });
  const label = string(isOff(layer, head) ? "tour.switchOn" : "tour.switchOff", { head: name });
  return [
    h("p", {}, ...say(isOff(layer, head) ? "tour.isOff" : "tour.isOn", { ...values, now })),
    h("p", {}, button(label, toggle, { id: "tour-switch", "data-key": "tour-switch", className: "main" })),
  ];
}

// The example: the token of the text on view for which a single head does the most

/** {place, token, name, layer, head, effect}: a token, a head with its name, and by how much the token's probability
 * falls without it. Null if the text is too short, or if `isOver()` says that nobody waits any more. */
async function findExample(isOver) {
  const { text } = state;
  const until = performance.now() + TIME;
  let best = null;

  for (const place of likelyPlaces(text)) {
    const found = await largestEffect(place, text.ids[place]);
    if (isOver() || state.text !== text) return null;
    if (found && (best === null || found.effect > best.effect)) best = found;
    if (performance.now() > until) break;
  }
  return best;
}

/** The places of words that the model found likely: there something in the text told it. */
function likelyPlaces({ ids, pieces, bits, hidden }) {
  const places = ids.map((_, i) => i).slice(hidden + EARLIEST);
  const withLetters = places.filter((i) => /\p{L}/u.test(pieces[i]) && Number.isFinite(bits[i]));
  withLetters.sort((a, b) => bits[a] - bits[b]);
  return withLetters.slice(0, PLACES);
}

/** The head without which the token at a place would lose the most probability, of those that add the most to it. */
async function largestEffect(place, token) {
  const { ids } = windowOf(place);
  let probability = null;
  const heads = {};

  await new Promise((resolve, reject) => {
    const hear = (found) => {
      probability ??= found.probability;
      Object.assign(heads, found.heads);
      if (Object.keys(heads).length >= HEADS) resolve();
    };
    askAndHear(hear, "explain", ids, token, headsOff()).then(resolve, reject);
  });

  const [first] = Object.entries(heads).sort((a, b) => a[1] - b[1]);
  if (!first || probability === null) return null;

  const [name, without] = first;
  return { place, token, name, ...headOf(name), effect: probability - without };
}
