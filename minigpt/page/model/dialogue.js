// A talk, as minigpt/data/dialogue.py and minigpt/generation/talk.py have it: who speaks, how turns are written as a text,
// who answers if nothing is said, and which turns the model still sees when it does.

const ROOM = 4; // part of the context, at most, that is kept free for an answer
const LONGEST_NAME = 60; // characters
// Characters that nobody sees: the same as in data/invisible.py.
const INVISIBLE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are left out
  /[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u200b\u2060-\u2064\ufeff\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]/gu;
const NAME_OF_TOKEN = /<(?=\|(?:endoftext|speaker|turn)\|>)/g; // which is text in a turn
const OTHER_LINE_ENDS = "\\u001c-\\u001e\\u0085\\u2028\\u2029";
const LINE_END = new RegExp(`\\r\\n|[\\n\\r\\v\\f${OTHER_LINE_ENDS}]`, "g");
const SPACE = "[\\s\\u001c-\\u001f\\u0085]";
const SPACE_AROUND = new RegExp(`^${SPACE}+|${SPACE}+$`, "g");
const SPACES = new RegExp(`${SPACE}+`);

/** @typedef {{speaker: string, text: string}} Turn */

export class Dialogue {
  /** @param {object} data what build.py wrote: the speakers, the most frequent first; what goes before the text of a
   * turn, with {speaker} as the name, and what after it; where an answer stops; what goes between two lines of a turn;
   * what somebody is called where there is no other speaker */
  constructor({ speakers, beforeText, end, stops, betweenLines, stranger }) {
    Object.assign(this, { speakers, beforeText, end, stops, betweenLines, stranger });
    this.byName = new Map(speakers.map((speaker) => [sameCase(speaker), speaker]));
  }

  /** What goes before the text of a turn: the name, without the space that begins the text. */
  opening(speaker) {
    return this.beforeText.replace("{speaker}", () => speaker).replace(/ +$/, "");
  }

  /** Turns as the text that the model learned from. @param {Turn[]} turns */
  write(turns) {
    const written = turns.map(({ speaker, text }) => {
      const opening = this.beforeText.replace("{speaker}", () => speaker);
      return `${opening}${cleanText(text).replaceAll("\n", this.betweenLines)}${this.end}`;
    });
    return written.join("");
  }

  /** Who has most turns, apart from some speakers. */
  mostFrequent(but = []) {
    return this.speakers.find((speaker) => !but.includes(speaker)) ?? this.stranger;
  }

  /** Who speaks where no name is given: the last other speaker, or the most frequent. @param {Turn[]} turns */
  askerOf(turns, answerer) {
    const other = turns.findLast(({ speaker }) => speaker !== answerer);
    return other?.speaker ?? this.mostFrequent([answerer]);
  }

  /** Who answers if nothing is said: whose name alone is at the end, or the most frequent speaker but the first. */
  usualAnswerer(text) {
    const parts = this.partsOf(text);
    const last = parts.at(-1);
    if (last?.speaker && !cleanText(last.text)) return last.speaker;
    const first = parts.find(({ speaker }) => speaker !== null);
    return this.mostFrequent(first ? [first.speaker] : []);
  }

  /** The turns that a text adds to a talk. What has no name is the asker's, if one is given. @param {Turn[]} turns */
  added(turns, text, { answerer, asker = null }) {
    const all = [...turns];
    for (const { speaker, text: said } of this.partsOf(text)) {
      const clean = cleanText(said).replace(NAME_OF_TOKEN, "< ");
      if (clean) all.push({ speaker: speaker ?? asker ?? this.askerOf(all, answerer), text: clean });
    }
    return all;
  }

  /** The parts of a text, each from a line that begins with a speaker's name on; before the first such line there may
   * be one without (null). `start` is where a part begins, `textStart` where its text does. Whoever types may write a
   * name in several ways; where the model has written it, it begins a turn only if a turn begins there, and exactly so.
   * @param {(at: number) => boolean} isWritten whether the model has written the character at a place */
  partsOf(text, isWritten = () => false) {
    const parts = [];
    for (const { line, start } of linesOf(text)) {
      const named = this.named(line);
      const isTyped = named && !isWritten(start + named.at - 1);
      if (named && (isTyped || this.beginsAt(text, start, { ...named, before: parts.at(-1) }))) {
        const opening = this.opening(named.speaker);
        const length = text.startsWith(opening, start) ? opening.length : named.at;
        parts.push({ speaker: named.speaker, start, textStart: start + length, text: line.slice(named.at) });
      } else if (parts.length) {
        parts.at(-1).text += `\n${line}`;
      } else {
        parts.push({ speaker: null, start, textStart: start, text: line });
      }
    }
    return parts;
  }

  /** Whether a turn begins at a place of a text in the way in which turns are written, where the one before is over. */
  beginsAt(text, place, { speaker, before }) {
    const end = place - this.end.length;
    const isOver = before === undefined || (end >= before.textStart && text.startsWith(this.end, end));
    return isOver && text.startsWith(this.opening(speaker), place);
  }

  /** The speaker whose name a line begins with, before a colon or as the text writes it, and where the rest begins. */
  named(line) {
    const [before, after = ""] = this.beforeText.split("{speaker}").map(trim);
    const start = line.length - line.replace(new RegExp(`^${SPACE}+`), "").length;
    for (const [opens, closes] of [
      [before, after],
      ["", ":"],
    ]) {
      const from = start + (line.startsWith(opens, start) ? opens.length : 0);
      const end = closes ? line.indexOf(closes, from) : -1;
      const speaker = end < 0 ? undefined : this.byName.get(sameCase(this.cleanName(line.slice(from, end))));
      if (speaker !== undefined) return { speaker, at: end + closes.length };
    }
    return null;
  }

  /** A name that can be told from the text after it. */
  cleanName(name) {
    const words = trim(visible(name).replaceAll(":", " ")).split(SPACES);
    return trim(Array.from(words.join(" ")).slice(0, LONGEST_NAME).join("")) || this.stranger;
  }

  /** The first of the turns that the model sees when somebody answers, with room for the answer; the last one always
   * stays. `count` tells how many tokens a text has. @param {Turn[]} turns */
  firstInSight(turns, answerer, count, { contextLength, maxNewTokens }) {
    let left = contextLength - Math.min(maxNewTokens, Math.floor(contextLength / ROOM)) - count(this.opening(answerer));
    let first = turns.length;
    while (first > 0) {
      left -= count(this.write([turns[first - 1]]));
      if (left < 0 && first < turns.length) break;
      first--;
    }
    return first;
  }

  /** Where in what is written the first of the stops begins that is complete, of several the longest; -1: none is. */
  stopIn(written) {
    let best = { end: Infinity, start: -1 };
    for (const stop of this.stops) {
      const start = written.indexOf(stop);
      const end = start + stop.length;
      if (start >= 0 && (end < best.end || (end === best.end && start < best.start))) best = { end, start };
    }
    return best.start;
  }
}

/** The lines of a text without white space at their ends, empty lines and marks that nobody sees. */
export function cleanText(text) {
  const lines = linesOf(visible(text)).map(({ line }) => trim(line));
  return lines.filter((line) => line).join("\n");
}

/** A text without characters that nobody sees, and without halves of characters. */
function visible(text) {
  return text.replace(INVISIBLE, "");
}

function trim(text) {
  return text.replace(SPACE_AROUND, "");
}

/** A name in the form in which those that differ by case alone are the same. */
function sameCase(name) {
  return name.toUpperCase().toLowerCase();
}

/** The lines of a text, and where each starts. */
function linesOf(text) {
  const lines = [];
  let start = 0;
  for (const { index, 0: end } of text.matchAll(LINE_END)) {
    lines.push({ line: text.slice(start, index), start });
    start = index + end.length;
  }
  if (start < text.length) lines.push({ line: text.slice(start), start });
  return lines;
}
