// Figures of a training in words.

import { string } from "../../basics/strings.js";
import { clockOf, number } from "../../basics/units.js";

/** "2.3", or "140". */
export function lettersOf(letters) {
  return number(letters, letters < 100 ? 1 : 0);
}

/** Two of them that are compared: with more digits where they would look alike. */
export function bothLettersOf(one, other) {
  let digits = Math.max(one, other) < 100 ? 1 : 0;
  while (digits < 4 && number(one, digits) === number(other, digits)) digits += 1;
  return [number(one, digits), number(other, digits)];
}

/** A time of learning: "2:14". */
export function timeOfLearning(seconds) {
  return clockOf(seconds).replace(/^0(?=\d:)/, "");
}

/** When a row was written: "after 2:14, step 512", or "before its first step". */
export function momentOf(row) {
  if (row.step === 0) return string("learning.beforeFirst");
  return string("learning.moment", { time: timeOfLearning(row.seconds), step: number(row.step) });
}

/** "Its first guess is right for 2 pieces in 5." */
export function guessOf(share, hasLetters) {
  const [n, of] = hasLetters ? inWords(1 - share) : inWords(share);
  if (n === 0) return string(hasLetters ? "curve.allRight" : "curve.noneRight");
  if (hasLetters) return string(n === 1 ? "curve.letterWrong" : "curve.lettersWrong", { n, of });
  return string(n === 1 ? "curve.pieceRight" : "curve.piecesRight", { n, of });
}

/** The nearest fraction with a small denominator. */
function inWords(share) {
  let best = [0, 1];
  let error = share;
  for (let of = 2; of <= 10; of++) {
    const n = Math.round(share * of);
    const found = Math.abs(share - n / of);
    if (found < error - 0.005) {
      best = [n, of];
      error = found;
    }
  }
  return best;
}
