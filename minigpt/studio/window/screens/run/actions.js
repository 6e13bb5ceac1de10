// What can be done with a run that has learned: learn more, save it, take it along, use it, delete it.

import { button, copied, h } from "../../../../web/dom.js";
import { string } from "../../../../web/strings.js";
import { bytesOf } from "../../../../web/units.js";
import { get, post, Refusal } from "../../basics/api.js";
import { isBusy, setBusy } from "../../basics/controls.js";
import { goHomeDeleted, sentenceOf, speak } from "../../basics/told.js";
import { percent } from "../../basics/words.js";
import { makeNonsense } from "./writes.js";

const MORE = 5; // minutes
const KINDS = ["hf", "gguf", "run"]; // ways to take it elsewhere: what the exports are called, and the folder itself

/** The card of buttons; `seeItThink()` and `showChildhood()` are those that other parts of the screen answer. */
export function makeActions(record, { seeItThink, showChildhood }) {
  const status = h("p", { className: "quiet", role: "status" });
  const problem = h("p", { className: "bad", role: "alert" });
  const path = (what) => `/api/runs/${encodeURIComponent(record.run.name)}/${what}`;

  /** Do something that takes a while; what goes wrong is said. */
  async function working(pressed, words, doing) {
    if (isBusy(pressed)) return;
    setBusy(pressed, true);
    problem.textContent = "";
    status.textContent = words;
    try {
      await doing();
      status.textContent = "";
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      status.textContent = "";
      problem.textContent = sentenceOf(error);
    } finally {
      setBusy(pressed, false);
    }
  }

  /** A button whose file the browser saves. */
  function saving(label, what, body) {
    const made = button(label, () =>
      working(made, string("done.makingFile"), async () => {
        const { address } = await post(path(what), body);
        h("a", { href: address, download: "" }).click();
      }),
    );
    return made;
  }

  const think = button(string("done.think"), seeItThink, { id: "see-it-think", className: "think" });
  const more = button(string("done.more", { minutes: MORE }), () =>
    working(more, "", () => post(path("go-on"), { minutes: MORE })),
  );
  const file = saving(string("done.file"), "page", {});
  const fileHow = h("p", { className: "quiet" }, string("done.fileHow"));
  const elsewhere = opening("done.elsewhere", elsewherePart(saving));
  const inPrograms = h("div", { className: "part" });
  const programs = opening("done.programs", inPrograms, () => inPrograms.replaceChildren(...programsPart(record)));
  const childhood = button(string("done.childhood"), showChildhood);
  const copied = copiedPart(record, working, path);
  const removal = removalPart(working, path);
  const nonsense = makeNonsense();
  const element = h(
    "section",
    { className: "actions card", "aria-label": string("done.actions"), tabIndex: -1 },
    think,
    more,
    file,
    fileHow,
    ...elsewhere,
    ...programs,
    childhood,
    copied.element,
    ...removal,
    status,
    problem,
    nonsense,
  );

  function draw(showsChildhood) {
    const { run } = record;
    childhood.setAttribute("aria-expanded", String(showsChildhood));
    think.classList.toggle("main", run.state === "done"); // else "Go on" is
    childhood.hidden = run.state !== "done"; // else it is on the screen
    nonsense.hidden = run.state !== "done"; // the same
    more.hidden = run.state !== "done" || !run.has_checkpoint; // one that is not done has "Go on" in the head
    copied.draw();
  }

  return { element, draw };
}

/** A button that opens and closes what is below it. */
function opening(label, part, opened = () => {}) {
  part.hidden = true;
  const made = button(string(label), () => {
    part.hidden = !part.hidden;
    made.setAttribute("aria-expanded", String(!part.hidden));
    if (!part.hidden) opened();
  });
  made.setAttribute("aria-expanded", "false");
  return [made, part];
}

function elsewherePart(saving) {
  const items = KINDS.map((kind) => {
    const what = kind === "run" ? "download" : "export";
    return h("li", {}, saving(string(`done.${kind}`), what, { kind }), h("p", {}, string(`done.${kind}How`)));
  });
  return h("ul", { className: "part" }, items);
}

/** The command that serves the run, and a request to it. */
function programsPart(record) {
  const { name } = record.run;
  const command = `minigpt serve ${quoted(`runs/${name}`)}`;
  const body = JSON.stringify({ model: name, prompt: record.samples[0]?.beginning ?? "Once", max_tokens: 60 });
  const request = `curl http://127.0.0.1:8000/v1/completions -H "content-type: application/json" -d ${quoted(body)}`;
  const where = record.folder === null ? string("done.serveHere") : string("done.serve", { folder: record.folder });
  return [h("p", {}, where), copiable(command), h("p", {}, string("done.request")), copiable(request)];
}

/** A word of a command line, in quotes where it needs them. Only a doubled quote means one in both shells of Windows. */
function quoted(word) {
  if (/^[\w./-]+$/.test(word)) return word;
  if (navigator.userAgent.includes("Windows")) return `"${word.replaceAll('"', '""')}"`;
  return `'${word.replaceAll("'", "'\\''")}'`;
}

function copiable(text) {
  const made = button(string("done.copy"), async () => {
    made.textContent = string((await copied(text)) ? "done.isCopied" : "done.notCopied");
    speak(made.textContent);
  });
  return h("div", { className: "command" }, h("pre", { className: "details", tabIndex: 0 }, text), made);
}

/** How much it copied: found out when somebody asks. */
function copiedPart(record, working, path) {
  const words = h("p", { role: "status" });
  const how = h("p", { className: "quiet", hidden: true }, string("done.copiedHow"));
  const ask = button(string("done.askCopied"), () =>
    working(ask, string("done.askingCopied"), async () => {
      await post(path("copied"));
      const { run } = await get(`/api/runs/${encodeURIComponent(record.run.name)}`);
      record.setRun(run);
      draw();
    }),
  );
  const element = h("div", { className: "copied" }, words, how, ask);

  function draw() {
    const { copied } = record.run;
    ask.textContent = string(copied === null ? "done.askCopied" : "done.copiedAgain");
    words.hidden = copied === null;
    how.hidden = copied === null;
    if (copied === null) return;
    const values = { share: percent(copied.share, 1), unseen: percent(copied.unseen, 1) };
    words.textContent = string("done.copied", values);
  }

  return { element, draw };
}

/** Delete all that came from the text: says what it removes, and asks. What was not named stays. */
function removalPart(working, path) {
  const how = h("p", { role: "status" });
  const parts = h("ul", {});
  const sure = button(string("done.deleteSure"), () => working(sure, string("done.deleting"), remove));
  const stays = h("p", {}, string("done.deleteStays"));
  const part = h("div", { className: "part" }, how, parts, stays, sure);
  let named = null; // the kind and name of each part

  async function remove() {
    const found = await post(path("delete-all"), { named });
    if (found.removed) goHomeDeleted();
    else show(found, "done.deleteMore");
  }

  function show(found, words) {
    named = found.parts.map(({ kind, name }) => [kind, name]);
    how.textContent = string(words);
    parts.replaceChildren(...found.parts.map((one) => h("li", {}, partOf(one))));
    part.scrollIntoView({ block: "nearest" });
  }

  const [made] = opening("done.delete", part, () =>
    working(sure, "", async () => show(await post(path("delete-all")), "done.deleteHow")),
  );
  made.classList.add("bad");
  return [made, part];
}

/** "The text diary.txt, 312 kB". */
function partOf({ kind, name, size }) {
  return string(`done.part_${kind}`, { name, size: bytesOf(size) });
}
