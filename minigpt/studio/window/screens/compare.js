// The screen `compare`.

export async function show(main) {
  main.replaceChildren();
}
