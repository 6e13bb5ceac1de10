// That something was deleted on one screen, which the next one says once.

const KEPT = "minigpt-studio-deleted"; // by the browser, in this window

/** Leave for the first screen, which says that something was deleted. */
export function goHomeDeleted() {
  sessionStorage.setItem(KEPT, "yes");
  location.assign("/");
}

/** Whether something was deleted just before. */
export function wasDeleted() {
  const was = sessionStorage.getItem(KEPT) !== null;
  sessionStorage.removeItem(KEPT);
  return was;
}
