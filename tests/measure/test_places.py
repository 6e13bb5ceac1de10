"""The places where two models differ most."""

import numpy as np

from minigpt.measure.common_pieces import CommonPiece, PredictedToken
from minigpt.measure.places import PLACES, Places


def pieces(count: int, length: int = 5) -> list[CommonPiece]:
    """So many words, whose contexts are as long as they are far from the beginning."""
    made = []
    for i in range(count):
        text = f"{i:{length}}"
        one = PredictedToken(text.encode(), False, 1.0, np.arange(i % 7))
        made.append(CommonPiece(text, i * length, length, ([one], [one])))
    return made


def test_the_largest_differences_are_found_and_lie_apart() -> None:
    """Where a whole paragraph differs much, it is one place of many."""
    words = pieces(4000)
    differences = {i: 1.0 for i in range(0, 4000, 50)}
    differences |= {i: 9.0 + i / 1000 for i in range(1000, 1100)}
    differences[3990] = 30.0

    places = Places(characters=20_000)
    for i, piece in enumerate(words):
        places.add(piece, (differences.get(i, 0.0), 0.0))
    found = places.largest()
    assert len(found) == PLACES
    assert found[0].piece is words[3990]
    sizes = [place.difference for place in found]
    assert sizes == sorted(sizes, reverse=True) and sizes[1] > 9.0
    starts = sorted(place.piece.start for place in found)
    assert min(np.diff(starts)) >= 20_000 / 200
    assert sum(5_000 <= start < 5_500 for start in starts) <= 5

    (last,) = [place for place in found if place.piece is words[3990]]
    assert last.before.endswith(" 3988 3989") and last.after.startswith(" 3991")
    assert last.contexts[0].tolist() == list(range(3990 % 7))


def test_what_a_model_saw_before_a_name_is_also_the_mark_of_a_speaker() -> None:
    mark = PredictedToken(b"", False, 0.1, np.arange(3))
    name = PredictedToken(b"Anna", False, 1.0, np.arange(4))
    end = PredictedToken(b"", True, 1.0, np.arange(5))
    places = Places(characters=100)
    places.add(CommonPiece("Anna", 0, 4, ([mark, name], [name])), (2.0, 1.0))
    places.add(CommonPiece("", 50, 0, ([end], [end])), (2.0, 1.0))
    found = {place.piece.text: place.contexts for place in places.largest()}
    assert [len(context) for context in found["Anna"]] == [4, 4]
    assert [len(context) for context in found[""]] == [5, 5]


def test_where_nothing_differs_there_is_no_place() -> None:
    places = Places(characters=500)
    for piece in pieces(100):
        places.add(piece, (3.0, 3.2))
    places.add(pieces(1)[0], None)  # nobody predicts the first
    assert places.largest() == []
