// A picture of a part of the page: an SVG of rectangles, words, lines and images that any viewer opens.

import { h, shape } from "../../web/dom.js";

const MARGIN = 16;
const LEFT_OUT = ".computing, .row, .unseen, [role=gridcell]";
const LINES = "path, line, polyline, polygon, circle, ellipse, rect, text"; // what is kept of an SVG of the page
const SIDES = { Top: [0, 0, 1, 0], Right: [1, 0, 0, 1], Bottom: [0, 1, 1, 0], Left: [0, 0, 0, 1] };
const COPIED = [
  "stroke-width",
  "stroke-linecap",
  "stroke-dasharray",
  "opacity",
  "font-family",
  "font-size",
  "text-anchor",
];
const measure = document.createElement("canvas").getContext("2d");

/** An element as it is drawn, and all of it where it scrolls; without its controls. */
function pictureOf(element) {
  const svg = shape("svg");
  let left = Infinity;
  let top = Infinity;
  let right = -Infinity;
  let bottom = -Infinity;

  /** The picture reaches at least from (x, y) to (endX, endY). */
  function include(x, y, endX, endY) {
    left = Math.min(left, x);
    top = Math.min(top, y);
    right = Math.max(right, endX);
    bottom = Math.max(bottom, endY);
  }

  /** Add a shape that takes this place on the screen. */
  function add(name, x, y, width, height, attributes, ...content) {
    if (width <= 0 || height <= 0) return;

    include(x, y, x + width, y + height);
    const place = name === "text" ? { x, textLength: width } : { x, y, width, height };
    for (const key in place) place[key] = round(place[key]);
    svg.append(shape(name, { ...place, ...attributes }, ...content));
  }

  function rect(x, y, width, height, paint) {
    if (paint) add("rect", x, y, width, height, paint);
  }

  function box({ x, y, width, height }, style) {
    const rx = Number.parseFloat(style.borderTopLeftRadius);
    const background = colour("fill", style.backgroundColor);
    rect(x, y, width, height, background && { ...background, rx });

    const outline = style.outlineStyle !== "none" && colour("stroke", style.outlineColor);
    rect(x, y, width, height, outline && { ...outline, "stroke-width": style.outlineWidth, fill: "none", rx });

    const frame = Number.parseFloat(style.borderWidth);
    if (frame && !style.borderWidth.includes(" ")) {
      const paint = { ...colour("stroke", style.borderTopColor), "stroke-width": frame, fill: "none", rx };
      return rect(x + frame / 2, y + frame / 2, width - frame, height - frame, paint);
    }

    for (const [side, [right, bottom, wide, high]] of Object.entries(SIDES)) {
      const thick = Number.parseFloat(style[`border${side}Width`]);
      const atX = x + right * (width - thick);
      const atY = y + bottom * (height - thick);
      rect(atX, atY, wide ? width : thick, high ? height : thick, colour("fill", style[`border${side}Color`]));
    }
  }

  function words(node) {
    const parent = node.parentElement;
    const style = getComputedStyle(parent);
    const { fontFamily, fontSize, fontWeight } = style;
    measure.font = `${fontWeight} ${fontSize} ${fontFamily}`;
    const { fontBoundingBoxAscent: ascent, fontBoundingBoxDescent: descent } = measure.measureText("x");

    const end = style.overflowX === "hidden" ? parent.getBoundingClientRect().right : Infinity;
    const font = { "font-family": fontFamily, "font-size": fontSize, "font-weight": fontWeight };
    const looks = { ...font, ...colour("fill", style.color), lengthAdjust: "spacingAndGlyphs" };
    if (style.textDecorationLine === "underline") looks["text-decoration"] = "underline";

    for (const { index, 0: word } of node.data.matchAll(/\S+/g)) {
      const isBroken = placesOf(node, index, index + word.length).length > 1;
      let at = index;
      for (const part of isBroken ? Array.from(word) : [word]) {
        const place = placesOf(node, at, at + part.length).at(-1);
        at += part.length;
        if (!place) continue;

        const { x, y, width, height } = place;
        const baseline = round(y + (height * ascent) / (ascent + descent));
        const drawable = part.replace(/\p{C}/gu, "\ufffd"); // XML has no control characters
        add("text", x, y, Math.min(width, end - x), height, { ...looks, y: baseline }, drawable);
      }
    }
  }

  /** A shape of an SVG that the page shows, as it is painted there. */
  function drawing(node) {
    const { left: x, top: y, right: endX, bottom: endY } = node.getBoundingClientRect();
    const style = getComputedStyle(node);
    if (style.display === "none" || (endX === x && endY === y)) return;

    const copy = node.cloneNode(true);
    for (const name of ["class", "style"]) copy.removeAttribute(name);
    for (const name of ["fill", "stroke"]) {
      const paint = style[name] === "none" ? null : colour(name, style[name]);
      copy.setAttribute(name, "none");
      for (const [key, value] of Object.entries(paint || {})) copy.setAttribute(key, value);
    }
    for (const name of COPIED) copy.setAttribute(name, style.getPropertyValue(name));

    const { a, b, c, d, e, f } = node.getScreenCTM();
    copy.setAttribute("transform", `matrix(${[a, b, c, d, e, f].map(round).join(" ")})`);
    svg.append(copy);
    include(x, y, endX, endY);
  }

  function visit(node) {
    if (node instanceof Text) return words(node);
    if (node instanceof SVGSVGElement) return node.querySelectorAll(LINES).forEach(drawing);
    if (!(node instanceof Element) || node.matches(LEFT_OUT)) return;

    if (node !== element) for (const place of node.getClientRects()) box(place, getComputedStyle(node));
    if (node instanceof HTMLCanvasElement) {
      const { x, y, width, height } = node.getBoundingClientRect();
      add("image", x, y, width, height, { href: enlarged(node) });
    }
    for (const child of node.childNodes) visit(child);
  }

  visit(element);
  const x = round(left - MARGIN);
  const y = round(top - MARGIN);
  const width = round(right - left + 2 * MARGIN);
  const height = round(bottom - top + 2 * MARGIN);
  const paper = colour("fill", getComputedStyle(document.documentElement).backgroundColor);
  svg.prepend(shape("rect", { x, y, width, height, ...paper }));
  for (const [key, value] of Object.entries({ width, height, viewBox: [x, y, width, height] })) {
    svg.setAttribute(key, value);
  }
  return svg;
}

/** Where the characters of a text node from one to before another are on the screen, line by line. */
function placesOf(node, from, to) {
  const range = document.createRange();
  range.setStart(node, from);
  range.setEnd(node, to);
  return [...range.getClientRects()];
}

/** A colour of the style as viewers know it, or null if nothing is to be seen. */
function colour(name, value) {
  const [r, g, b, alpha = 1] = value.match(/[\d.]+/g).map(Number);
  return alpha && { [name]: `rgb(${r},${g},${b})`, [`${name}-opacity`]: alpha };
}

/** What a canvas shows, each of its pixels as a square of several: viewers would blur it. */
function enlarged(canvas) {
  const times = Math.ceil(600 / canvas.width);
  const width = times * canvas.width;
  const height = times * canvas.height;
  const large = h("canvas", { width, height });
  const context = large.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(canvas, 0, 0, width, height);
  return large.toDataURL();
}

function round(x) {
  return Math.round(100 * x) / 100;
}

/** Save what an element shows as "svg" or "png". */
export async function savePicture(element, name, kind) {
  const svg = pictureOf(element);
  const source = new XMLSerializer().serializeToString(svg);
  let file = new Blob([source], { type: "image/svg+xml" });
  if (kind === "png") {
    const width = 2 * svg.width.baseVal.value; // for screens with small pixels
    const height = 2 * svg.height.baseVal.value;
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source)}`;
    await image.decode();

    const canvas = h("canvas", { width, height });
    canvas.getContext("2d").drawImage(image, 0, 0, width, height);
    file = await new Promise((resolve) => canvas.toBlob(resolve));
  }

  const anchor = h("a", { href: URL.createObjectURL(file), download: `${name}.${kind}` });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 1000);
}
