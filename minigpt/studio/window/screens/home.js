// The screen `home`.

export async function show(main) {
  main.replaceChildren();
}
