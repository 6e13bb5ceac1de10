// The screen `text`.

export async function show(main) {
  main.replaceChildren();
}
