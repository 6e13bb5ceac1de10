// A list of cards that follows a list of rows: a card stays the same element as long as its row is there, so that an
// open menu and the focus outlive each change.

/**
 * `make(row)` gives a card for a row, {element, update(row)}; `keyOf(row)` what tells rows apart.
 */
export function makeCards(list, keyOf, make) {
  const cards = new Map();

  return function update(rows) {
    const keys = new Set(rows.map(keyOf));
    for (const [key, card] of cards) {
      if (keys.has(key)) continue;
      card.element.remove();
      cards.delete(key);
    }

    let next = list.firstElementChild;
    for (const row of rows) {
      const card = cards.get(keyOf(row)) ?? make(row);
      cards.set(keyOf(row), card);
      card.update(row);
      if (card.element === next) next = next.nextElementSibling;
      else list.insertBefore(card.element, next);
    }
  };
}
