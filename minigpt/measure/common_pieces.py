"""A text in pieces that two models have in common, whichever way each cuts it into tokens.

A piece is the shortest stretch of text at whose ends both have a boundary between two tokens and
between two characters. With one tokenizer that is a token. The bits of a piece under a model are
the sum of those of its tokens, so that nothing is estimated or shared out.
"""

import codecs
import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .. import UserError
from ..generation.window import TokenIds


class PredictedToken(NamedTuple):
    """A token of a text, and how well it was predicted."""

    bytes: bytes  # none for a special token
    is_end: bool  # whether it stands for the end of a document
    nats: float | None  # its loss; None for the first token, which nothing predicts
    context: TokenIds  # the tokens (T,) that the model saw before it


class CommonPiece(NamedTuple):
    """A piece of a text. One without text is the end of a document."""

    text: str
    start: int  # characters of the text before it
    size: int  # bytes
    tokens: tuple[list[PredictedToken], list[PredictedToken]]  # of each model, at least one

    @property
    def bits(self) -> tuple[float, float] | None:
        """What it costs each model; None if it holds a model's first token, which is given."""
        found = []
        for tokens in self.tokens:
            nats = [token.nats for token in tokens if token.nats is not None]
            if len(nats) < len(tokens):
                return None
            found.append(math.fsum(nats) / math.log(2))
        return found[0], found[1]


class _Half:
    """One model's tokens of the piece that is being put together."""

    def __init__(self, tokens: Iterator[PredictedToken]):
        self._rest = tokens
        self.tokens: list[PredictedToken] = []
        self.text = b""

    def begin(self) -> None:
        self.tokens = []
        self.text = b""

    def take(self) -> bool:
        """Take another token; False if there is none."""
        token = next(self._rest, None)
        if token is None:
            return False
        self.tokens.append(token)
        self.text += token.bytes
        return True

    @property
    def is_end(self) -> bool:
        return all(token.is_end for token in self.tokens)


def common_pieces(
    first: Iterable[PredictedToken], second: Iterable[PredictedToken]
) -> Iterator[CommonPiece]:
    """The pieces of a text whose tokens, under two models, come one after the other.

    A token without text belongs to the piece that follows, such as the mark before a speaker's
    name. Where both have the end of a document, that is a piece of its own.

    Raises:
        UserError: if the tokens of the two do not stand for the same text.
    """
    halves = _Half(iter(first)), _Half(iter(second))
    start = 0
    while True:
        for half in halves:
            half.begin()
        if not _fill(*halves):
            return

        texts = [half.text for half in halves]
        if texts[0] != texts[1]:
            raise UserError(
                "the two tokenizers do not give back the same text: one has "
                f"{texts[0][:20]!r} where the other has {texts[1][:20]!r}; evaluate each by itself"
            )
        text = texts[0].decode(errors="replace")
        yield CommonPiece(text, start, len(texts[0]), (halves[0].tokens, halves[1].tokens))
        start += len(text)


def _fill(first: _Half, second: _Half) -> bool:
    """Take tokens of both until they end at the same place; False if there are none."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    decoded = 0  # bytes
    while True:
        ahead = len(first.text) - len(second.text)
        took_first = ahead <= 0 and first.take()
        took_second = ahead >= 0 and second.take()
        if not (took_first or took_second):
            return bool(first.tokens or second.tokens)

        common = min(len(first.text), len(second.text))
        if first.text[:common] != second.text[:common]:
            return True  # common_pieces refuses them
        if len(first.text) != len(second.text) or not (first.tokens and second.tokens):
            continue

        decoder.decode(first.text[decoded:])
        decoded = len(first.text)
        has_whole_characters = not decoder.getstate()[0]
        if has_whole_characters and (decoded > 0 or (first.is_end and second.is_end)):
            return True
