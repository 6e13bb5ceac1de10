// The window of a pupil: asks for the code of the class and a name, waits for the teacher, and then shows the same
// screens as the teacher's own studio, with what is this pupil's.

import { get, post, Refusal } from "./basics/api.js";
import { button, byId, h } from "./basics/dom.js";
import { forgetKey, keepKey, key } from "./basics/login.js";
import { sentenceOf } from "./basics/refusals.js";
import { loadStrings, say, string } from "./basics/strings.js";
import { makeHeader } from "./header.js";
import { speak } from "./notice.js";
import { showScreen } from "./screens.js";

const EVERY = 2000; // milliseconds from one look at the door to the next

await loadStrings();
document.documentElement.dataset.role = "pupil";
makeHeader();
await begin();

async function begin() {
  const state = key() === "" ? "none" : await stateAtTheDoor();
  if (state === "admitted") {
    const isIn = await showScreen();
    if (!isIn) showJoin();
  } else if (state === "waiting") {
    showWaiting();
  } else {
    forgetKey(key());
    showJoin(state === "refused" ? string("class.refused") : "");
  }
}

async function stateAtTheDoor() {
  try {
    return (await get("/api/joined")).state;
  } catch (error) {
    if (error instanceof Refusal && error.status !== 0) return "none";
    throw error;
  }
}

function showJoin(words = "") {
  const code = h("input", { id: "code", autocomplete: "off", autocapitalize: "characters", spellcheck: false });
  const name = h("input", { id: "name", autocomplete: "off", maxLength: 40 });
  const problem = h("p", { className: "bad", role: "alert" }, words);

  async function join(event) {
    event.preventDefault();
    try {
      const answer = await post("/api/join", { code: code.value, name: name.value });
      keepKey(answer.key);
      showWaiting();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      problem.textContent = sentenceOf(error);
      if (error.field !== null) byId(error.field).focus();
    }
  }

  const form = h(
    "form",
    { className: "card join", onsubmit: join },
    h("label", { htmlFor: "code" }, string("class.code")),
    code,
    h("label", { htmlFor: "name" }, string("class.yourName")),
    name,
    problem,
    h("p", {}, ...say("class.warning")),
    button(string("class.join"), null, { type: "submit", className: "main" }),
  );
  byId("main").replaceChildren(h("h1", {}, string("class.joinTitle")), form);
  code.focus();
}

/** Wait for the teacher, and look every two seconds. */
function showWaiting() {
  byId("main").replaceChildren(h("h1", {}, string("class.waiting")), h("p", {}, ...say("class.waitingHow")));
  speak(string("class.waiting"));
  const timer = setInterval(async () => {
    const state = await stateAtTheDoor();
    if (state === "waiting") return;
    clearInterval(timer);
    await begin();
  }, EVERY);
}
