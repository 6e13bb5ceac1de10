// The training text, searched: the longest stretch that a text shares with it word for word, and the
// passages that are nearest to a text by the rare words they share.

const GRAM = 6; // characters that are looked up; shorter copies are no copies
const END = "␄"; // stands between two documents
const SLOTS = 1 << 18;
const TRIES = 2000; // places that are compared with a text, the last ones first

export class Passages {
  /** @param {string[]} documents */
  constructor(documents) {
    this.text = documents.join(END);
    const n = this.text.length;

    this.newest = new Int32Array(SLOTS).fill(-1); // the last place of a gram of each hash
    this.earlier = new Int32Array(n); // the place before it with the same hash
    for (let i = 0; i + GRAM <= n; i++) {
      const slot = hash(this.text, i);
      this.earlier[i] = this.newest[slot];
      this.newest[slot] = i;
    }

    this.passages = [...this.text.matchAll(/[^␄]{90,260}?[.!?]["”’]?\s+|[^␄]{1,260}(?:\s|$)/gu)];
    this.byWord = new Map(); // word -> the passages that it is in
    this.passages.forEach(([passage], number) => {
      for (const word of words(passage)) {
        if (!this.byWord.has(word)) this.byWord.set(word, []);
        this.byWord.get(word).push(number);
      }
    });
  }

  /** The longest stretch of the training text that `text` has from its character `at` on. */
  longestAt(text, at) {
    const best = { place: -1, length: 0 };
    if (at + GRAM > text.length) return best;

    let i = this.newest[hash(text, at)];
    for (let tries = 0; i >= 0 && tries < TRIES; tries++) {
      let length = 0;
      while (at + length < text.length && text[at + length] === this.text[i + length]) length++;
      if (length > best.length) Object.assign(best, { place: i, length });
      i = this.earlier[i];
    }
    return best.length < GRAM ? { place: -1, length: 0 } : best;
  }

  /** Copied stretches of at least `least` characters: [{start, end, place}], none inside another. */
  copies(text, least) {
    const found = [];
    for (let i = 0; i < text.length; i++) {
      const { place, length } = this.longestAt(text, i);
      if (length >= least && i + length > (found.at(-1)?.end ?? 0)) {
        found.push({ start: i, end: i + length, place });
      }
      // Only a stretch that begins before this one ends and reaches further can follow.
      if (length >= least) i += Math.max(0, length - least);
    }
    return found;
  }

  /** What is copied around the characters from `start` to `end`, with its surroundings there. */
  around(text, start, end) {
    let best = { start, length: 0, place: -1 };
    for (let i = Math.max(0, start - 400); i <= start; i++) {
      const { place, length } = this.longestAt(text, i);
      if (i + length >= end && length > best.length) best = { start: i, length, place };
    }
    if (best.length === 0) return null;

    const { place, length } = best;
    const from = Math.max(0, place - 80);
    return {
      copied: this.text.slice(place, place + length),
      before: this.text.slice(from, place).split(END).at(-1),
      after: this.text.slice(place + length, place + length + 80).split(END)[0],
    };
  }

  /** The passages that share the most with `text`, words that few passages have counting most. */
  nearest(text, count = 3) {
    const scores = new Map();
    const shared = new Set(words(text));
    for (const word of shared) {
      const places = this.byWord.get(word) ?? [];
      const weight = Math.log((1 + this.passages.length) / (1 + places.length));
      for (const number of places) scores.set(number, (scores.get(number) ?? 0) + weight);
    }

    const best = [...scores].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, count);
    return best.map(([number]) => {
      const passage = this.passages[number][0].replaceAll(END, "");
      return { passage, shared: [...words(passage)].filter((word) => shared.has(word)) };
    });
  }
}

/** The different words of a text, in small letters. */
function words(text) {
  return new Set(text.toLowerCase().match(/[\p{L}\p{N}\p{M}]+/gu) ?? []);
}

function hash(text, at) {
  let value = 0;
  for (let i = at; i < at + GRAM; i++) value = Math.imul(value, 31) + text.charCodeAt(i);
  return (Math.imul(value, 0x9e3779b1) >>> 14) % SLOTS;
}
