// The strip: all tokens side by side, each as long as it is likely, the likeliest first. The die is a number
// from 0 to 1, and the token that lies there is drawn.

import { h } from "../../web/dom.js";
import { string } from "../../web/strings.js";
import { visibleToken } from "../text/client.js";

const MOST_PIECES = 40; // tokens that are shown one by one; the others are one length
const LETTER = 8; // pixels, about

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
export function drawPieces(strip, pieces, drawn) {
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
