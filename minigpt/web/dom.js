// Elements: made, filled, reached with the keyboard. Every file that shows something uses these.

/** An element with properties, attributes ("aria-label"), listeners (onclick) and CSS variables ("--x"). */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("--")) element.style.setProperty(name, value);
    else if (name in element && !name.startsWith("aria")) element[name] = value;
    else if (value !== null && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null));
  return element;
}

/** The element of the page with this id. */
export function byId(id) {
  return document.getElementById(id);
}

/** An element of an SVG. */
export function shape(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Put new children in place of the old; what had the focus keeps it, known by its data-key. */
export function fill(element, ...children) {
  const active = element.contains(document.activeElement) ? document.activeElement : null;
  const key = active?.dataset?.key;
  element.replaceChildren(...children.flat().filter((child) => child !== null));
  if (key) element.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

export function button(label, onclick, properties = {}) {
  return h("button", { type: "button", onclick, ...properties }, label);
}

/** The focus moves with the arrow keys inside `element`; one child alone is in the tab order.
 * `step(key, index, items)` gives the index to go to, or undefined. */
export function roving(element, selector, step) {
  element.addEventListener("keydown", (event) => {
    const items = [...element.querySelectorAll(selector)];
    const at = items.indexOf(document.activeElement);
    const to = at < 0 ? undefined : step(event.key, at, items);
    if (to === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    items[Math.max(0, Math.min(items.length - 1, to))].focus();
  });
}

/** Where an arrow key leads in rows of `columns` items. */
export function inGrid(key, at, columns) {
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
  return key in steps ? at + steps[key] : undefined;
}

/** Turns of asking: only the answer to the last question counts. */
export function lastAsked() {
  let asked = 0;
  return () => {
    asked += 1;
    const mine = asked;
    return () => mine === asked;
  };
}

/** A table: the first cell of each row names it. `look(row, column)` gives a cell its properties; row -1 is the head. */
export function table(caption, heads, rows, look = () => ({})) {
  const head = heads.map((cell, column) => h("th", { scope: "col", ...look(-1, column) }, cell));
  const body = rows.map(([name, ...cells], row) => {
    const first = h("th", { scope: "row", ...look(row, 0) }, name);
    return h("tr", {}, first, ...cells.map((cell, i) => h("td", look(row, i + 1), cell)));
  });
  return h(
    "table",
    {},
    h("caption", {}, h("span", {}, caption)),
    h("thead", {}, h("tr", {}, head)),
    h("tbody", {}, body),
  );
}

/** A place for something wide, which the arrow keys can scroll. */
export function scrolling(label, ...children) {
  return h("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": label }, children);
}

/** Put a text into the clipboard, also where the browser does not give it to pages; false if it lets nothing in. */
export async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const active = document.activeElement;
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    active?.focus();
    return isCopied;
  }
}
