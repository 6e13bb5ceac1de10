// Files that somebody has chosen, dropped or pasted, on their way into a text: one request for each. The home screen and
// that of a text have one upload each.

import { button, h } from "../../../web/dom.js";
import { string } from "../../../web/strings.js";
import { number } from "../../../web/units.js";
import { get, post, Refusal, send } from "./api.js";
import { keepingFocus } from "./controls.js";
import { sentenceOf, speak } from "./told.js";
import { percent } from "./words.js";

const MOST_NAMED = 8; // files of those that failed

/**
 * A place where an upload is shown: {element, begin(files, text), bringOne(file), say(words), isBusy()}. A file is
 * {name, file}, with the name that is shown; that of a folder is before the names of its files. `file` is null if it
 * cannot be opened.
 *
 * `begin` brings files into a text, a new one if `text` is null, and calls `arrived` with its id. The files that did not
 * come are named first, with the reasons, until somebody goes on. `bringOne` brings a file into a new text, and throws
 * a Refusal if it does not come.
 */
export function makeUpload(arrived) {
  let ending = null; // of the upload that goes on
  const words = h("p", { className: "words" });
  const bar = h("progress", { max: 1, "aria-label": string("upload.bar") });
  const cancel = button(string("upload.cancel"), () => ending?.abort());
  const progress = h(
    "div",
    { className: "progress", hidden: true },
    words,
    h("div", { className: "row" }, bar, cancel),
  );
  const problem = h("div", { role: "alert" });
  const element = h("div", { className: "upload" }, progress, problem);

  function say(sentence) {
    problem.replaceChildren(sentence === "" ? "" : h("p", { className: "bad" }, sentence));
  }

  function show({ name, number, share }, count) {
    const values = { name, share: percent(share), number, count };
    words.textContent = string(count === 1 ? "upload.one" : "upload.several", values);
    bar.value = share;
  }

  async function begin(files, text) {
    try {
      const found = await bring(files, text);
      if (found.failed.length > 0) name(found.failed, found.id);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      say(sentenceOf(error));
    }
  }

  async function bringOne(file) {
    const { failed } = await bring([file], null);
    if (failed.length > 0) throw failed[0].why;
  }

  /** The result of `uploaded`; where all has come, `arrived` is called. */
  async function bring(files, text) {
    if (ending !== null) throw new Refusal(409, { message: string("upload.busy") });
    say("");
    if (files.length === 0) throw new Refusal(400, { message: string("upload.nothing") });

    ending = new AbortController();
    progress.hidden = false;
    speak(string("upload.begins"));
    let found;
    try {
      found = await uploaded(files, text, (told) => show(told, files.length), ending.signal);
    } catch (error) {
      if (error instanceof Refusal || !ending.signal.aborted) throw error;
      speak(string("upload.cancelled"));
      return { id: null, failed: [] };
    } finally {
      ending = null;
      keepingFocus(() => {
        progress.hidden = true;
      });
    }

    // Only now, since `arrived` may leave the screen, which asks first while an upload goes on.
    if (found.failed.length === 0) arrived(found.id);
    return found;
  }

  /** Say which files did not come, and why. */
  function name(failed, id) {
    problem.replaceChildren(...sentencesOf(failed).map((sentence) => h("p", { className: "bad" }, sentence)));
    if (id !== null) problem.append(button(string("upload.goOn"), goOn, { className: "main" }));

    function goOn() {
      say("");
      arrived(id);
    }
  }

  return { element, begin, bringOne, say, cancel: () => ending?.abort(), isBusy: () => ending !== null };
}

/**
 * Bring files into a text, a new one if `text` is null, and have it read.
 *
 * `told` is called with the name of the file that is on its way, its number, and the share of all bytes that have
 * arrived. A file that fails leaves the others as they are; when there is no place for any other, the rest is not sent.
 * If `signal` ends it, a new text is deleted, and from another one those files are removed that had come. The result is
 * the text's id, null if nothing came of a new one, and what failed: the name and why, a Refusal.
 */
async function uploaded(files, text, told, signal) {
  const id = text ?? (await post("/api/texts")).id;
  const address = `/api/texts/${id}`;
  const all = Math.max(1, sum(files.map(({ file }) => file?.size ?? 0)));
  const kept = [];
  const failed = [];
  let before = 0; // bytes of the files that are done
  let full = null; // why no other file has a place
  try {
    for (const [i, { name, file }] of files.entries()) {
      signal.throwIfAborted();
      if (file === null || full !== null) {
        failed.push({ name, why: file === null ? new Refusal(0) : full });
        continue;
      }

      const tell = (bytes) => told({ name, number: i + 1, share: Math.min(1, (before + bytes) / all) });
      tell(0);
      try {
        const query = new URLSearchParams({ name });
        const answer = await send(`${address}/files?${query}`, file, tell, signal);
        kept.push(answer.kept);
      } catch (why) {
        if (!(await isOfFile(why, address))) throw why;
        failed.push({ name, why });
        if (why.status === 507 || why.kind === "many_files") full = why;
      }
      before += file.size;
    }
    const isNothing = text === null && kept.length === 0;
    await post(isNothing ? `${address}/delete` : `${address}/read`);
    return { id: isNothing ? null : id, failed };
  } catch (error) {
    // Where the studio is not heard, or this page is about to close, what came stays.
    const isRefused = error instanceof Refusal && error.status !== 0;
    if (signal.aborted || isRefused) await undo(address, text === null, kept);
    throw error;
  }
}

/** Whether something is wrong with this file alone: it was refused, or cannot be opened while the studio is there. */
async function isOfFile(why, address) {
  if (!(why instanceof Refusal) || why.status === 401 || why.status === 404) return false;
  if (why.status !== 0) return true;
  try {
    await get(address);
    return true;
  } catch {
    return false;
  }
}

/** Leave nothing of what came. If the studio is gone, whole files stay. */
async function undo(address, isNew, kept) {
  try {
    if (isNew) {
      await post(`${address}/delete`);
      return;
    }
    for (const file of kept) await post(`${address}/remove`, { kept: file });
    await post(`${address}/read`);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
  }
}

/** Why files did not come, each reason once with the names of its files. */
function sentencesOf(failed) {
  const names = new Map();
  for (const { name, why } of failed) {
    const reason = why.status === 0 ? "" : sentenceOf(why);
    names.set(reason, [...(names.get(reason) ?? []), name]);
  }
  return [...names].map(([reason, those]) => {
    const values = { reason, names: listed(those) };
    return string(reason === "" ? "upload.notOpened" : "upload.refused", values);
  });
}

function listed(names) {
  const first = names.slice(0, MOST_NAMED).join(", ");
  if (names.length <= MOST_NAMED) return first;
  return string("upload.others", { names: first, n: number(names.length - MOST_NAMED) });
}

function sum(numbers) {
  return numbers.reduce((all, one) => all + one, 0);
}

// What somebody has chosen

/** The files of an input; what is hidden in a folder is left out. */
export function filesOf(list) {
  const files = [...list].map((file) => ({ name: file.webkitRelativePath || file.name, file }));
  return files.filter(({ name }) => !isHidden(name));
}

/** The files and the text of a drop or a paste: {files, text}. Folders are opened. */
export async function transferred(transfer) {
  const text = transfer.getData("text/plain");
  const plain = filesOf(transfer.files);
  // What is in a transfer can be asked for only until the first wait.
  const entries = [...transfer.items]
    .map((item) => item.webkitGetAsEntry?.() ?? null)
    .filter((entry) => entry !== null);
  if (!entries.some((entry) => entry.isDirectory)) return { files: plain, text };

  const found = [];
  for (const entry of entries) found.push(...(await filesIn(entry)));
  return { files: found.filter(({ name }) => !isHidden(name)), text };
}

/** A text that was typed or pasted, as a file that is called by its first words; `otherwise` if it has none. */
export function fileOf(text, otherwise) {
  const words = text.slice(0, 200).match(/[\p{L}\p{N}]+/gu) ?? [];
  const name = words.slice(0, 4).join(" ").slice(0, 40) || otherwise;
  return { name: `${name}.txt`, file: new File([text], `${name}.txt`, { type: "text/plain" }) };
}

function isHidden(name) {
  return name.split("/").some((part) => part.startsWith("."));
}

/** The files of what was dropped. A file or a folder that cannot be opened is named, and spoils no other. */
async function filesIn(entry) {
  const name = entry.fullPath.slice(1);
  const found = [];
  try {
    if (entry.isFile) {
      const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
      return [{ name, file }];
    }

    const reader = entry.createReader();
    while (true) {
      const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject)); // at most 100
      if (some.length === 0) return found;
      for (const inside of some) found.push(...(await filesIn(inside)));
    }
  } catch (error) {
    if (!(error instanceof DOMException)) throw error;
    return [...found, { name, file: null }];
  }
}
