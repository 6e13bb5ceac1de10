// What leaves the page: the text, a link that opens exactly what is on view, and pictures of the views.

import { byId, copied } from "../../web/dom.js";
import { string } from "../../web/strings.js";
import { windowsOf } from "../model/window.js";
import { dialogue, model, tokenizer } from "./client.js";
import { ofRuns, runsOf } from "./keep.js";
import { SETTINGS, setOne } from "./settings.js";
import { edited, onSheet, sheetText } from "./sheet_tokens.js";
import { changed, emptyText, give, OF_PASSAGES, settingsWith, state } from "./state.js";
import { begin } from "./versions.js";
import { shownText } from "./writing.js";

const LONGEST_LINK = 16_000; // characters: mail programs and chats cut longer ones
const OF_TALK = ["look", "asker", "answerer"];
const PENALTIES = ["repetitionPenalty", ...OF_PASSAGES];
const BASE = 36; // of token ids in a link

function tell(name) {
  state.status = string(name);
  changed();
}

export async function copyText() {
  const isCopied = await copied(shownText());
  tell(isCopied ? "link.textCopied" : "link.textRefused");
}

/** Whether the page's address opens it again: not in a frame of the studio, which gets it once. */
export function hasLink() {
  return location.protocol === "file:" || window.origin !== "null";
}

export async function copyLink() {
  const hash = link();
  if (hash.length > LONGEST_LINK) return tell("link.tooLong");

  // A file lies elsewhere on another machine.
  const isFile = location.protocol === "file:";
  const isCopied = await copied(isFile ? hash : `${location.href.split("#")[0]}${hash}`);
  if (isCopied) return tell(isFile ? "link.partCopied" : "link.copied");

  history.replaceState(history.state, "", hash); // where it can be copied by hand
  return tell("link.refused");
}

/** What a link says after its #: the text and who it is from, what is chosen and looked at, heads off, and the
 * settings that somebody has given. */
function link() {
  const { text, chosen, question, view, focus, off, settings } = state;
  const shown = sheetText(text);
  const parts = new URLSearchParams({ prompt: shown });

  const again = edited(emptyText(), shown);
  if (String(again.ids) !== String(text.ids) || again.hidden !== text.hidden) {
    parts.set("ids", text.ids.map((id) => id.toString(BASE)).join("."));
    if (text.hidden) parts.set("hidden", 1);
  }
  if (text.origin.includes("written")) {
    const runs = runsOf(text.origin).map(([count, origin]) => `${origin[0]}${count}`);
    parts.set("origin", runs.join("."));
  }
  if (String(again.starts) !== String(text.starts)) {
    const runs = runsOf(text.starts).map(([count, start]) => `${start}x${count}`);
    parts.set("windows", runs.join("."));
  }

  if (chosen !== null) parts.set("token", chosen);
  if (chosen !== null && question !== "why") parts.set("question", question);
  parts.set("view", view);
  parts.set("head", `${focus.layer}.${focus.head}`);
  if (off.size) parts.set("off", [...off].join(" "));
  for (const name of Object.keys(state.given).filter(isToBeSaid)) parts.set(name, settings[name]);
  for (const name of OF_TALK) if (dialogue && state[name] !== null) parts.set(name, state[name]);
  return `#${parts}`;
}

/** Whether a setting that was given would be another if it were not. A penalty that was given stays as it is, whatever
 * temperature is chosen then: a link always says it. */
function isToBeSaid(name) {
  const { [name]: _, ...others } = state.given;
  const without = settingsWith(others);
  const isOther = (setting) => without[setting] !== state.settings[setting];
  return PENALTIES.includes(name) || Object.keys(without).some(isOther);
}

/** Show what the page's link says; false if there is none. What it says wrongly is left out. */
export function readLink() {
  const parts = new URLSearchParams(location.hash.slice(1));
  if (parts.has("prompt")) give({}); // such a link says all settings that are not the usual ones
  for (const name of Object.keys(SETTINGS)) if (parts.has(name)) setOne(name, Number(parts.get(name)));
  if (dialogue) readTalk(parts);
  if (!parts.has("prompt")) return false;

  const text = linkedText(parts);
  begin(text);
  const token = Number.parseInt(parts.get("token"), 10);
  state.chosen = token >= 0 && token < text.ids.length ? token : null;
  state.question = parts.get("question") === "next" ? "next" : "why";

  const view = parts.get("view");
  if (view && byId(`panel-${view}`)) state.view = view;
  const isHead = (name) => /^\d+\.\d+$/.test(name) && isInModel(...name.split(".").map(Number));
  const head = parts.get("head") ?? "";
  if (isHead(head)) {
    const [layer, inLayer] = head.split(".").map(Number);
    Object.assign(state.focus, { layer, head: inLayer, follows: false });
  }
  state.off = new Set((parts.get("off") ?? "").split(" ").filter(isHead));
  changed();
  return true;
}

/** How the text is looked at, and who speaks: the usual ones, if a link with a text names nobody. */
function readTalk(parts) {
  if (parts.has("prompt")) Object.assign(state, { asker: null, answerer: null });
  for (const name of OF_TALK) {
    const known = name === "look" ? ["talk", "sheet"] : [...dialogue.speakers, dialogue.stranger];
    if (known.includes(parts.get(name))) state[name] = parts.get(name);
  }
}

function isInModel(layer, head) {
  return layer < model.config.num_layers && head < model.config.num_heads;
}

function linkedText(parts) {
  let text = edited(emptyText(), parts.get("prompt"));
  const ids = (parts.get("ids") ?? "").split(".").map((id) => Number.parseInt(id, BASE));
  if (ids.every((id) => id >= 0 && id < model.config.vocab_size)) text = textOf(ids, parts.get("hidden") ? 1 : 0);

  const n = text.ids.length;
  const named = { t: "typed", w: "written" };
  const origins = (parts.get("origin") ?? "").split(".");
  const origin = ofRuns(origins.map((run) => [lengthIn(run.slice(1), n), named[run[0]]]));
  if (origin.length === n && !origin.includes(undefined)) text.origin = origin;

  const windows = (parts.get("windows") ?? "").split(".").map((run) => run.split("x").map((part) => lengthIn(part, n)));
  const starts = ofRuns(windows.map(([start, count]) => [count ?? 0, start]));
  const { context_length } = model.config;
  if (starts.length === n && starts.every((start, i) => i - start <= context_length && (start < i || i === 0))) {
    text.starts = starts;
  }
  return text;
}

/** A whole number in a link, at most n; 0 if it is none. */
function lengthIn(part, n) {
  const number = Number.parseInt(part, 10);
  return number >= 0 && number <= n ? number : 0;
}

function textOf(ids, hidden) {
  const text = { ...emptyText(), ids, hidden };
  text.pieces = tokenizer.pieces(ids).map((piece, i) => (i < hidden ? "" : onSheet(ids[i], piece)));
  text.origin = ids.map(() => "typed");
  text.bits = ids.map(() => Number.NaN);
  text.draws = ids.map(() => null);
  text.starts = windowsOf(ids, [], model.config.context_length);
  return text;
}

/** A text that the page begins with. */
export function beginWith(prompt) {
  begin(edited(emptyText(), prompt));
}
