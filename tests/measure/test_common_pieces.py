"""A text in the pieces that two ways to cut it have in common."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt import UserError
from minigpt.measure.common_pieces import CommonPiece, PredictedToken, common_pieces

NOWHERE = np.zeros(0, np.int64)
TEXT = "The fox – 狐, naïve 🦊 – said no.\n"


def token(text: bytes, nats: float | None = 1.0, *, is_end: bool = False) -> PredictedToken:
    return PredictedToken(text, is_end, nats, NOWHERE)


def tokens_of(text: str, cuts: set[int]) -> list[PredictedToken]:
    """The text cut at these bytes; the first token is given, and each other costs its own bits."""
    encoded = text.encode()
    places = sorted({0, len(encoded), *cuts})
    made = [token(encoded[start:end], 0.1 + start) for start, end in pairwise(places)]
    return [made[0]._replace(nats=None), *made[1:]]


def places_between_tokens(tokens: list[PredictedToken]) -> set[int]:
    return set(np.cumsum([len(token.bytes) for token in tokens]).tolist())


cuts = st.sets(st.integers(1, len(TEXT.encode()) - 1))


@given(first=cuts, second=cuts)
@settings(max_examples=100, deadline=None)
def test_a_piece_ends_where_both_have_a_token_and_a_character_end(
    first: set[int], second: set[int]
) -> None:
    pair = tokens_of(TEXT, first), tokens_of(TEXT, second)
    pieces = list(common_pieces(*pair))
    assert "".join(piece.text for piece in pieces) == TEXT

    ends = set(np.cumsum([piece.size for piece in pieces]).tolist())
    characters = {len(TEXT[:i].encode()) for i in range(1, len(TEXT) + 1)}
    assert ends == places_between_tokens(pair[0]) & places_between_tokens(pair[1]) & characters
    starts = [0, *np.cumsum([len(piece.text) for piece in pieces]).tolist()]
    assert [piece.start for piece in pieces] == starts[:-1]


@given(first=cuts, second=cuts)
@settings(max_examples=50, deadline=None)
def test_the_bits_of_the_pieces_are_those_of_all_tokens_but_the_first(
    first: set[int], second: set[int]
) -> None:
    pair = tokens_of(TEXT, first), tokens_of(TEXT, second)
    pieces = list(common_pieces(*pair))
    assert pieces[0].bits is None  # nothing predicts how the text begins
    for side, tokens in enumerate(pair):
        of_first = [token.nats or 0.0 for token in pieces[0].tokens[side]]
        of_all = [token.nats or 0.0 for token in tokens]
        found = math.fsum(piece.bits[side] for piece in pieces if piece.bits)
        nats = math.fsum(of_all) - math.fsum(of_first)
        assert found == pytest.approx(nats / math.log(2), abs=1e-9)


def texts(pieces: list[CommonPiece]) -> list[str]:
    return [piece.text for piece in pieces]


def test_the_end_of_a_document_is_a_piece_where_both_have_it() -> None:
    end = token(b"", is_end=True)
    one, two = token(b"one"), token(b"two")
    pieces = list(common_pieces([one, end, two], [one, end, two]))
    assert texts(pieces) == ["one", "", "two"]

    pieces = list(common_pieces([one, end, two], [one, two]))
    assert texts(pieces) == ["one", "two"]
    assert pieces[1].bits == pytest.approx((2 / math.log(2), 1 / math.log(2)))


def test_a_mark_without_text_belongs_to_what_follows_it() -> None:
    mark = token(b"")
    anna = token(b"Anna")
    for second in ([anna], [mark, anna]):
        pieces = list(common_pieces([mark, anna], second))
        assert texts(pieces) == ["Anna"]
        assert pieces[0].bits == pytest.approx((2 / math.log(2), len(second) / math.log(2)))


def test_tokenizers_that_do_not_give_back_the_same_text_are_refused_where_they_part() -> None:
    """Without reading on, to look for a place where they meet again."""

    def long_text() -> list[PredictedToken]:
        return [token(b"cafe"), token(b" and"), token(b" more")]

    other = iter([token("café".encode()), token(b" and"), token(b" more")])
    with pytest.raises(UserError, match="do not give back the same text"):
        list(common_pieces(long_text(), other))
    assert next(other).bytes == b" and"
