// Every sentence and label of the page, by the file that shows it. A translation is this one file.
// {name} stands for something that is filled in: a token, a number, an element.

export const STRINGS = {
  header: {
    about: "About this model",
    base: "This small language model, the base of minigpt, has read English books, articles and talk.",
    baseRead: "This small language model, the base of minigpt, has read {size} of English books, articles and talk.",
    began: "Its training began with {beginning}.",
    close: "Close",
    context: "It sees at most the last {count} tokens of a text when it guesses the next one.",
    dark: "Dark",
    guesses: "It guesses how a text goes on, one piece at a time.",
    head: "In each layer there is {count} head. A head looks back at earlier tokens.",
    heads: "In each layer there are {count} heads. A head looks back at earlier tokens.",
    layer: "It has {count} layer, in which every token is worked on.",
    layers: "It has {count} layers. A text passes through one after another.",
    light: "Light",
    other: "This is the language model {title}.",
    parameters: "It consists of {count} parameters: numbers that the training has set.",
    private: "It runs in your browser. Nothing that you type leaves this page.",
    read: "This small language model has read {text}{size}{time}.",
    sized: " ({size})",
    timed: " for {time}",
    vocabulary: "Its vocabulary has {count} tokens: the pieces, words or parts of words, that it reads and writes.",
  },
  opening: { hint: "Openings to try:" },
  panel: {
    close: "Close",
    first: "How does a text begin?",
    next: "What next?",
    nextAfter: "What comes after {token}?",
    open: "Open",
    png: "Save PNG",
    question: "The question",
    svg: "Save SVG",
    views: "Views",
    why: "Why this word?",
    whyToken: "Why {token}?",
  },
  units: {
    bytes: "{count} bytes",
    hour: "an hour",
    hours: "{count} hours",
    kilobytes: "{count} kB",
    megabytes: "{count} MB",
    minute: "a minute",
    minutes: "{count} minutes",
    second: "a second",
    seconds: "{count} seconds",
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
