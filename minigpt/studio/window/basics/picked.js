// The files that somebody has chosen, dropped or pasted, each with the name that is shown: {name, file}. A folder's
// files have its name before theirs.

/** The files of an input; what is hidden in a folder is left out. */
export function filesOf(list) {
  const files = [...list].map((file) => ({ name: file.webkitRelativePath || file.name, file }));
  return files.filter(({ name }) => !isHidden(name));
}

/** The files and the text of a drop or a paste: {files, text}. Folders are opened. */
export async function transferred(transfer) {
  const text = transfer.getData("text/plain");
  const plain = filesOf(transfer.files);
  // What is in a transfer can be asked for only until the first wait.
  const entries = [...transfer.items]
    .map((item) => item.webkitGetAsEntry?.() ?? null)
    .filter((entry) => entry !== null);
  if (!entries.some((entry) => entry.isDirectory)) return { files: plain, text };

  const found = [];
  for (const entry of entries) found.push(...(await filesIn(entry)));
  return { files: found.filter(({ name }) => !isHidden(name)), text };
}

/** A text that was typed or pasted, as a file that is called by its first words; `otherwise` if it has none. */
export function fileOf(text, otherwise) {
  const words = text.slice(0, 200).match(/[\p{L}\p{N}]+/gu) ?? [];
  const name = words.slice(0, 4).join(" ").slice(0, 40) || otherwise;
  return { name: `${name}.txt`, file: new File([text], `${name}.txt`, { type: "text/plain" }) };
}

function isHidden(name) {
  return name.split("/").some((part) => part.startsWith("."));
}

async function filesIn(entry) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    return [{ name: entry.fullPath.slice(1), file }];
  }

  const reader = entry.createReader();
  const found = [];
  while (true) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject)); // at most 100
    if (some.length === 0) return found;
    for (const inside of some) found.push(...(await filesIn(inside)));
  }
}
