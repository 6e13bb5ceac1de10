"""A text as a stream of pieces: a `Corpus` is some files, a `Part` some characters of these.

Both are read as often as needed, since a text may be larger than memory. source.py finds the files
and decides what is set aside to validate on; token_cache.py turns the pieces into tokens.
"""

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from .. import UserError
from ..tokenizer import Encoded, TextChunk, Tokenizer, UnknownCharacter, encode_in_pieces
from .readers import is_json_lines, read_text, title

_STRETCH = 1 << 14  # characters of a stretch, where only a sample of a text is taken
CHANGED = "changed while it was read; start again when it is complete"

Document = tuple[int, str]  # a document's number, and a piece of its text
FileVersion = tuple[int, int]  # when a file was last written to, in nanoseconds, and its size


class Piece(NamedTuple):
    """A piece of a document, and where it stands."""

    number: int  # of its document
    text: str
    file: Path
    line: int  # in which it begins


@dataclass(frozen=True)
class Scan:
    """What one reading of a corpus tells about its text, packed or not."""

    fingerprint: str  # SHA-256 of the documents
    text_bytes: int  # in UTF-8
    lengths: Sequence[int]  # of each document, in characters
    versions: Sequence[FileVersion | None]  # of each file, before it was read
    alphabet: frozenset[int]  # the bytes that occur


@dataclass(frozen=True)
class Corpus:
    """Text files, read one after the other; `text_field` holds the text of a line of .jsonl."""

    files: tuple[Path, ...]
    text_field: str = "text"

    def documents(self) -> Iterator[Document]:
        """The text in pieces of about a megabyte, each with the number of its document."""
        return ((piece.number, piece.text) for piece in self.pieces())

    def pieces(self) -> Iterator[Piece]:
        """The same, each with its place."""
        number = -1
        for file in self.files:
            for is_first, line, text in read_text(file, self.text_field):
                if is_first:
                    number += 1
                yield Piece(number, text, file, line)

    @cached_property
    def scan(self) -> Scan:
        """Read all of it once."""
        versions = [version_of(file) for file in self.files]
        digest = hashlib.sha256()
        text_bytes = 0
        lengths = array("Q")
        alphabet: set[int] = set()

        for number, text in self.documents():
            is_new = number == len(lengths)
            if is_new:
                lengths.append(0)
                digest.update(b"\xff")  # which occurs in no text in UTF-8
            lengths[number] += len(text)

            encoded = text.encode()
            digest.update(encoded)
            text_bytes += len(encoded)
            # To remove the bytes that are known leaves next to nothing, and is fast.
            unknown = encoded.translate(None, delete=bytes(alphabet))
            alphabet.update(unknown)

        return Scan(
            fingerprint=digest.hexdigest(),
            text_bytes=text_bytes,
            lengths=lengths,
            versions=versions,
            alphabet=frozenset(alphabet),
        )


def version_of(file: Path) -> FileVersion | None:
    """Which differs when a file was written to; None if it is not there."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


@dataclass(frozen=True)
class Part:
    """Some characters of each document of a corpus: the first `kept` of them, or, if `aside`, all
    the others.

    If these are more than `most`, the part is a sample of so many: stretches that lie all over it.
    """

    characters: int  # of all documents together, those that the sample leaves out included
    corpus: Corpus
    kept: Sequence[int]  # characters, of each document
    aside: bool = False
    most: int | None = None
    stretch: int = _STRETCH  # characters

    @property
    def size(self) -> int:
        """How many characters there are in the documents: in a sample, at most so many."""
        if self.most is None:
            return self.characters
        return min(self.characters, self.most)

    def at_most(self, most: int | None, stretch: int = _STRETCH) -> "Part":
        """A sample of this part, or all of it if `most` is None.

        A stretch of the sample has `stretch` characters, but no more than an eighth of the sample.
        """
        if most is None:
            return self
        if self.most is not None:
            most = min(most, self.most)
        eighth = max(most // 8, 1)
        return replace(self, most=most, stretch=min(stretch, eighth))

    def documents(self) -> Iterator[Document]:
        """Pieces of the documents, as of a :class:`Corpus`; UserError if a file has changed."""
        return ((piece.number, piece.text) for piece in self.pieces())

    def pieces(self) -> Iterator[Piece]:
        """The same, each with its place."""
        is_sample = self.size < self.characters
        length = self.stretch if is_sample else 1 << 30  # longer than any piece
        read = 0  # characters so far
        taken = 0  # of these

        for piece in self._pieces_of_all():
            lines = _LineCounter(piece)
            for start in range(0, len(piece.text), length):
                stretch = piece.text[start : start + length]
                read += len(stretch)
                # Take it unless the share taken so far, taken / read, would grow larger than the
                # share of the whole, size / characters.
                if (taken + len(stretch)) * self.characters <= self.size * read:
                    taken += len(stretch)
                    yield piece._replace(text=stretch, line=lines.line_at(start))

        if read != self.characters:
            raise UserError(f"the text {CHANGED}")

    def _pieces_of_all(self) -> Iterator[Piece]:
        """The pieces of the whole part, of which a sample may be taken."""
        still_kept = array("Q", self.kept)  # characters of each document
        for piece in self.corpus.pieces():
            if piece.number == len(still_kept):
                raise UserError(f"the text {CHANGED}")

            cut = min(still_kept[piece.number], len(piece.text))
            still_kept[piece.number] -= cut
            if not self.aside and cut > 0:
                yield piece._replace(text=piece.text[:cut])
            elif self.aside and cut < len(piece.text):
                line = _LineCounter(piece).line_at(cut)
                yield piece._replace(text=piece.text[cut:], line=line)


class _LineCounter:
    """Tells in which line of its file a place of a piece stands.

    It is asked for one place after the other, from left to right, and counts on from the last.
    """

    def __init__(self, piece: Piece):
        self._text = piece.text
        self._line = piece.line
        self._place = 0
        self._is_one_line = is_json_lines(piece.file)  # where a line end is written \n

    def line_at(self, place: int) -> int:
        """The number of the line; `place` is an index of the text."""
        if not self._is_one_line:
            self._line += self._text.count("\n", self._place, place)
        self._place = place
        return self._line


def place_of(text: str, pieces: Iterable[Piece]) -> str:
    """The file and the line in which a text begins where it stands in documents first."""
    held: Piece | None = None  # the end of the piece before, in which the text may have begun
    for new in pieces:
        piece = new
        if held is not None and held.number == new.number:
            piece = held._replace(text=held.text + new.text)

        lines = _LineCounter(piece)
        found = piece.text.find(text)
        if found >= 0:
            return f"{title(piece.file)}, line {lines.line_at(found):,}"

        end = max(len(piece.text) - len(text) + 1, 0)
        held = piece._replace(text=piece.text[end:], line=lines.line_at(end))
    return "a place that is not there any more"


def encode(tokenizer: Tokenizer, text: Corpus | Part) -> Iterator[Encoded]:
    """The tokens of a text, in pieces; UserError with the file and the line of a character that
    the tokenizer does not know."""
    try:
        yield from encode_in_pieces(tokenizer, chunks(text.documents()))
    except UnknownCharacter as unknown:
        place = place_of(unknown.character, text.pieces())
        raise UnknownCharacter(unknown.character, f"({place})") from None


def chunks(documents: Iterable[Document]) -> Iterator[TextChunk]:
    """Documents for the tokenizer, which puts an end of text between two of them."""
    last = None  # number of the document of the piece before
    for number, text in documents:
        follows_another = last is not None and number != last
        yield follows_another, text
        last = number


def whole(documents: Iterable[Document]) -> list[str]:
    """The documents, each in one piece."""
    texts = []
    for _, pieces in groupby(documents, key=itemgetter(0)):
        texts.append("".join(text for _, text in pieces))
    return texts
