// Heads switched off: what changes for the chosen token, and the text written again without them.

import { button, fill, h, inGrid, lastAsked, number, roving, whatIsThis } from "../basics/dom.js";
import { ask, model, tokenizer } from "../text/client.js";
import { changed, state, windowOf } from "../text/state.js";
import { chosenPlace, rewrite } from "../text/writing.js";
import { bar, probabilities } from "./draw.js";
import { headName } from "./head_names.js";

const COMPARED = 8;

export const headsView = {
  id: "heads",
  make(panel) {
    const { num_layers, num_heads } = model.config;
    const meaning = { role: "group", "aria-label": "Heads that are on" };
    const switches = h("div", { className: "switches", ...meaning, "--columns": num_heads });
    const readout = h("p", { className: "readout" });
    const bars = h("ol", { className: "bars" });

    const rewriting = button("Write again without them", rewrite, { className: "main" });
    const allOn = button("All on", () => (state.off.clear(), changed()));

    for (let layer = 0; layer < num_layers; layer++) {
      for (let head = 0; head < num_heads; head++) {
        const key = `${layer}.${head}`;
        const toggle = () => {
          if (!state.off.delete(key)) state.off.add(key);
          changed();
        };
        switches.append(button(key, toggle, { tabIndex: layer + head ? -1 : 0 }));
      }
    }

    panel.append(
      whatIsThis(
        "Attention weights show where a head looks, not whether it matters. Switch a head off and see: its context ",
        "vector becomes zero. The outline is the whole model's probability, the filled bar that without these heads; ",
        "the divergence says in bits how much the two differ.",
      ),
      h("p", {}, "On is filled. Choose heads to switch them off:"),
      switches,
      h("p", { className: "row" }, rewriting, allOn),
      readout,
      bars,
    );

    roving(switches, "button", (key, at) => inGrid(key, at, num_heads));
    switches.addEventListener("focusin", (event) => {
      for (const item of switches.children) item.tabIndex = item === event.target ? 0 : -1;
    });

    const asking = lastAsked();
    return async () => {
      [...switches.children].forEach((item) => {
        const name = headName(...item.textContent.split(".").map(Number));
        const isOn = !state.off.has(item.textContent);
        item.ariaPressed = String(isOn);
        item.ariaLabel = item.title = `${item.textContent}${name && `: ${name}`}`;
      });

      rewriting.disabled = allOn.disabled = state.off.size === 0;
      const place = chosenPlace();
      if (place === 0 || state.busy) return;

      const { text } = state;
      const window = windowOf(place).ids;
      const isLast = asking();
      const whole = probabilities(await ask("logits", window));
      const less = probabilities(await ask("logits", window, [...state.off]));
      if (!isLast()) return;

      const part = (p, i) => (p > 1e-12 ? p * Math.log2(p / Math.max(less[i], 1e-12)) : 0);
      const divergence = whole.map(part).reduce((a, b) => a + b);
      const taken = text.ids[place];
      const what = taken === undefined ? "the next token" : `“${tokenizer.visible(taken)}”`;
      const off =
        state.off.size === 0 ? "All heads are on" : `${state.off.size} of ${num_layers * num_heads} heads off`;
      fill(readout, `${off}. For ${what} the divergence is ${number(Math.max(0, divergence), 3)} bits.`);

      const order = Array.from(whole.keys()).sort((a, b) => whole[b] + less[b] - whole[a] - less[a]);
      const shown = order.slice(0, COMPARED);
      const most = Math.max(...shown.map((id) => Math.max(whole[id], less[id])));
      const drawn = shown.map((id) => bar("li", id, whole[id], less[id], most));
      fill(bars, drawn);
    };
  },
};
