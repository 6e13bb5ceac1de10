// Figures of a training in words.

import { string } from "../../../../web/strings.js";
import { clockOf, number } from "../../../../web/units.js";

/** When a row was written: "after 2:14, step 512", or "before its first step". */
export function momentOf(row) {
  if (row.step === 0) return string("learning.beforeFirst");
  return string("learning.moment", { time: clockOf(row.seconds), step: number(row.step) });
}

/** "Its first guess is right for 4 pieces in 10.": always in 10, so that one can be compared with the next. */
export function guessOf(share, hasLetters) {
  const n = Math.round(10 * (hasLetters ? 1 - share : share));
  if (n === 0) return string(hasLetters ? "curve.lettersRight" : "curve.noneRight");
  if (n === 10) return string(hasLetters ? "curve.noneRight" : "curve.allRight");
  if (hasLetters) return string(n === 1 ? "curve.letterWrong" : "curve.lettersWrong", { n });
  return string(n === 1 ? "curve.pieceRight" : "curve.piecesRight", { n });
}
