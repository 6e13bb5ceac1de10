// What the model has read lately. The text that is written and the windows that views look at mostly begin alike, so
// that a new one goes on from the one that it shares the most with, and few tokens are read twice.

import { Reading } from "./engine.js";

const MOST = 8; // readings that are kept
const MOST_NUMBERS = 1 << 26; // in all of them: 256 MB

export class ReadingCache {
  /** @param {import("./engine.js").Engine} engine */
  constructor(engine) {
    this.engine = engine;
    this.kept = []; // the one used last comes first
  }

  /** A reading that begins with these tokens. A generator: it yields now and then while it reads, and returns the
   * reading. Meanwhile others may read on from what it has read; a reading never changes but by growing. */
  *read(ids, off = new Set()) {
    this.check(ids);
    let reading = this.closest(ids, off);

    for (;;) {
      const done = common(reading.ids, ids);
      if (done === ids.length) return reading;

      if (done < reading.ids.length) {
        reading = this.closest(ids, off); // another task has read on with other tokens
      } else {
        reading.read(ids.slice(done, done + this.engine.atOnce));
        if (reading.ids.length < ids.length) yield;
      }
    }
  }

  check(ids) {
    const { context_length, vocab_size } = this.engine.config;
    if (ids.length === 0) throw new Error("nothing is before the first token, so that it is not predicted");
    if (ids.length > context_length) {
      throw new Error(`${ids.length} tokens are more than the model sees at once (${context_length})`);
    }
    if (!ids.every((id) => Number.isInteger(id) && id >= 0 && id < vocab_size)) throw new Error("no such token");
  }

  /** The reading that has the most of these tokens, or a branch of it where they part. */
  closest(ids, off) {
    let best = null;
    let most = 0;
    for (const reading of this.kept) {
      const shared = isSameSet(reading.off, off) ? common(reading.ids, ids) : 0;
      if (shared > most) {
        best = reading;
        most = shared;
      }
    }

    if (best === null) {
      best = new Reading(this.engine, new Set(off));
    } else if (most < best.ids.length && most < ids.length) {
      best = best.branch(most);
    }
    this.keep(best);
    return best;
  }

  /** Put a reading first, and forget the last ones if there are too many. */
  keep(reading) {
    this.kept = [reading, ...this.kept.filter((other) => other !== reading)].slice(0, MOST);

    let numbers = 0;
    const isWithin = ({ size }, i) => {
      numbers += size;
      return i < 2 || numbers <= MOST_NUMBERS;
    };
    this.kept = this.kept.filter(isWithin);
  }
}

/** How many tokens two texts have in common from the beginning. */
function common(a, b) {
  const length = Math.min(a.length, b.length);
  let i = 0;
  while (i < length && a[i] === b[i]) i++;
  return i;
}

function isSameSet(a, b) {
  return a.size === b.size && [...a].every((item) => b.has(item));
}
