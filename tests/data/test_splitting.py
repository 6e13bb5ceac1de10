"""Which documents are set aside to validate on, and the streams of text that makes."""

from collections.abc import Iterator
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt.data.splitting import (
    Numbered,
    after,
    between,
    document_lengths,
    selected,
    set_aside,
    stretches,
)

law = settings(max_examples=200, deadline=None)

some_lengths = st.lists(st.integers(1, 100), min_size=2, max_size=60)
fractions = st.floats(0.01, 0.99)
# The pieces of documents, as a corpus gives them.
some_pieces = st.lists(
    st.lists(st.text("abc", min_size=1), min_size=1, max_size=3), max_size=5
).map(lambda documents: [(i, piece) for i, pieces in enumerate(documents) for piece in pieces])


def text_of(pieces: Iterator[Numbered] | list[Numbered]) -> str:
    return "".join(text for _, text in pieces)


@given(lengths=some_lengths, fraction=fractions)
@law
def test_the_share_set_aside_is_right_to_a_document(lengths: list[int], fraction: float) -> None:
    chosen = set_aside(lengths, fraction)
    aside = sum(length for length, is_aside in zip(lengths, chosen, strict=True) if is_aside)
    assert abs(aside - fraction * sum(lengths)) <= max(lengths)


@given(lengths=some_lengths, fraction=fractions)
@law
def test_of_two_documents_or_more_one_is_set_aside_and_one_is_not(
    lengths: list[int], fraction: float
) -> None:
    assert set(set_aside(lengths, fraction)) == {0, 1}


def test_what_is_set_aside_is_spread_over_the_text() -> None:
    chosen = set_aside([7] * 1000, 0.1)
    assert all(sum(chosen[i : i + 10]) == 1 for i in range(0, 1000, 10))


@pytest.mark.parametrize(
    ("lengths", "fraction", "expected"),
    [
        ([1_000_000, 20_000], 0.1, [0, 1]),
        ([90_000, 1_000_000], 0.1, [1, 0]),
        ([5, 5], 0.1, [0, 1]),
        ([5, 5, 5], 0.9, [1, 1, 0]),
    ],
)
def test_of_few_documents_the_one_that_fits_best_is_taken(
    lengths: list[int], fraction: float, expected: list[int]
) -> None:
    assert list(set_aside(lengths, fraction)) == expected


@given(pieces=some_pieces, data=st.data())
@law
def test_every_document_is_selected_or_not(pieces: list[Numbered], data: st.DataObject) -> None:
    count = len(document_lengths(pieces))
    flags = st.lists(st.integers(0, 1), min_size=count, max_size=count)
    chosen = bytearray(data.draw(flags))
    parts = [list(selected(pieces, chosen, wanted)) for wanted in (False, True)]
    assert {number for number, _ in parts[0]}.isdisjoint(number for number, _ in parts[1])
    assert sorted(parts[0] + parts[1], key=lambda piece: piece[0]) == pieces


@given(pieces=some_pieces)
@law
def test_lengths_are_those_of_whole_documents(pieces: list[Numbered]) -> None:
    lengths = document_lengths(pieces)
    for number, length in enumerate(lengths):
        assert length == len(text_of([piece for piece in pieces if piece[0] == number]))
    assert sum(lengths) == len(text_of(pieces))


@given(pieces=some_pieces, data=st.data())
@law
def test_a_text_is_cut_at_a_character(pieces: list[Numbered], data: st.DataObject) -> None:
    whole = text_of(pieces)
    cut = data.draw(st.integers(0, len(whole)))
    assert text_of(between(pieces, 0, cut)) == whole[:cut]
    assert text_of(between(pieces, cut, len(whole))) == whole[cut:]


@given(pieces=some_pieces, data=st.data())
@law
def test_a_text_can_be_gone_on_with_from_any_character(
    pieces: list[Numbered], data: st.DataObject
) -> None:
    """The end of text before a document comes with it, and with nothing else."""

    def written(texts: Iterator[tuple[bool, str]]) -> str:
        return "".join("|" * separate + text for separate, text in texts)

    documents = {number: "" for number, _ in pieces}
    for number, text in pieces:
        documents[number] += text
    whole = "|".join(documents.values())
    assert written(stretches(pieces)) == whole
    lengths = document_lengths(pieces)
    start = data.draw(st.integers(0, sum(lengths)))
    rest = written(after(stretches(pieces), start))
    assert whole.endswith(rest)
    assert len(rest.replace("|", "")) == sum(lengths) - start
    assert rest.startswith("|") == (start in list(accumulate(lengths))[:-1])
