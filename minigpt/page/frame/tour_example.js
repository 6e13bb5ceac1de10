// The tour's example: the token of the text on view for which a single head does the most.

import { askAndHear } from "../text/client.js";
import { headOf, state, windowOf } from "../text/state.js";

const PLACES = 12; // that are tried, the best predicted first
const HEADS = 4; // that are tried at each: those that add the most to the token's logit
const TIME = 6000; // milliseconds, after which the best so far is taken
const EARLIEST = 4; // tokens that should be there before it

/** {place, token, name, layer, head, effect}: a token, a head with its name, and by how much the token's probability
 * falls without it. Null if the text is too short, or if `isOver()` says that nobody waits any more. */
export async function findExample(isOver) {
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
