// The page of `minigpt compare`: says in words how likely each of the two found the piece of the text that is pointed
// at, tapped, or chosen with the arrow keys. It follows the system's theme.

const text = document.querySelector("#text");
const said = document.querySelector("#said");
const pieces = [...text.querySelectorAll("b")];
const dark = matchMedia("(prefers-color-scheme: dark)");
let chosen = -1;

function follow() {
  document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
}

/** A probability as it is read. */
function percent(probability) {
  if (probability < 0.001) return "less than 0.1%";
  return `${(100 * probability).toFixed(probability < 0.0995 ? 1 : 0)}%`;
}

function say(index) {
  pieces[chosen]?.classList.remove("chosen");
  chosen = Math.min(Math.max(index, 0), pieces.length - 1);
  const piece = pieces[chosen];
  if (!piece) return;
  piece.classList.add("chosen");

  const shown = piece.dataset.end === undefined ? `“${piece.textContent}”` : "The end of a document";
  if (!piece.dataset.bits) {
    said.textContent = `${shown}: nobody had to predict this; the text begins here.`;
    return;
  }
  const [first, second] = piece.dataset.bits.split(" ").map((bits) => percent(2 ** -Number(bits)));
  said.textContent = `${shown}: ${first} likely by ${said.dataset.first}, ${second} by ${said.dataset.second}.`;
}

function point(event) {
  const piece = event.target.closest("b");
  if (piece && piece !== pieces[chosen]) say(pieces.indexOf(piece));
}

text.addEventListener("pointerover", point);
text.addEventListener("click", point);
text.addEventListener("keydown", (event) => {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  say(chosen + step);
  pieces[chosen]?.scrollIntoView({ block: "nearest" });
});
dark.addEventListener("change", follow);
follow();
