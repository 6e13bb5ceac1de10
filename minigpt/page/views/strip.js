// The strip: all tokens side by side, each as long as it is likely, the likeliest first. The die is a number
// from 0 to 1, and the token that lies there is drawn.

import { h } from "../basics/dom.js";
import { string } from "../basics/strings.js";
import { tokenizer } from "../text/client.js";

const MOST_PIECES = 40; // tokens that are shown one by one; the others are one length
const LETTER = 8; // pixels, about

/** Where each token begins and ends on the strip: the shares are those after penalty, temperature and filters. */
export function layPieces(shares, order) {
  const ends = new Map();
  let end = 0;
  for (const id of order) {
    const start = end;
    end += shares[id];
    ends.set(id, { id, start, end });
  }
  return ends;
}

/** The token on which a number falls. */
export function lyingAt(ends, number) {
  let last = null;
  for (const place of ends.values()) {
    if (place.end === place.start) continue;
    last = place;
    if (place.end > number) return place.id;
  }
  return last.id; // the lengths may add up to a little less than 1
}

/** The pieces of a strip, (id, share) each; id is null where many unlikely tokens lie. `drawn` has its own piece. */
function pieces(ends, drawn) {
  const found = [];
  let others = 0;
  const closeOthers = () => {
    if (others > 0) found.push({ id: null, share: others });
    others = 0;
  };

  let count = 0;
  for (const { id, start, end } of ends.values()) {
    count += 1;
    if (count > MOST_PIECES && id !== drawn) {
      others += end - start;
      continue;
    }
    closeOthers();
    found.push({ id, share: end - start });
  }
  closeOthers();
  return found;
}

/** Draw a strip into an element; a piece that is there already changes its length. */
export function drawPieces(strip, ends, drawn) {
  const known = new Map([...strip.querySelectorAll("[data-token]")].map((piece) => [piece.dataset.token, piece]));
  let others = 0;

  const shown = pieces(ends, drawn).map(({ id, share }) => {
    const key = id === null ? `others-${others++}` : String(id);
    const piece = known.get(key) ?? h("span", { className: "piece", "data-token": key });
    piece.style.setProperty("--share", share);
    piece.classList.toggle("others", id === null);
    piece.classList.toggle("drawn", id !== null && id === drawn);

    const name = id === null ? string("draw.others") : tokenizer.visible(id);
    const isWide = share * strip.clientWidth > LETTER * (name.length + 1);
    piece.textContent = isWide ? name : "";
    piece.title = name;
    return piece;
  });
  strip.replaceChildren(...shown);
}
