// The run's page inside the studio: in a frame without the studio's rights. It is made when it is shown first.

import { button, byId, h } from "../../../../web/dom.js";
import { string } from "../../../../web/strings.js";
import { followTheme, themeNow } from "../../../../web/theme.js";
import { post, Refusal } from "../../basics/api.js";
import { sentenceOf } from "../../basics/told.js";

const RIGHTS = "allow-scripts allow-forms allow-downloads allow-popups allow-modals";
const WIDE = matchMedia("(min-width: 761px)"); // narrower ones open the page when somebody asks for it

/** The card of the page; `draw()` opens it where there is room. `skip()` leads past its dozens of controls. */
export function makeFrame(record, skip) {
  const words = h("p", { className: "quiet", role: "status" });
  const again = button(string("done.pageAgain"), open, { hidden: true });
  const place = h("div", { className: "page-place" });
  const close = button(string("done.closePage"), () => fullScreen(false), { className: "close-page" });
  const element = h(
    "section",
    { className: "page card", "aria-label": string("done.page") },
    button(string("done.skipPage"), skip, { className: "skip" }),
    words,
    again,
    place,
    close,
  );
  let learned; // the step of the model whose page is open or is being made; null if that is not known

  async function open() {
    const { name, step } = record.run;
    learned = step;
    again.hidden = true;
    place.replaceChildren();
    words.textContent = string("done.makingPage");
    try {
      const { address } = await post(`/api/runs/${encodeURIComponent(name)}/page`, { show: true });
      const frame = h("iframe", { title: string("done.pageOf", { name }) });
      frame.setAttribute("sandbox", RIGHTS);
      frame.addEventListener("load", () => {
        words.textContent = "";
        tellTheme();
      });
      frame.src = address;
      place.replaceChildren(frame);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      words.textContent = sentenceOf(error);
      again.hidden = false;
    }
  }

  /** The page has the theme of the window. Its frame has no origin that could be named. */
  function tellTheme() {
    place.firstChild?.contentWindow.postMessage({ theme: themeNow() }, "*");
  }

  /** The page over the whole window, or in its place again. */
  function fullScreen(isFull) {
    element.classList.toggle("full", isFull);
    for (const other of [byId("header"), ...element.parentElement.parentElement.children]) {
      if (!other.contains(element)) other.inert = isFull;
    }
    for (const other of element.parentElement.children) if (other !== element) other.inert = isFull;
    if (isFull) close.focus();
    else byId("see-it-think")?.focus();
  }

  function leaveFullScreen() {
    if (element.classList.contains("full")) fullScreen(false);
  }

  followTheme(tellTheme);
  element.addEventListener("keydown", (event) => {
    if (event.key === "Escape") leaveFullScreen();
  });

  return {
    element,

    draw() {
      if (WIDE.matches && learned !== record.run.step) open();
    },

    /** The page in its place again, before it is hidden: nothing else could be pressed. */
    leaveFullScreen,

    /** Open the page over the whole window. */
    seeItThink() {
      if (learned !== record.run.step) open();
      fullScreen(true);
    },
  };
}
