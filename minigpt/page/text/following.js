// The end of a text stays in sight while it grows, until somebody looks back.

const NEAR = 40; // pixels from the end at which what is shown follows what is written

/** Follow the end of what scrolls in `paper`, also when one of its contents or itself gets another size.
 * @returns {{follow: () => void, show: () => void}} what to do when the text has grown, and to come back to its end */
export function followingEnd(paper, content) {
  let follows = true;

  function follow() {
    if (follows) paper.scrollTop = paper.scrollHeight;
  }

  function show() {
    follows = true;
    follow();
  }

  const isNearEnd = () => paper.scrollTop + paper.clientHeight > paper.scrollHeight - NEAR;
  paper.addEventListener("scroll", () => (follows = isNearEnd()), { passive: true });
  for (const element of [paper, content]) new ResizeObserver(follow).observe(element);
  return { follow, show };
}
