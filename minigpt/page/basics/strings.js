// Every sentence and label of the page, by the file that shows it. A translation is this one file.
// {name} stands for something that is filled in: a token, a number, an element.

export const STRINGS = {
  header: { dark: "Dark", light: "Light" },
  panel: {
    first: "How does a text begin?",
    next: "What next?",
    nextAfter: "What comes after {token}?",
    png: "Save PNG",
    question: "The question",
    svg: "Save SVG",
    views: "Views",
    why: "Why this word?",
    whyToken: "Why {token}?",
  },
  /** Titles of the views. */
  views: {
    why: "Why this word?",
    draw: "The draw",
    attention: "Attention",
    numbers: "By numbers",
    feedForward: "Feed-forward",
    vectors: "Vectors",
    layers: "Layer by layer",
    heads: "Heads off",
    learned: "How it learned",
    sources: "Training text",
    branches: "Versions",
  },
};

/** The string with this name, such as "views.why". */
export function string(name) {
  const [group, key] = name.split(".");
  const found = STRINGS[group]?.[key];
  if (found === undefined) throw new Error(`no string is named ${name}`);
  return found;
}

/** The string with this name as nodes, each {value} filled in; to be appended to an element. */
export function say(name, values = {}) {
  const parts = string(name).split(/\{(\w+)\}/); // words, name, words, name, ...
  return parts.map((part, i) => (i % 2 === 0 ? part : values[part])).filter((part) => part !== "");
}
