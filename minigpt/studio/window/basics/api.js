// Requests to the studio. Each carries the key of the login; an answer that is an error is thrown as a Refusal. The login
// is opened by a token in the address, and its key is kept for all tabs of this studio. The cookie that belongs to it is
// the browser's.

const ENTER = "/api/enter";
const HEADER = "x-studio-key"; // of each request: the key
const KEPT = "minigpt-studio-key"; // where the key is kept

/** What the studio answers instead: its status (0 if nothing answers), a sentence, the field that was wrong, and the
 * kind and values of the sentence, if the window has it in its own words. */
export class Refusal extends Error {
  constructor(status, told) {
    super(told?.message ?? "");
    this.status = status;
    this.field = told?.field ?? null;
    this.kind = told?.kind ?? null;
    this.values = told?.values ?? {};
  }
}

export async function get(path, signal = null) {
  return await answerOf(await ask(path, { headers: headers(), signal }));
}

export async function post(path, body = {}) {
  return await answerOf(await ask(path, { ...asJson(body), method: "POST" }));
}

/** The answer's parts of text, as they come; `signal` ends it. */
export async function* stream(path, body, signal) {
  const request = body === null ? { headers: headers() } : { ...asJson(body), method: "POST" };
  const answer = await ask(path, { ...request, signal });
  if (!answer.ok) await answerOf(answer);

  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    while (true) {
      const { done, value } = await answered(reader.read());
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => null); // whoever reads no further keeps no connection open
  }
}

/** Send a file as it is; `told` is called with the bytes that have arrived, and `signal` ends it. */
export function send(path, file, told, signal) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest(); // fetch does not tell how far it is
    request.open("POST", path);
    request.setRequestHeader("content-type", "application/octet-stream");
    request.setRequestHeader(HEADER, key());
    request.upload.addEventListener("progress", (event) => told(event.loaded));
    request.addEventListener("error", () => reject(new Refusal(0)));
    request.addEventListener("load", () => {
      const answer = parsed(request.responseText);
      if (request.status < 400) resolve(answer);
      else reject(new Refusal(request.status, answer));
    });
    request.addEventListener("abort", () => reject(signal.reason));
    signal.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}

function headers() {
  return { [HEADER]: key() };
}

function asJson(body) {
  return { body: JSON.stringify(body), headers: { "content-type": "application/json", ...headers() } };
}

async function ask(path, options) {
  const answer = await answered(fetch(path, { credentials: "same-origin", ...options }));
  if (answer.status === 401 && path !== ENTER) forgetKey(options.headers[HEADER]);
  return answer;
}

/** What was waited for; a Refusal if nobody listens, or not any more. */
async function answered(waiting) {
  try {
    return await waiting;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, error);
  }
}

async function answerOf(answer) {
  const found = parsed(await answered(answer.text()));
  if (!answer.ok) throw new Refusal(answer.status, found);
  return found;
}

function parsed(text) {
  try {
    return text === "" ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

// The login

/** The key that requests carry; old tabs take the one of a new window. */
export function key() {
  return localStorage.getItem(KEPT) ?? "";
}

/** Forget a key that is good no more, unless another window has a new one already. */
function forgetKey(refused) {
  if (key() === refused) localStorage.removeItem(KEPT);
}

/** Log in with the token behind #, which is then erased from the address. False if this window may not come in. */
export async function enter() {
  const token = location.hash.slice(1);
  if (token !== "") {
    history.replaceState(null, "", location.pathname + location.search);
    try {
      const answer = await post(ENTER, { token });
      localStorage.setItem(KEPT, answer.key);
    } catch (error) {
      if (error.status !== 401) throw error;
    }
  }
  return key() !== "";
}
