// What is known of a run: what the studio says of it, and the rows of its files so far.

export class Record {
  constructor() {
    this.run = null;
    this.folder = null; // the name of the studio's folder, once that is known
    this.texts = []; // of the studio
    this.told = 0; // when the studio said so, in seconds since 1970
    this.after = ""; // how far the files have been read
    this.steps = [];
    this.evaluations = [];
    this.samples = [];
  }

  /** What the studio says of the run now; of one that is gone, what it said last is kept. */
  setRun(run) {
    const isGone = run.state === "gone" && this.run !== null;
    this.run = isGone ? { ...this.run, state: "gone", problem: null } : run;
    this.told = Date.now() / 1000;
  }

  /** Take what there is in the studio. */
  takeStudio({ folder, texts }) {
    this.folder = folder;
    this.texts = texts;
  }

  /** Whether the studio still has the text of the run. */
  hasText() {
    return this.texts.some(({ id }) => id === this.run.text?.id);
  }

  /** Take an answer of the studio: the run, and new rows of its files, of which some may have been written anew. */
  take({ run, rows, anew, after }) {
    const isFirst = this.after === ""; // or the run is back, which was gone
    this.setRun(run);
    this.after = after;
    for (const [name, added] of Object.entries(rows)) {
      // The text of an evaluation begins like those that are shown here, and is longer.
      const shown = added.filter((row) => !row.is_evaluation);
      this[name] = isFirst || anew.includes(name) ? shown : [...this[name], ...shown];
    }
  }

  /** The seconds of learning so far, at a moment in seconds since 1970; null while that is not known. */
  elapsed(now) {
    const { elapsed, state, goes_on_from: before } = this.run;
    const counts = (state === "learning" || state === "stopping") && before === null;
    return elapsed === null || !counts ? elapsed : elapsed + now - this.told;
  }

  /** How many seconds the whole training takes; null while that is not known. It may end before its minutes are over,
   * when it has read the text as often as is good. */
  planned() {
    const { minutes, curve } = this.run;
    if (curve?.ends_early_at) return curve.ends_early_at;
    if (minutes !== null) return 60 * minutes;
    const last = this.steps.at(-1);
    return last?.done > 0 ? last.seconds / last.done : null;
  }

  /** How many bytes a letter of the text takes. */
  letterSize() {
    const { bits, letters, curve } = this.run;
    if (curve?.bytes_per_letter) return curve.bytes_per_letter;
    return bits > 0 && letters > 0 ? Math.log2(letters) / bits : 1;
  }

  /** Among how many equally likely letters there is to choose at so many bits for a byte. */
  letters(bits) {
    return 2 ** (bits * this.letterSize());
  }
}
