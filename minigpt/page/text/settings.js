// How the next tokens are drawn. Moving a setting reshapes the bars at once; the model does not run again.

import { h } from "../basics/dom.js";
import { changed, state } from "./state.js";

/** name: [label, smallest, largest, step, what it does] */
export const SETTINGS = {
  temperature: ["Temperature", 0, 2, 0.05, "below 1 safer, above 1 bolder; 0: always the likeliest"],
  topK: ["Top k", 0, 100, 1, "choose among so many tokens; 0: among all"],
  topP: ["Top p", 0.05, 1, 0.05, "choose among the fewest tokens that are together so probable"],
  minP: ["Min p", 0, 1, 0.01, "leave out tokens less likely than this times the best"],
  repetitionPenalty: ["Repetition penalty", 1, 2, 0.05, "above 1 avoids tokens of the text so far"],
  seed: ["Seed", 0, 4294967295, 1, "the same seed writes the same text"],
  maxNewTokens: ["Length", 1, 2000, 1, "how many tokens to write"],
};
const inputs = {};

/** The inputs, in the fold of the page. */
export function makeSettings() {
  const rows = Object.entries(SETTINGS).map(([name, [label, min, max, step, help]]) => {
    const isNumber = name === "seed" || name === "maxNewTokens";
    const output = h("output", { htmlFor: `set-${name}` });
    const oninput = () => {
      if (input.value !== "") set(name, Number(input.value));
      changed();
    };
    const [id, type, note] = [`set-${name}`, isNumber ? "number" : "range", `help-${name}`];
    const input = h("input", { type, id, min, max, step, oninput, "aria-describedby": note });
    inputs[name] = { input, output: isNumber ? null : output };
    const cells = [h("label", { htmlFor: id }, label), input, isNumber ? null : output, h("small", { id: note }, help)];
    return h("div", { className: "setting" }, cells);
  });
  document.getElementById("settings").append(...rows);
}

/** Set a value if it is in range; otherwise the nearest that is. */
export function set(name, value) {
  const [, min, max, step] = SETTINGS[name];
  if (!Number.isFinite(value)) return;
  const whole = step === 1 ? Math.round(value) : value;
  state.settings[name] = Math.min(max, Math.max(min, whole));
}

export function drawSettings() {
  for (const [name, { input, output }] of Object.entries(inputs)) {
    const value = String(state.settings[name]);
    if (document.activeElement !== input && input.value !== value) input.value = value;
    if (output) output.value = name === "topK" && value === "0" ? "all" : value;
  }
}
