// The login: a token in the address opens it, and its key is kept for all tabs of this studio. The cookie that belongs
// to it is the browser's.

import { post } from "./api.js";

export const ENTER = "/api/enter";
const KEY = "minigpt-studio-key";

/** The key that requests carry; old tabs take the one of a new window. */
export function key() {
  return localStorage.getItem(KEY) ?? "";
}

/** Forget a key that is good no more, unless another window has a new one already. */
export function forgetKey(refused) {
  if (key() === refused) localStorage.removeItem(KEY);
}

/** Log in with the token behind #, which is then erased from the address. False if this window may not come in. */
export async function enter() {
  const token = location.hash.slice(1);
  if (token !== "") {
    history.replaceState(null, "", location.pathname + location.search);
    try {
      const answer = await post(ENTER, { token });
      localStorage.setItem(KEY, answer.key);
    } catch (error) {
      if (error.status !== 401) throw error;
    }
  }
  return key() !== "";
}
