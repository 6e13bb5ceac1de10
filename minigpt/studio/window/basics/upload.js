// Files on their way into a text, one after the other.

import { get, post, Refusal, send } from "./api.js";

/**
 * Bring files into a text, a new one if `text` is null, and have it read.
 *
 * `told` is called with the name of the file that is on its way, its number, and the share of all bytes that have
 * arrived. If `signal` ends it, or the studio does not take them, nothing of them stays. The result is the text's id,
 * and the names of the files that could not be opened on this computer.
 */
export async function upload(files, text, told, signal) {
  const names = files.map(({ name }) => name);
  const sizes = files.map(({ file }) => file.size);
  const { id, first } = await announce(text, { names, sizes });
  const folder = `/api/texts/${id}`;

  const all = Math.max(1, sum(sizes));
  const failed = [];
  try {
    for (const [i, { name, file }] of files.entries()) {
      const before = sum(sizes.slice(0, i));
      const tell = (bytes) => told({ name, number: i + 1, share: Math.min(1, (before + bytes) / all) });
      tell(0);
      try {
        await send(`${folder}/files/${first + i}`, file, tell, signal);
      } catch (error) {
        if (!(await isFilesFault(error, folder))) throw error;
        await post(`${folder}/files/${first + i}/remove`);
        failed.push(name);
      }
    }
    if (failed.length < files.length || text !== null) await post(`${folder}/read`);
    else await post(`${folder}/delete`);
  } catch (error) {
    await undo(folder, text === null, first, files.length);
    throw error;
  }
  return { id: failed.length < files.length ? id : text, failed };
}

async function announce(text, body) {
  if (text === null) {
    const { id } = await post("/api/texts", body);
    return { id, first: 0 };
  }
  const { first } = await post(`/api/texts/${text}/files`, body);
  return { id: text, first };
}

/** Whether a file could not be opened, while the studio is there. */
async function isFilesFault(error, folder) {
  if (!(error instanceof Refusal) || error.status !== 0) return false;
  try {
    await get(folder);
    return true;
  } catch {
    return false;
  }
}

/** Leave nothing of what was on its way. A studio that is gone forgets it by itself. */
async function undo(folder, isNew, first, count) {
  try {
    if (isNew) {
      await post(`${folder}/delete`);
      return;
    }
    for (let i = 0; i < count; i++) await post(`${folder}/files/${first + i}/remove`).catch(() => null);
    await post(`${folder}/read`);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
  }
}

function sum(numbers) {
  return numbers.reduce((all, one) => all + one, 0);
}
