// The turns that a text consists of, as a talk shows them, and which of its tokens are whose.

import { dialogue, tokenizer } from "./client.js";
import { readable } from "./sheet_tokens.js";

/** @typedef {{speaker: string?, text: string, first: number, said: number, over: number, end: number}} TextTurn
 * who speaks (null: no name is there) and what; its tokens are those from `first` to before `end`, of which those before
 * `said` are the name and those from `over` on the end of the turn */

/** The turns of a text, in their order. @returns {TextTurn[]} */
export function turnsOf(text) {
  const { characters, at, isWritten } = plainText(text);
  const parts = dialogue.partsOf(characters, (place) => isWritten[place]);

  let token = text.hidden;
  const before = (place) => {
    while (token < at.length && at[token] < place) token++;
    return token;
  };
  return parts.map(({ speaker, text: said, start, textStart }, i) => {
    const turn = { speaker, text: said, first: before(start), said: before(textStart) };
    turn.end = before(parts[i + 1]?.start ?? Infinity);
    turn.over = turn.end;
    while (turn.over > turn.said && !isSaid(text.pieces[turn.over - 1])) turn.over--;
    return turn;
  });
}

/** Whether something can be read in what a token adds to the sheet. */
export function isSaid(piece) {
  return readable(piece).trim() !== "";
}

/** What can be read of a text, where in it each token starts, and which of its characters are written. Where a text
 * has ended, a turn is over. */
function plainText(text) {
  const at = [];
  const isWritten = [];
  let characters = "";
  text.ids.forEach((id, i) => {
    at.push(characters.length);
    if (i >= text.hidden) characters += id === tokenizer.end ? dialogue.end : readable(text.pieces[i]);
    while (isWritten.length < characters.length) isWritten.push(text.origin[i] === "written");
  });
  return { characters, at, isWritten };
}

/** What of a text can be read as a talk. */
export function talkText(text) {
  return plainText(text).characters;
}

/** Whether the turn is over that a text ends with. */
export function isOver(text, turn) {
  const said = text.pieces.slice(turn.said, turn.end).join("");
  const ends = dialogue.stopIn(said) >= 0 || said.endsWith(dialogue.end);
  return ends || text.ids[turn.end - 1] === tokenizer.end;
}

/** Where the text of the turn begins that goes on at the end of a text; a new one does if none goes on. */
export function turnGoingOn(text) {
  const last = turnsOf(text).at(-1);
  const n = text.ids.length;
  if (last === undefined || dialogue.stopIn(text.pieces.slice(last.said).join("")) >= 0) return n;
  return last.said;
}
