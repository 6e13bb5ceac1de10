// Every sentence and label on the screen, by its name, such as "home.drop". They are in tables, files of JSON: one here
// for what page and window both say, and one of each. {name} stands for something that is filled in: a number, a name,
// an element.

const strings = {}; // by group and name

/** Take in a table. */
export function addStrings(table) {
  Object.assign(strings, table);
}

/** Whether there is a string with this name. */
export function hasString(name) {
  const [group, key] = name.split(".");
  return strings[group]?.[key] !== undefined;
}

/** The string with this name, each {value} filled in. */
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
