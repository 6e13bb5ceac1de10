// The choice of the voice in which a text goes on, beside the settings; a model without voices has none.

import { byId, fill, h } from "../basics/dom.js";
import { string } from "../basics/strings.js";
import { model } from "./client.js";
import { state } from "./state.js";
import { voiceOf } from "./voices.js";
import { changeVoice } from "./writing.js";

const voiceChoice = h("select", { id: "voice" });

export function makeVoiceChoice() {
  if (model.voices.length === 0) return;

  const options = model.voices.map(({ name }, i) => h("option", { value: i }, name));
  fill(voiceChoice, h("option", { value: "" }, string("voices.none")), ...options);
  voiceChoice.addEventListener("change", () => changeVoice(model.voices[voiceChoice.value]?.ids ?? []));

  const note = h("small", { id: "help-voice" }, string("voices.help"));
  voiceChoice.setAttribute("aria-describedby", note.id);
  const label = h("label", { htmlFor: voiceChoice.id }, string("voices.label"));
  byId("settings-in-sight").append(h("div", { className: "setting typed-setting" }, label, voiceChoice, note));
}

/** Show the voice of the text on view. */
export function drawVoiceChoice() {
  const voice = voiceOf(state.text);
  voiceChoice.value = voice ? model.voices.indexOf(voice) : "";
}
