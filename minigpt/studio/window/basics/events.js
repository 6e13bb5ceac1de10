// The stream of events of the studio, as server-sent events read by fetch, which can send the key. It closes while the
// tab is hidden, and comes back by itself where it broke off.

import { stream } from "./api.js";

const LONGEST_WAIT = 30; // seconds between two tries

/**
 * Follow the studio, and one run of it if `run` is not empty.
 *
 * `told(event, data, cursor)` gets each event; `isHere(answers)` whether the studio answers. The result ends it.
 */
export function follow(run, cursor, told, isHere) {
  let after = cursor;
  let ending = new AbortController(); // of the one that reads now

  async function read({ signal }) {
    let wait = 1;
    while (!signal.aborted) {
      try {
        const address = `/api/events?${new URLSearchParams({ run, after })}`;
        for await (const { event, data, id } of frames(stream(address, null, signal))) {
          wait = 1;
          isHere(true);
          if (id !== "") after = id;
          if (event !== "") told(event, data, after);
        }
      } catch (error) {
        if (error.name === "AbortError") return;
        if (error.status === 401) {
          location.reload(); // another studio listens there now; without its key the window says so
          return;
        }
        isHere(error.status !== 0);
      }
      await new Promise((done) => setTimeout(done, 1000 * wait));
      wait = Math.min(2 * wait, LONGEST_WAIT);
    }
  }

  function look() {
    ending.abort();
    ending = new AbortController();
    if (!document.hidden) read(ending);
  }

  document.addEventListener("visibilitychange", look);
  look();
  return () => {
    document.removeEventListener("visibilitychange", look);
    ending.abort();
  };
}

/** The events in a stream of text: {event, data, id}; a comment has an empty event. */
async function* frames(parts) {
  let kept = "";
  for await (const part of parts) {
    kept += part;
    const whole = kept.split("\n\n");
    kept = whole.pop();
    for (const frame of whole) yield frameOf(frame);
  }
}

function frameOf(frame) {
  const found = { event: "", data: null, id: "" };
  for (const line of frame.split("\n")) {
    const [name, value] = cut(line, ": ");
    if (name === "event") found.event = value;
    if (name === "id") found.id = value;
    if (name === "data") found.data = JSON.parse(value);
  }
  return found;
}

function cut(line, sign) {
  const at = line.indexOf(sign);
  return at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + sign.length)];
}
