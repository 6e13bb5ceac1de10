// The screen `run`.

export async function show(main) {
  main.replaceChildren();
}
