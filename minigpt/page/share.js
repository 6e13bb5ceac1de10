// What leaves the page: the text, a link with prompt and settings, and pictures of the views.

import { set } from "./settings.js";
import { shownText, state } from "./texts.js";

const KEPT = "minigpt-page"; // where a tab that is put to sleep keeps its text

/** Put a text into the clipboard, also where the browser does not give it to pages. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

/** A link that opens this page with this prompt and these settings. */
export function link(prompt) {
  const parts = new URLSearchParams({ prompt, ...state.settings });
  return `${location.href.split("#")[0]}#${parts}`;
}

/** Take the settings of the page's link; its prompt, or null. */
export function readLink() {
  const parts = new URLSearchParams(location.hash.slice(1));
  for (const name of Object.keys(state.settings)) if (parts.has(name)) set(name, Number(parts.get(name)));
  return parts.get("prompt");
}

/** Keep the text of a tab that may be put to sleep, or give back what was kept. */
export function keep() {
  try {
    sessionStorage.setItem(KEPT, JSON.stringify({ text: shownText(), settings: state.settings }));
  } catch {
    // a browser that keeps nothing for files
  }
}

export function kept() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT));
  } catch {
    return null;
  }
}

/** Save what an element shows as "svg" or "png". */
export async function savePicture(element, name, kind) {
  const svg = pictureOf(element);
  const source = new XMLSerializer().serializeToString(svg);
  let file = new Blob([source], { type: "image/svg+xml" });
  if (kind === "png") {
    const [width, height] = [svg.width.baseVal.value, svg.height.baseVal.value];
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source)}`;
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: 2 * width, height: 2 * height });
    canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
    file = await new Promise((resolve) => canvas.toBlob(resolve));
  }
  const anchor = Object.assign(document.createElement("a"), {
    href: URL.createObjectURL(file),
    download: `${name}.${kind}`,
  });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 1000);
}

/** An element with its style and its canvases, as it is drawn, in an SVG. */
function pictureOf(element) {
  const copied = element.cloneNode(true);
  const canvases = element.querySelectorAll("canvas");
  copied.querySelectorAll("canvas").forEach((canvas, i) => {
    const image = Object.assign(document.createElement("img"), { src: canvases[i].toDataURL(), alt: "" });
    canvas.replaceWith(image);
  });
  for (const control of copied.querySelectorAll(".what, .save")) control.remove();
  const style = document.createElement("style");
  style.textContent = document.querySelector("style").textContent;
  const body = document.createElement("div");
  body.className = "picture";
  body.append(style, copied);
  const { width, height } = element.getBoundingClientRect();
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [name, value] of Object.entries({
    width: width + 32,
    height: height + 32,
    "data-theme": document.documentElement.dataset.theme,
  })) {
    svg.setAttribute(name, value);
  }
  const foreign = document.createElementNS("http://www.w3.org/2000/svg", "foreignObject");
  for (const name of ["width", "height"]) foreign.setAttribute(name, "100%");
  foreign.append(body);
  svg.append(foreign);
  return svg;
}
