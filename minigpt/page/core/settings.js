// How the next tokens are drawn. Moving a setting reshapes the chances at once; the model does not run again.

import { byId, fill, h } from "../../web/dom.js";
import { say, string } from "../../web/strings.js";
import { number } from "../../web/units.js";
import { changed, give, state } from "./state.js";

/** name: [smallest, largest, step] */
export const SETTINGS = {
  temperature: [0, 2, 0.05],
  topK: [0, 100, 1],
  topP: [0.05, 1, 0.05],
  minP: [0, 1, 0.01],
  repetitionPenalty: [1, 2, 0.05],
  dryMultiplier: [0, 4, 0.1],
  dryBase: [1.05, 4, 0.05],
  dryAllowedLength: [1, 100, 1],
  seed: [0, 4294967295, 1],
  maxNewTokens: [1, 2000, 1],
};
const IN_SIGHT = ["temperature"];
const NUMBERS = ["seed", "maxNewTokens"]; // typed, not slid
const ANY_SEED = -1; // for whoever cannot leave it out
const inputs = {};

/** The inputs: the first ones in sight, the others in the fold of the page. */
export function makeSettings() {
  for (const name of Object.keys(SETTINGS)) {
    const place = IN_SIGHT.includes(name) ? "settings-in-sight" : "settings";
    byId(place).append(makeSetting(name));
  }
}

function makeSetting(name) {
  const [min, max, step] = SETTINGS[name];
  const isNumber = NUMBERS.includes(name);
  const id = `set-${name}`;
  const note = h("small", { id: `help-${name}` }, string(`settings.${name}Help`));
  const output = isNumber ? null : h("output", { htmlFor: id });

  const type = isNumber ? "number" : "range";
  const input = h("input", { type, id, min, max, step, "aria-describedby": note.id });
  input.addEventListener("input", () => {
    const typed = Number(input.value);
    if (input.value !== "") setOne(name, typed);
    tellLimits(name, note, typed);
    changed();
  });
  input.addEventListener("change", () => (input.value = state.settings[name]));

  inputs[name] = { input, output };
  const label = h("label", { htmlFor: id }, string(`settings.${name}`));
  return h("div", { className: isNumber ? "setting typed-setting" : "setting" }, label, input, output, note);
}

/** Say what is possible, if something else was typed. */
function tellLimits(name, note, value) {
  const [min, max] = SETTINGS[name];
  const isAny = name === "seed" && value === ANY_SEED;
  const isWrong = !isAny && value !== state.settings[name];
  const numbers = { min: number(min), max: number(max) };
  const used = number(state.settings[name]);

  note.classList.toggle("wrong", isWrong);
  if (isWrong) fill(note, say("settings.limits", { ...numbers, used }));
  else fill(note, string(`settings.${name}Help`));
}

/** Set a value if it is in range; otherwise the nearest that is. */
export function setOne(name, value) {
  const [min, max, step] = SETTINGS[name];
  if (!Number.isFinite(value)) return;

  const chosen = name === "seed" ? seedFrom(value) : value;
  const whole = step === 1 ? Math.round(chosen) : chosen;
  give({ ...state.given, [name]: Math.min(max, Math.max(min, whole)) });
}

/** A seed, or another one each time for the number that means any. */
export function seedFrom(value) {
  const [, largest] = SETTINGS.seed;
  return value === ANY_SEED ? Math.floor(Math.random() * (largest + 1)) : value;
}

export function drawSettings() {
  for (const [name, { input, output }] of Object.entries(inputs)) {
    const value = String(state.settings[name]);
    if (document.activeElement !== input && input.value !== value) input.value = value;
    if (output) output.value = name === "topK" && value === "0" ? string("settings.all") : value;
  }
}
