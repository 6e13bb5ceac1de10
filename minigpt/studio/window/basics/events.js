// What happens in the studio: server-sent events, read by fetch, which can send the key. The stream closes while the tab
// is hidden, and comes back by itself where it broke off. Where it does not come through, as behind a filter that holds
// it back, the studio is asked every two seconds instead.

import { get, stream } from "./api.js";

const SILENCE = 8; // seconds after which a stream does not come through: the studio says something every five
const EVERY = 2; // seconds from one question to the next
const SHORTEST = 30; // seconds in which it is asked, before the stream is tried again
const LONGEST = 480; // the same, after it has been tried in vain again and again
const LONGEST_WAIT = 30; // seconds between two tries while nobody answers

/**
 * Follow the studio, and one run of it if `run` is not empty.
 *
 * `told(event, data, cursor)` gets each event; `isHere(answers)` whether the studio answers. The result ends it.
 */
export function follow(run, cursor, told, isHere) {
  let after = cursor;
  let ending = new AbortController(); // of what goes on now

  async function read({ signal }) {
    let time = 0; // in which it is asked
    let wait = 1;
    while (!signal.aborted) {
      const { hasSpoken, hasEnded } = await listen(signal);
      if (signal.aborted) return;
      if (hasSpoken) wait = 1;
      if (hasEnded) {
        await seconds(wait);
        continue;
      }

      time = hasSpoken ? 0 : Math.min(Math.max(2 * time, SHORTEST), LONGEST);
      if (await ask(time, signal)) continue;
      await seconds(wait);
      wait = Math.min(2 * wait, LONGEST_WAIT);
    }
  }

  /** Tell the events of one stream: whether it has said anything, and whether the studio has ended it. */
  async function listen(signal) {
    const silent = new AbortController();
    const end = () => silent.abort();
    signal.addEventListener("abort", end);
    let timer = setTimeout(end, 1000 * SILENCE);
    let hasSpoken = false;
    try {
      const address = `/api/events?${new URLSearchParams({ run, after })}`;
      for await (const { event, data, id } of frames(stream(address, null, silent.signal))) {
        clearTimeout(timer);
        timer = setTimeout(end, 1000 * SILENCE);
        hasSpoken = true;
        isHere(true);
        if (id !== "") after = id;
        if (event !== "") told(event, data, after);
      }
      return { hasSpoken, hasEnded: true };
    } catch (error) {
      leaveIfLoggedOut(error);
      return { hasSpoken, hasEnded: false };
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
    }
  }

  /** Ask for what a stream would tell, once and then for some seconds. False if nobody answers. */
  async function ask(time, signal) {
    const end = Date.now() + 1000 * time;
    try {
      do {
        const state = await get("/api/state");
        const ofRun = run === "" ? null : await get(`${addressOf(run)}?${new URLSearchParams({ after })}`);
        if (signal.aborted) return true;
        isHere(true);
        told("state", state, after);
        if (ofRun?.cursor) after = ofRun.cursor; // one whose folder is gone has none
        for (const { event, data } of ofRun?.rows ?? []) told(event, data, after);
        await seconds(EVERY);
      } while (Date.now() < end && !signal.aborted);
      return true;
    } catch (error) {
      leaveIfLoggedOut(error);
      if (!signal.aborted) isHere(error.status !== 0);
      return false;
    }
  }

  /** Another studio listens there now; without its key the window says so. */
  function leaveIfLoggedOut(error) {
    if (error.status !== 401) return;
    ending.abort();
    location.reload();
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

function addressOf(run) {
  return `/api/runs/${encodeURIComponent(run)}`;
}

function seconds(n) {
  return new Promise((done) => setTimeout(done, 1000 * n));
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
