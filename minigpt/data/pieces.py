"""A text comes as a stream of pieces, since it may be larger than memory.

`chunks` prepares them for a tokenizer, `whole` joins them to documents, and `place_of` finds the
file and the line in which a text occurs.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from ..tokenizer import TextChunk
from .readers import title


class Piece(NamedTuple):
    """A piece of a document, and where it is. A long document comes in several pieces."""

    number: int  # of its document, counted from 0
    text: str
    file: Path
    line: int  # in which it begins
    is_row: bool = False  # whether all of it is in one line of the file


def chunks(pieces: Iterable[Piece]) -> Iterator[TextChunk]:
    """Pieces as the tokenizer takes them: each text, and whether an end of text goes before it."""
    last = None  # number of the document of the piece before
    for piece in pieces:
        begins_another = last is not None and piece.number != last
        yield begins_another, piece.text
        last = piece.number


def whole(pieces: Iterable[Piece]) -> list[str]:
    """The documents, each in one piece."""
    texts = []
    for _, own in groupby(pieces, key=attrgetter("number")):
        texts.append("".join(piece.text for piece in own))
    return texts


def place_of(text: str, pieces: Iterable[Piece]) -> str:
    """The file and line where `text` first occurs in the pieces."""
    tail: Piece | None = None  # of the piece before
    for new in pieces:
        piece = new
        if tail is not None and tail.number == new.number:  # a match may span the two
            piece = tail._replace(text=tail.text + new.text)

        lines = LineCounter(piece)
        index = piece.text.find(text)
        if index >= 0:
            return f"{title(piece.file)}, line {lines.line_at(index):,}"

        start = max(len(piece.text) - (len(text) - 1), 0)  # of a match that ends in the next piece
        tail = piece._replace(text=piece.text[start:], line=lines.line_at(start))
    return "a place that is not there any more"  # a file has changed since the text was found


class LineCounter:
    """Tells in which line of its file a character of a piece stands.

    It is asked for one character after the other, from left to right, and counts on from the last.
    """

    def __init__(self, piece: Piece):
        self._text = piece.text
        self._line = piece.line
        self._index = 0
        self._is_one_line = piece.is_row  # where line ends are escaped

    def line_at(self, index: int) -> int:
        """The number of the line; `index` is that of a character in the piece."""
        if not self._is_one_line:
            self._line += self._text.count("\n", self._index, index)
        self._index = index
        return self._line
