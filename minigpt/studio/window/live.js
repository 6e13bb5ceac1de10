// What every screen follows: the stream of events, from which the head of the window says what is learning, and the
// line below it whether the studio answers and the disk has room.

import { byId } from "../../web/dom.js";
import { string } from "../../web/strings.js";
import { timeOf } from "./basics/amounts.js";
import { follow } from "./basics/events.js";
import { showState } from "./header.js";
import { notice } from "./notice.js";

const LEAST_FREE = 500e6; // bytes: the studio takes no more files then

/** Follow the studio, and one run of it if `run` is not empty; as `follow` of basics/events.js. The result ends it. */
export function live(run, cursor, told) {
  let seen = Date.now() / 1000; // when it answered the last time
  let answers = true;
  let isFull = false;

  function show() {
    const words = isFull ? string("notice.full") : "";
    notice(answers ? words : string("notice.closed", { time: timeOf(seen) }));
    byId("main").classList.toggle("gone", !answers);
  }

  function hear(event, data, after) {
    if (event === "state") {
      showState(data);
      const wasFull = isFull;
      isFull = data.free !== null && data.free < LEAST_FREE;
      if (isFull !== wasFull) show();
    }
    told(event, data, after);
  }

  return follow(run, cursor, hear, (isHere) => {
    if (isHere) seen = Date.now() / 1000;
    if (isHere === answers) return;
    answers = isHere;
    show();
  });
}
