// "More": every setting of a training with its help. A change is stored with the text at once, and planned for.

import { button, h } from "../../../../web/dom.js";
import { string } from "../../../../web/strings.js";
import { number } from "../../../../web/units.js";
import { post, Refusal } from "../../basics/api.js";
import { sentenceOf } from "../../basics/told.js";

const LAST = "minigpt-studio-settings"; // of the last text that had some, kept by the browser

/**
 * The settings of a text: {opener, element, update(settings), chosen(), settled(), refuse(refusal)}.
 *
 * `settled` waits until all changes are stored, tries again what could not be, and throws what is refused; `refuse`
 * shows a Refusal beside its field. What has no field is given to `say`.
 */
export function makeMore(id, look, say) {
  const fields = new Map(); // by the names of their settings
  let storing = Promise.resolve();
  const groups = h("div", { className: "groups" });
  const usual = button(string("more.usual"), () => apply({}));
  const last = button(string("more.last"), () => apply(lastSettings()));
  const element = h("div", { id: "more", className: "more", hidden: true }, [
    h("p", { className: "facts" }, string("more.about")),
    h("div", { className: "row" }, usual, last),
    groups,
  ]);
  const opener = button(string("dial.more"), toggle, { "aria-expanded": "false", "aria-controls": "more" });

  function toggle() {
    element.hidden = !element.hidden;
    opener.setAttribute("aria-expanded", String(!element.hidden));
    if (!element.hidden) element.scrollIntoView({ block: "nearest", behavior: "smooth" });
  }

  function chosen() {
    const found = {};
    for (const [name, field] of fields) {
      const value = field.value();
      if (value !== null) found[name] = value;
    }
    return found;
  }

  function apply(values) {
    for (const [name, field] of fields) field.set(values[name] ?? null);
    store();
  }

  /** Store what is chosen; what is refused is said. */
  function store() {
    showCounts();
    storing = storeNow();
    storing.catch(() => null); // said, and again where it is waited for
  }

  async function storeNow() {
    const values = chosen();
    say("");
    for (const field of fields.values()) field.say("");
    try {
      await post(`/api/texts/${id}/plan`, { settings: values });
    } catch (error) {
      if (error instanceof Refusal) refuse(error);
      throw error;
    }
    if (Object.keys(values).length > 0) localStorage.setItem(LAST, JSON.stringify(values));
    await look();
  }

  function refuse(refusal) {
    const field = fields.get(refusal.field);
    if (field === undefined) {
      say(sentenceOf(refusal));
      return;
    }
    if (element.hidden) toggle();
    field.element.closest("details").open = true;
    field.say(sentenceOf(refusal));
    field.focus();
  }

  function make(settings) {
    const byGroup = Map.groupBy(settings, (setting) => setting.group);
    for (const [group, members] of byGroup) {
      const made = members.map((setting) => {
        const field = makeField(setting, store);
        fields.set(setting.name, field);
        return field.element;
      });
      const summary = h("summary", { "data-group": group, "data-count": members.length });
      groups.append(h("details", {}, summary, h("div", { className: "settings" }, made)));
    }
    showCounts();
  }

  /** "Model: 16 settings, 2 changed". */
  function showCounts() {
    const names = Object.keys(chosen());
    for (const summary of groups.querySelectorAll("summary")) {
      const inside = names.filter((name) => summary.parentElement.contains(fields.get(name).element));
      const values = { group: string(`more.${summary.dataset.group}`), n: number(Number(summary.dataset.count)) };
      const words = inside.length > 0 ? "more.groupChanged" : "more.group";
      summary.textContent = string(words, { ...values, changed: number(inside.length) });
    }
    usual.hidden = names.length === 0;
    last.hidden = names.length > 0 || Object.keys(lastSettings()).length === 0;
  }

  return {
    opener,
    element,
    chosen,
    refuse,
    settled() {
      storing = storing.catch(storeNow); // the disk may have room again
      return storing;
    },
    update(settings) {
      if (fields.size > 0) return; // another tab's changes are seen after a reload
      make(settings);
      for (const { name, value } of settings) fields.get(name).set(value ?? null);
      showCounts();
    },
  };
}

function lastSettings() {
  try {
    return JSON.parse(localStorage.getItem(LAST)) ?? {};
  } catch {
    return {};
  }
}

/** A setting: its name, a control, its help. Its value is null as long as nothing is chosen. */
function makeField({ name, help, kind, choices, default: usual, planned }, changed) {
  const id = `setting-${name}`;
  const described = `${id}-help ${id}-problem`;
  const control = makeControl({ kind, choices, usual: usualOf(usual, planned) });
  Object.assign(control, { id, onchange: changed });
  control.setAttribute("aria-describedby", described);

  const label = h("label", { htmlFor: id }, name.replaceAll("_", " "));
  const about = h("p", { className: "facts", id: `${id}-help` }, sentenceOfHelp(help));
  const problem = h("p", { className: "bad", id: `${id}-problem`, role: "alert" });
  return {
    element: h("div", { className: "field setting" }, label, control, problem, about),
    value: () => typedOf(control.value, kind),
    set: (value) => (control.value = shownOf(value, kind)),
    say: (words) => (problem.textContent = words),
    focus: () => control.focus(),
  };
}

/** What a setting does, as a sentence. */
function sentenceOfHelp(help) {
  const end = help.endsWith(".") ? "" : ".";
  return help.charAt(0).toUpperCase() + help.slice(1) + end;
}

/** "planned", "usually 0.9", "usually on", or nothing to say. */
function usualOf(usual, planned) {
  if (planned) return string("more.planned");
  if (usual === null || usual === "" || (Array.isArray(usual) && usual.length === 0)) return string("more.unset");
  const words = typeof usual === "boolean" ? string(usual ? "more.on" : "more.off") : String(usual);
  return string("more.usually", { value: words });
}

function makeControl({ kind, choices, usual }) {
  if (kind === "choice") return select(usual, choices, choices);
  if (kind === "switch") return select(usual, ["true", "false"], [string("more.on"), string("more.off")]);
  if (kind === "texts") return h("textarea", { rows: 2, placeholder: usual });
  const isNumber = kind === "number" || kind === "whole number";
  const inputMode = isNumber ? "decimal" : "text";
  return h("input", { type: "text", placeholder: usual, inputMode, autocomplete: "off" });
}

function select(usual, values, labels) {
  const options = values.map((value, i) => h("option", { value }, labels[i]));
  return h("select", {}, h("option", { value: "" }, usual), options);
}

/** What is typed, as JSON has it. What is no number is sent as it is, and refused with a sentence. */
function typedOf(typed, kind) {
  const words = typed.trim();
  if (words === "") return null;
  if (kind === "switch") return words === "true";
  if (kind === "texts") return words.split("\n").filter((line) => line.trim() !== "");
  if (kind === "number" || kind === "whole number") {
    const value = Number(words.replace(",", "."));
    return Number.isNaN(value) ? words : value;
  }
  return words;
}

function shownOf(value, kind) {
  if (value === null) return "";
  return kind === "texts" ? value.join("\n") : String(value);
}
