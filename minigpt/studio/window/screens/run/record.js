// What is known of a run: what the studio says of it, and the rows of its files so far.

const LISTS = { phase: "phases", end: "phases", step: "steps", evaluation: "evaluations", sample: "samples" };

export class Record {
  constructor() {
    this.run = null;
    this.folder = null; // the name of the studio's folder, once that is known
    this.told = 0; // when the studio said so, in seconds since 1970
    this.stepTold = 0; // when the last step was told
    this.phases = [];
    this.steps = [];
    this.evaluations = [];
    this.samples = [];
  }

  /** What the studio says of the run now. */
  setRun(run) {
    this.run = run;
    this.told = Date.now() / 1000;
  }

  /** Add a row of one of the files; or forget those of a file, all of which follow again. */
  add(event, row) {
    if (event === "again") this[LISTS[row.of]] = [];
    if (LISTS[event] === undefined) return;
    if (row.is_evaluation) return; // the text of an evaluation has another beginning than those that are shown here
    this[LISTS[event]].push(row);
    if (event === "step") this.stepTold = Date.now() / 1000;
  }

  /** The seconds of learning so far, at a moment in seconds since 1970; null while that is not known. */
  elapsed(now) {
    const { elapsed, state } = this.run;
    if (elapsed === null || (state !== "learning" && state !== "stopping")) return elapsed;
    return elapsed + now - this.told;
  }

  /** When the training is done, in seconds since 1970; null while that is not known. */
  endsAt() {
    const { ends_at: told, minutes } = this.run;
    const last = this.steps.at(-1);
    if (this.stepTold <= this.told || !(last?.done > 0)) return told;
    const left = (last.seconds * (1 - last.done)) / last.done;
    return this.stepTold + (minutes === null ? left : Math.min(left, 60 * minutes - last.seconds));
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

  /** Whether an earlier sitting has learned something already. */
  goesOn() {
    const ends = this.phases.filter((row) => row.phase === "end");
    return ends.length > 0 && this.steps.length > 0;
  }
}
