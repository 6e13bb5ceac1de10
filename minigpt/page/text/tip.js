// The small tip at a token under the mouse: what the token is, its chance where it was predicted, and its rank.

import { fill, h, lastAsked } from "../../web/dom.js";
import { say } from "../../web/strings.js";
import { number } from "../../web/units.js";
import { chance, fact } from "../basics/numbers.js";
import { ask } from "../core/client.js";
import { headsOff, offKey, onChange, state, windowOf } from "../core/state.js";
import { tokenName } from "../core/writing.js";
import { allLooks, tokenAtPoint, tokenElement } from "./spans.js";

const REST = 120; // milliseconds for which the mouse rests on a token before it is asked about
const GAP = 6; // pixels between a token and its tip
const asking = lastAsked();
const tip = h("div", { id: "tip", hidden: true, "aria-hidden": "true" });
let about = null; // {text, place} of the token under the mouse
let timer = 0;

export function makeTip() {
  document.body.append(tip);
  for (const { hand, paper } of allLooks()) {
    hand.addEventListener("pointermove", ({ pointerType, buttons, clientX, clientY }) => {
      const isHovering = pointerType === "mouse" && buttons === 0;
      hover(isHovering ? tokenAtPoint(clientX, clientY) : null);
    });
    hand.addEventListener("pointerleave", () => hover(null));
    hand.addEventListener("keydown", () => hover(null));
    paper.addEventListener("scroll", () => hover(null), { passive: true });
  }

  // It never says anything of a text that is not there any more.
  onChange(() => {
    if (about && (about.text !== state.text || about.by !== offKey())) hover(null);
  });
}

function hover(place) {
  if (place === (about?.place ?? null)) return;

  clearTimeout(timer);
  asking(); // an answer that comes now is too late
  tip.hidden = true;
  about = place === null ? null : { text: state.text, place, by: offKey() };
  if (about) timer = setTimeout(() => openTip(about), REST);
}

async function openTip(asked) {
  const { text, place } = asked;
  const isLast = asking();
  const bits = text.bits[place];
  const id = text.ids[place];
  if (place === 0) return drawTip(say("tip.first", { token: tokenName(id) }));
  if (Number.isNaN(bits)) return undefined;

  const p = 2 ** -bits;
  const known = {
    token: tokenName(id),
    chance: chance("probability", p, { place, token: id }),
    bits: fact("bits", bits, { place }, number(bits, 1)),
  };
  drawTip(say("tip.chance", known));

  const logits = await ask("logits", windowOf(place).ids, headsOff());
  if (!isLast() || about !== asked) return undefined;
  // Of equal ones the one with the smaller id comes first.
  const isBefore = (logit, other) => logit > logits[id] || (logit === logits[id] && other < id);
  const rank = 1 + logits.reduce((before, logit, other) => before + Number(isBefore(logit, other)), 0);
  const ranked = fact("rank", rank, { place, token: id }, number(rank));
  return drawTip(say("tip.ranked", { ...known, rank: ranked, all: number(logits.length) }));
}

/** Put the tip below its token, or above it where the window ends. */
function drawTip(content) {
  const element = tokenElement(about.place);
  if (!element) return;

  fill(tip, content);
  tip.hidden = false;
  const { left, top, bottom } = element.getClientRects()[0] ?? element.getBoundingClientRect();
  const { width, height } = tip.getBoundingClientRect();
  const isBelow = bottom + GAP + height < innerHeight;
  tip.style.left = `${Math.max(GAP, Math.min(left, innerWidth - width - GAP))}px`;
  tip.style.top = `${isBelow ? bottom + GAP : top - GAP - height}px`;
}
