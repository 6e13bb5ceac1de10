// Text to token ids and back: one token a character, or byte-pair encoding as in GPT-2.
// A byte is written as a printable character where tokens are looked up, as GPT-2's files do.

const PRINTABLE = Array.from({ length: 256 }, (_, byte) => byte).filter(
  (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173),
);
const CHARACTERS = Array.from({ length: 256 });
PRINTABLE.forEach((byte) => (CHARACTERS[byte] = String.fromCharCode(byte)));
let nextFree = 256;
for (let byte = 0; byte < 256; byte++) CHARACTERS[byte] ??= String.fromCharCode(nextFree++);
const BYTES = new Map(CHARACTERS.map((character, byte) => [character, byte]));
const BETWEEN_TURNS = "\n\n";
const MARKS = { " ": "␣", "\n": "↵", "\t": "⇥" };

/** A character that the model has no token for, and its place in the text, from 1. */
class UnknownCharacter extends Error {
  constructor(character, place) {
    super(`no token for ${character}`);
    this.name = "UnknownCharacter";
    this.values = { character, place: String(place + 1) };
  }
}

export class Tokenizer {
  /** @param {object} data what build.py wrote of the tokenizer */
  constructor(data) {
    this.data = data;
    this.end = data.end;
    this.speaker = data.speaker ?? null; // before each turn of a conversation; null: there is no such token
    this.endOfTurn = data.endOfTurn ?? null; // in the place of an empty line
    this.ids = new Map(data.tokens.map((token, id) => [token, id]));
    this.words = data.kind === "bpe" && new RegExp(data.pattern, "gu");
    this.merges = data.merges && new Map(data.merges.map((pair, i) => [pair.join(" "), i]));
    this.known = new Map(); // words and their ids
    this.knowsAll = data.kind === "bpe" && CHARACTERS.every((character) => this.ids.has(character));
  }

  /** Whether the model's tokens can spell a character. */
  knows(character) {
    if (this.data.kind === "char") return this.ids.has(character);
    return Array.from(new TextEncoder().encode(character)).every((byte) => this.ids.has(CHARACTERS[byte]));
  }

  /** Token ids of a text; the name of a special token in it is ordinary text. If the model has tokens for turns, each
   * turn begins with one, but for the first of a text that begins inside a turn. */
  encode(text, { isInTurn = false } = {}) {
    if (this.speaker === null) return this.encodePlain(text);

    const ids = [];
    text.split(BETWEEN_TURNS).forEach((turn, i) => {
      if (i > 0) ids.push(this.endOfTurn);
      if (turn && (i > 0 || !isInTurn)) ids.push(this.speaker);
      for (const id of this.encodePlain(turn)) ids.push(id);
    });
    return ids;
  }

  encodePlain(text) {
    if (this.data.kind === "char") {
      return Array.from(text, (character, place) => {
        const id = this.ids.get(character);
        if (id === undefined) throw new UnknownCharacter(character, place);
        return id;
      });
    }

    const ids = [];
    const normal = this.data.nfc ? text.normalize("NFC") : text;
    for (const [word] of normal.matchAll(this.words)) {
      if (!this.known.has(word)) this.known.set(word, this.encodeWord(word, normal));
      for (const id of this.known.get(word)) ids.push(id);
    }
    return ids;
  }

  encodeWord(word, text) {
    const printable = Array.from(new TextEncoder().encode(word), (byte) => CHARACTERS[byte]);
    const whole = this.ids.get(printable.join(""));
    if (whole !== undefined && (!this.merges || this.data.whole)) return [whole];

    const ids = this.merge(printable).map((part) => this.ids.get(part));
    if (ids.includes(undefined)) this.refuseUnknown(text);
    return ids;
  }

  /** A vocabulary may lack single bytes: name the first character that it cannot spell. */
  refuseUnknown(text) {
    const characters = Array.from(text);
    const place = characters.findIndex((character) => !this.knows(character));
    throw new UnknownCharacter(characters[place], place);
  }

  /** Merge the two neighbours of the lowest rank, the first such first, until none can be merged. */
  merge(parts) {
    for (;;) {
      const ranks = parts.slice(1).map((right, i) => this.rank(parts[i], right));
      const lowest = ranks.reduce((a, b) => Math.min(a, b), Infinity);
      if (lowest === Infinity) return parts;

      // All of this rank in one pass, unless a merge makes way for one of a lower rank.
      const merged = [];
      let mustStop = false;
      for (let i = 0; i < parts.length; i++) {
        if (mustStop || ranks[i] !== lowest) {
          merged.push(parts[i]);
          continue;
        }

        const token = parts[i] + parts[i + 1];
        i += 1; // both are in it
        const before = merged.length ? this.rank(merged.at(-1), token) : Infinity;
        const after = i + 1 < parts.length ? this.rank(token, parts[i + 1]) : Infinity;
        mustStop = before < lowest || after < lowest;
        merged.push(token);
      }
      parts = merged;
    }
  }

  rank(left, right) {
    const rank = this.merges ? this.merges.get(`${left} ${right}`) : this.ids.get(left + right);
    return rank ?? Infinity;
  }

  /** The UTF-8 bytes that a token stands for; none for a special token. */
  bytes(id) {
    const token = this.data.tokens[id];
    if (token == null) return new Uint8Array();
    if (this.data.kind === "char") return new TextEncoder().encode(token);
    return Uint8Array.from(token, (character) => BYTES.get(character));
  }

  /** The text of token ids; bytes that are not UTF-8 become U+FFFD. */
  decode(ids) {
    return this.pieces(ids).join("");
  }

  /** What each token adds to the text: a character is added by the token that completes it. */
  pieces(ids) {
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    const pieces = ids.map((id) => decoder.decode(this.bytes(id), { stream: true }));
    if (ids.length) pieces[ids.length - 1] += decoder.decode();
    return pieces;
  }

  /** A token to look at: ␣ for a space, ↵ a new line, ⇥ a tab, \xe2 a byte of a character. */
  visible(id) {
    const bytes = this.bytes(id);
    try {
      const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
      const shown = text.replace(/[ \n\t]/g, (c) => MARKS[c]);
      return shown.replace(/[\p{C}\p{Z}]/gu, (c) => `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}`);
    } catch {
      return Array.from(bytes, (byte) => `\\x${byte.toString(16)}`).join("");
    }
  }
}
