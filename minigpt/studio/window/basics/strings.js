// Every sentence and label of the window, from strings/en.json or another language's file, as the browser asks for it.
// {name} stands for something that is filled in: a number, a name, an element.

const LANGUAGES = ["en", "de"]; // each has a file
let strings = {};
export let language = "en";
export let locale = "en-US"; // the language as the browser names it, which says how dates and numbers are written

/** Load the strings of the first language that the browser prefers and that is here. */
export async function loadStrings() {
  locale = navigator.languages.find((tag) => LANGUAGES.includes(tag.slice(0, 2))) ?? locale;
  language = locale.slice(0, 2);
  const answer = await fetch(`/static/strings/${language}.json`);
  strings = await answer.json();
  document.documentElement.lang = language;
}

/** Whether there is a string with this name. */
export function hasString(name) {
  const [group, key] = name.split(".");
  return strings[group]?.[key] !== undefined;
}

/** The string with this name, such as "home.drop", each {value} filled in. */
export function string(name, values = {}) {
  return say(name, values).join("");
}

/** The same as nodes, to be appended to an element; the values can be nodes, too. */
export function say(name, values = {}) {
  const [group, key] = name.split(".");
  const found = strings[group]?.[key];
  if (found === undefined) throw new Error(`no string is named ${name}`);

  const parts = found.split(/\{(\w+)\}/); // words, name, words, name, ...
  return parts.map((part, i) => (i % 2 === 0 ? part : values[part])).filter((part) => part !== "");
}
