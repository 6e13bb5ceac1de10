// READ: the files of a text, what was read in them, what was left out.

import { button, fill, h } from "../../../../web/dom.js";
import { string } from "../../../../web/strings.js";
import { bytesOf, number } from "../../../../web/units.js";
import { post } from "../../basics/api.js";
import { ask, keepingFocus } from "../../basics/controls.js";
import { attempt, goHomeDeleted, problemOf } from "../../basics/told.js";
import { filesOf, makeUpload, transferred } from "../../basics/upload.js";
import { percent } from "../../basics/words.js";

const MOST_FILES = 3; // more are behind a summary
const MOST_SHOWN = 8; // rows of what was left out, and of notes, at first
const PAGE = 100; // rows that are added to them at a time

/** `look` asks for the text anew, after something has changed it. */
export function makeReading(first, look) {
  const { id } = first;
  const address = `/api/texts/${id}`;
  const upload = makeUpload(look);
  const problem = h("div", { role: "alert" });
  const found = h("div", { className: "found" });
  const title = h("h1", {}, first.name);
  const buttons = h("div", { className: "row" }, makeAdder(), button(string("text.delete"), remove));
  const element = h("section", { className: "reading", "aria-label": string("text.read") }, [
    title,
    found,
    problem,
    upload.element,
    buttons,
  ]);

  function makeAdder() {
    const input = h("input", { type: "file", multiple: true });
    input.addEventListener("change", () => {
      const files = filesOf(input.files);
      input.value = "";
      add(files);
    });
    return h("label", { className: "button chooser" }, string("text.add"), input);
  }

  function add(files) {
    upload.begin(files, id);
  }

  function remove() {
    const content = [h("p", {}, string("home.deleteTextHow"))];
    const act = async () => {
      await post(`${address}/delete`);
      goHomeDeleted();
    };
    ask({ title: string("home.deleteTitle", { name: first.name }), content, label: string("home.delete"), act });
  }

  function removeFile(kept) {
    attempt(problem, async () => {
      await post(`${address}/remove`, { kept });
      await look();
      if (document.activeElement === document.body) buttons.querySelector("input").focus(); // its button is gone
    });
  }

  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", async (event) => {
    event.preventDefault();
    add((await transferred(event.dataTransfer)).files);
  });
  addEventListener("beforeunload", (event) => {
    if (upload.isBusy()) event.preventDefault();
  });

  const opened = new Map(); // the lists that somebody has opened, and how many rows of them are shown
  let shown = "";
  return {
    element,
    isBusy: upload.isBusy, // with files on their way
    update(text) {
      const { state, files, reading } = text;
      const now = JSON.stringify([state, files, reading]);
      if (now === shown) return;
      shown = now;

      const bad = files.filter((file) => file.problem !== null);
      const isSingle = files.length === 1; // what is wrong with it is the state
      const good = isSingle ? files : files.filter((file) => file.problem === null);
      const parts = [stateOf(text, remove), filesList(good, removeFile, opened)];
      if (state === "ready") parts.push(whatWasRead(reading));
      if (state === "ready" || state === "refused") {
        const names = bad.map((file) => file.kept);
        const inFiles = reading.left_out.filter(({ name }) => !names.includes(name));
        const rows = leftOutRows(isSingle ? [] : bad, inFiles, removeFile);
        parts.push(leftOut(rows, reading.more_left_out, opened), notes(reading, opened));
      }
      fill(found, ...parts.flat());
    },
  };
}

/** The line that says how far it is, or what is wrong. */
function stateOf(text, remove) {
  if (text.state === "unread" || text.state === "reading") {
    const share = text.reading?.share ?? null;
    const first = text.files.length === 1 ? text.files[0].name : string("home.files", { n: text.files.length });
    const name = text.reading?.at ?? first;
    const words = share === null ? "text.readingBegins" : "text.reading";
    return [
      h("p", {}, string(words, { name, share: percent(share ?? 0) })),
      h("div", { className: "row" }, [
        h("progress", { max: 1, "aria-label": string("text.readingBar"), ...(share === null ? {} : { value: share }) }),
        button(string("text.cancel"), remove, { "data-key": "cancel" }),
      ]),
    ];
  }
  if (text.state === "refused") {
    const values = { name: text.reading.problem.name ?? text.files[0].name, n: number(text.reading.characters ?? 0) };
    return [h("p", { className: "bad refused" }, problemOf(text.reading.problem, values))];
  }
  if (text.state === "empty") return [h("p", {}, string("text.empty"))];
  return [h("p", { className: "facts" }, factsOf(text.reading).join(", "))];
}

/** "312 kB, 24 separate texts, 2 speakers". */
function factsOf(reading) {
  const facts = [bytesOf(reading.size)];
  if (reading.documents > 1) {
    const words = reading.is_dialogue ? "text.conversations" : "text.separate";
    facts.push(string(words, { n: number(reading.documents) }));
  }
  const speakers = reading.speakers.length;
  if (speakers > 0) facts.push(speakers === 1 ? string("text.oneSpeaker") : string("text.speakers", { n: speakers }));
  return facts;
}

/** The files that were read, each with a button that removes it. */
function filesList(files, remove, opened) {
  const rows = files.map((file) => {
    const name = h("span", { className: "name" }, file.name);
    return h("li", {}, name, removeButton(file, remove)); // its size would not be that of its text
  });
  if (rows.length <= MOST_FILES) return h("ul", { className: "files" }, rows);
  return folded(rows, "files", string("home.files", { n: number(rows.length) }), opened);
}

function removeButton({ name, kept }, remove) {
  const properties = { "aria-label": string("text.removeName", { name }), "data-key": `remove ${kept}` };
  return button(string("text.remove"), () => remove(kept), properties);
}

/** How the text begins, and who speaks in it. */
function whatWasRead(reading) {
  const found = [];
  if (reading.speakers.length > 0) found.push(h("p", {}, string("text.who", { names: reading.speakers.join(", ") })));
  const lines = reading.lines.map((line) => h("p", { dir: "auto" }, line));
  const properties = { className: "lines", tabIndex: 0, role: "region", "aria-label": string("text.seen") };
  found.push(h("h2", {}, string("text.seen")), h("div", { ...properties, lang: "" }, lines));
  return found;
}

/** What was left out, and why: whole files, and parts of those that were read. */
function leftOutRows(files, parts, remove) {
  const rows = files.map((file) => h("li", {}, problemSpan(file.problem, file.name), removeButton(file, remove)));
  rows.push(...parts.map((part) => h("li", {}, problemSpan(part, part.name))));
  return rows;
}

/** These rows, and how many more files in archives were left out, of which nothing else is known. */
function leftOut(rows, more, opened) {
  if (rows.length === 0) return [];
  const list = shortened(rows, "leftOut", opened);
  const others = more > 0 ? h("p", { className: "quiet" }, string("text.othersLeftOut", { n: number(more) })) : null;
  return [h("h2", {}, string("text.leftOut")), list, others];
}

function problemSpan(problem, name) {
  return h("span", { className: "name" }, problemOf(problem, { name }));
}

/** What else there is to know of the files. */
function notes(reading, opened) {
  const rows = reading.notes.map(({ name, message }) => h("li", {}, string("text.note", { name, message })));
  if (rows.length === 0) return [];
  return [h("h2", {}, string("text.notes")), shortened(rows, "notes", opened)];
}

/** A list of the first rows, with a button that adds more of them. */
function shortened(rows, name, opened) {
  const list = h("ul", { className: "files", tabIndex: -1 });
  const more = button("", () => keepingFocus(showMore, list), { "data-key": name });
  const atFirst = rows.length <= MOST_SHOWN + 1 ? rows.length : MOST_SHOWN;

  function show(count) {
    opened.set(name, count);
    list.append(...rows.slice(list.children.length, count));
    const left = rows.length - list.children.length;
    more.hidden = left === 0;
    more.textContent = string("text.more", { n: number(left) });
  }

  function showMore() {
    show(list.children.length + PAGE);
  }

  show(Math.max(atFirst, opened.get(name) ?? 0));
  return h("div", {}, list, more);
}

/** A list behind a summary, which stays open once somebody has opened it. */
function folded(rows, name, words, opened) {
  const summary = h("summary", { "data-key": name }, words);
  const details = h("details", { open: opened.has(name) }, summary, h("ul", { className: "files" }, rows));
  details.addEventListener("toggle", () => (details.open ? opened.set(name, rows.length) : opened.delete(name)));
  return details;
}
