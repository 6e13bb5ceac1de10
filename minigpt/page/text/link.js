// What leaves the page: the text, a link with prompt and settings, and pictures of the views.

import { pictureOf } from "../basics/picture.js";
import { set } from "./settings.js";
import { state } from "./state.js";
import { shownText } from "./writing.js";

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

/** Keep the text of a tab that may be put to sleep, or give back what was kept at this address. */
export function keep() {
  const { settings } = state;
  try {
    sessionStorage.setItem(KEPT, JSON.stringify({ text: shownText(), settings, address: location.href }));
  } catch {
    // a browser that keeps nothing for files
  }
}

export function kept() {
  try {
    const saved = JSON.parse(sessionStorage.getItem(KEPT));
    return saved?.address === location.href ? saved : null;
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
