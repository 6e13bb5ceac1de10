"""A text as a stream of pieces: a `Corpus` is some files, a `Part` some characters of these.

Both are read as often as needed, since a text may be larger than memory. `encode` turns the pieces
into tokens, `whole` joins them to documents, `place_of` finds the file and line that a text is in
in them. source.py finds the files and decides what is set aside to validate on; token_cache.py
stores the tokens.
"""

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from .. import UserError
from ..tokenizer import Encoded, TextChunk, Tokenizer, UnknownCharacter, encode_in_pieces
from .readers import is_json_lines, read_text, title

_STRETCH = 1 << 14  # characters of a stretch, where only a sample of a text is taken
CHANGED = "changed while it was read; start again when it is complete"

FileVersion = tuple[int, int]  # when a file was last written to, in nanoseconds, and its size


class Piece(NamedTuple):
    """A piece of a document, and where it is. A long document comes in several pieces."""

    number: int  # of its document, counted from 0
    text: str
    file: Path
    line: int  # in which it begins


@dataclass(frozen=True)
class Scan:
    """What one reading of a corpus tells about its text. A file packed with gzip counts as what it
    holds, except in `versions`."""

    fingerprint: str  # SHA-256 of the documents
    text_bytes: int  # in UTF-8
    lengths: Sequence[int]  # of each document, in characters
    versions: Sequence[FileVersion | None]  # of each file, before it was read
    alphabet: frozenset[int]  # the bytes that occur


@dataclass(frozen=True)
class Corpus:
    """Text files, read one after the other; in .jsonl, the field `text_field` holds the text."""

    files: tuple[Path, ...]
    text_field: str = "text"

    def pieces(self) -> Iterator[Piece]:
        """The documents one after the other, in pieces of about a megabyte."""
        number = -1
        for file in self.files:
            for is_first, line, text in read_text(file, self.text_field):
                if is_first:
                    number += 1
                yield Piece(number, text, file, line)

    @cached_property
    def scan(self) -> Scan:
        """What the text is: all of it is read when this is first asked for, and never again."""
        versions = [version_of(file) for file in self.files]
        digest = hashlib.sha256()
        text_bytes = 0
        lengths = array("Q")
        alphabet: set[int] = set()

        for piece in self.pieces():
            is_new = piece.number == len(lengths)
            if is_new:
                lengths.append(0)
                digest.update(b"\xff")  # marks a new document: no UTF-8 text holds 0xff
            lengths[piece.number] += len(piece.text)

            encoded = piece.text.encode()
            digest.update(encoded)
            text_bytes += len(encoded)
            # Deleting is fast, and leaves next to nothing to add one by one.
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
    """A value that changes when the file is written to; None if there is no file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


@dataclass(frozen=True)
class Part:
    """A corpus of which each document is cut in two: all that stands before the cuts or, if
    `after_cut`, all that stands after them.

    If these are more than `most` characters, the part is a sample of at most so many, in stretches
    that lie all over the text.
    """

    characters: int  # on this side of the cuts, before a sample is taken
    corpus: Corpus
    cuts: Sequence[int]  # where each document is cut: so many characters stand before the cut
    after_cut: bool = False
    most: int | None = None
    stretch: int = _STRETCH  # characters

    @property
    def size(self) -> int:
        """How many characters the part has; of a sample, how many at most."""
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

    def pieces(self) -> Iterator[Piece]:
        """The documents, or what the part has of them, in pieces of about a megabyte; of a sample,
        in its stretches.

        Raises UserError, perhaps only at the end, if there are more documents than when the corpus
        was scanned, or if the part has another number of characters. `Source.check_unchanged`
        notices the other changes.
        """
        is_sample = self.size < self.characters
        read = 0  # characters so far
        taken = 0  # of these

        for piece in self._all_pieces():
            lines = _LineCounter(piece)
            step = self.stretch if is_sample else len(piece.text)
            for start in range(0, len(piece.text), step):
                stretch = piece.text[start : start + step]
                read += len(stretch)
                # Take it if the share that is taken, taken / read, then stays within the share
                # that is wanted, size / characters.
                if (taken + len(stretch)) * self.characters <= self.size * read:
                    taken += len(stretch)
                    yield piece._replace(text=stretch, line=lines.line_at(start))

        if read != self.characters:
            raise UserError(f"the text {CHANGED}")

    def _all_pieces(self) -> Iterator[Piece]:
        """The pieces of the part before a sample is taken; none is empty."""
        before_cut = array("Q", self.cuts)  # characters of each document that are still to come
        for piece in self.corpus.pieces():
            if piece.number == len(before_cut):
                raise UserError(f"the text {CHANGED}")

            cut = min(before_cut[piece.number], len(piece.text))
            before_cut[piece.number] -= cut
            if not self.after_cut and cut > 0:
                yield piece._replace(text=piece.text[:cut])
            elif self.after_cut and cut < len(piece.text):
                line = _LineCounter(piece).line_at(cut)
                yield piece._replace(text=piece.text[cut:], line=line)


class _LineCounter:
    """Tells in which line of its file a character of a piece stands.

    It is asked for one character after the other, from left to right, and counts on from the last.
    """

    def __init__(self, piece: Piece):
        self._text = piece.text
        self._line = piece.line
        self._index = 0
        self._is_one_line = is_json_lines(piece.file)  # where line ends are escaped

    def line_at(self, index: int) -> int:
        """The number of the line; `index` is that of a character in the piece."""
        if not self._is_one_line:
            self._line += self._text.count("\n", self._index, index)
        self._index = index
        return self._line


def place_of(text: str, pieces: Iterable[Piece]) -> str:
    """The file and line where `text` first occurs in the pieces."""
    tail: Piece | None = None  # of the piece before
    for new in pieces:
        piece = new
        if tail is not None and tail.number == new.number:  # a match may span the two
            piece = tail._replace(text=tail.text + new.text)

        lines = _LineCounter(piece)
        index = piece.text.find(text)
        if index >= 0:
            return f"{title(piece.file)}, line {lines.line_at(index):,}"

        start = max(len(piece.text) - (len(text) - 1), 0)  # of a match that ends in the next piece
        tail = piece._replace(text=piece.text[start:], line=lines.line_at(start))
    return "a place that is not there any more"  # a file has changed since the text was found


def encode(tokenizer: Tokenizer, text: Corpus | Part) -> Iterator[Encoded]:
    """The tokens of a text, in pieces.

    Raises UnknownCharacter with the file and line of a character that the tokenizer does not know;
    to find the line, the text is read once more.
    """
    try:
        yield from encode_in_pieces(tokenizer, chunks(text.pieces()))
    except UnknownCharacter as unknown:
        place = place_of(unknown.character, text.pieces())
        raise UnknownCharacter(unknown.character, f"({place})") from None


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
