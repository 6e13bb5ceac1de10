"""A text as a stream of pieces: a `Corpus` is some files, a `Part` some characters of these.

Both are read as often as needed, since a text may be larger than memory. `encode` turns the pieces
into tokens. source.py finds the files and decides what is set aside to validate on; token_cache.py
stores the tokens.
"""

import copy
import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from .. import UserError
from ..config import ReadingConfig
from ..tokenizer import Encoded, TextChunk, Tokenizer, UnknownCharacter, encode_in_pieces
from .readers.content import FileVersion, version_of
from .readers.document import Document, Report, title
from .readers.kinds import read_file
from .speakers import Names, TalkCounter, Talking

_STRETCH = 1 << 14  # characters of a stretch, where only a sample of a text is taken
CHANGED = "changed while it was read; start again when it is complete"

TellShare = Callable[[Path, float], object]  # gets the file that is read, and the share of all


class Piece(NamedTuple):
    """A piece of a document, and where it is. A long document comes in several pieces."""

    number: int  # of its document, counted from 0
    text: str
    file: Path
    line: int  # in which it begins; 0: not known
    is_row: bool = False  # whether all of it is in one line of the file, its line ends escaped

    def line_at(self, index: int) -> int:
        """In which line of the file the character with this index stands."""
        return self.line if self.is_row else self.line + self.text.count("\n", 0, index)


@dataclass(frozen=True)
class Scan:
    """What one reading of a corpus tells about its text. A file packed with gzip counts as what it
    holds, except in `versions`."""

    fingerprint: str  # SHA-256 of the documents
    text_bytes: int  # in UTF-8
    lengths: Sequence[int]  # of each document, in characters
    versions: Sequence[FileVersion | None]  # of each file, before it was read
    alphabet: frozenset[int]  # the bytes that occur
    reports: Sequence[Report]  # what there is to say of each file
    talk: Talking | None = None  # what is told of its conversations, if there are some


@dataclass(frozen=True)
class Corpus:
    """Text files, read one after the other."""

    files: tuple[Path, ...]
    reading: ReadingConfig = field(default_factory=ReadingConfig)
    known_speakers: tuple[str, ...] = ()  # of another corpus, who are called the same in this one

    def pieces(self) -> Iterator[Piece]:
        """The documents one after the other, in pieces of about a megabyte."""
        number = -1
        names: Names | None = None
        for file in self.files:
            for document in read_file(file, self.reading):
                number += document.is_first
                text = document.text
                if document.turns:
                    names = names or Names(self.reading, self.known_speakers)
                    text = names.text_of(document.turns)
                yield Piece(number, text, document.source, document.line, document.is_row)

    @cached_property
    def scan(self) -> Scan:
        """What the text is: all of it is read when this is first asked for, and never again."""
        scanner = _Scanner(self)
        for file in self.files:
            report = scanner.read(file)
            if report.error is not None:
                raise report.error
        return scanner.result()

    def readable(
        self, tell_share: TellShare = lambda file, share: None
    ) -> tuple["Corpus", list[Report]]:
        """This corpus, scanned, without the files that cannot be read, and a report of each file.
        If there is only one file, its error is raised. `tell_share` is called while files are
        read."""
        scanner = _Scanner(self, tell_share)
        reports = [scanner.read(file) for file in self.files]
        if len(reports) == 1 and reports[0].error is not None:
            raise reports[0].error

        good = [report.file for report in reports if report.error is None]
        corpus = replace(self, files=tuple(good))
        vars(corpus)["scan"] = scanner.result()  # as if it had been asked for
        return corpus, reports


class _Scanner:
    """Reads files one after the other for what a scan tells of them.

    `tell_share` is told the share that is read, by the sizes of the files. A character counts as a
    byte; a packed file holds more characters than it has bytes."""

    def __init__(self, corpus: Corpus, tell_share: TellShare = lambda file, share: None):
        self._corpus = corpus
        self._tell_share = tell_share
        versions = (version_of(file) for file in corpus.files)
        self._total = sum(version[1] for version in versions if version is not None)  # bytes
        self._done = 0  # bytes of the files so far
        self._digest = hashlib.sha256()
        self._text_bytes = 0
        self._lengths = array("Q")
        self._alphabet: set[int] = set()
        self._versions: list[FileVersion | None] = []
        self._reports: list[Report] = []
        self._talk: TalkCounter | None = None  # if somebody speaks

    def read(self, file: Path) -> Report:
        """Add a file, or nothing of one that cannot be read: the report has the error."""
        digest = self._digest.copy()
        text_bytes = self._text_bytes
        documents = len(self._lengths)
        alphabet = self._alphabet.copy()
        talk = copy.deepcopy(self._talk)

        report = Report(file)
        version = version_of(file)
        size = 0 if version is None else version[1]
        try:
            self._tell_share(file, self._done / max(self._total, 1))
            for document in read_file(file, self._corpus.reading, report):
                self._add(document)
                done = self._done + min(report.characters, size)
                self._tell_share(file, done / max(self._total, 1))
            self._versions.append(version)
            self._reports.append(report)
        except UserError as error:
            self._digest = digest
            self._text_bytes = text_bytes
            del self._lengths[documents:]
            self._alphabet = alphabet
            self._talk = talk
            report = Report(file, error=error)
        self._done += size
        return report

    def _add(self, document: Document) -> None:
        if document.is_first:
            self._lengths.append(0)
            self._digest.update(b"\xff")  # marks a new document: no UTF-8 text holds 0xff

        text = document.text
        if document.turns or document.layout is not None:
            if self._talk is None:
                names = Names(self._corpus.reading, self._corpus.known_speakers)
                self._talk = TalkCounter(names)
            text = self._talk.add(document)
        self._lengths[-1] += len(text)

        encoded = text.encode()
        self._digest.update(encoded)
        self._text_bytes += len(encoded)
        # Deleting is fast, and leaves next to nothing to add one by one.
        unknown = encoded.translate(None, delete=bytes(self._alphabet))
        self._alphabet.update(unknown)

    def result(self) -> Scan:
        """What was read."""
        return Scan(
            fingerprint=self._digest.hexdigest(),
            text_bytes=self._text_bytes,
            lengths=self._lengths,
            versions=self._versions,
            alphabet=frozenset(self._alphabet),
            reports=self._reports,
            talk=None if self._talk is None else self._talk.result(),
        )


@dataclass(frozen=True)
class Part:
    """A corpus of which each document is cut in two: all that stands before the cuts or, if
    `after_cut`, all that stands after them.

    If this side of the cuts has more than `most` characters, the part is a sample of at most that
    many, in stretches that lie all over the text.
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
            line = piece.line
            step = self.stretch if is_sample else len(piece.text)
            for start in range(0, len(piece.text), step):
                stretch = piece.text[start : start + step]
                read += len(stretch)
                # Take it if the share that is taken, taken / read, then stays within the share
                # that is wanted, size / characters.
                if (taken + len(stretch)) * self.characters <= self.size * read:
                    taken += len(stretch)
                    yield piece._replace(text=stretch, line=line)
                if is_sample and not piece.is_row:
                    line += stretch.count("\n")

        if read != self.characters:
            raise UserError(f"the text {CHANGED}", kind="text_changed")

    def _all_pieces(self) -> Iterator[Piece]:
        """The pieces of the part before a sample is taken; none is empty."""
        before_cut = array("Q", self.cuts)  # characters of each document that are still to come
        for piece in self.corpus.pieces():
            if piece.number == len(before_cut):
                raise UserError(f"the text {CHANGED}", kind="text_changed")

            cut = min(before_cut[piece.number], len(piece.text))
            before_cut[piece.number] -= cut
            if not self.after_cut and cut > 0:
                yield piece._replace(text=piece.text[:cut])
            elif self.after_cut and cut < len(piece.text):
                yield piece._replace(text=piece.text[cut:], line=piece.line_at(cut))


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


def whole_documents(pieces: Iterable[Piece]) -> list[str]:
    """The documents, each in one piece."""
    texts = []
    for _, own in groupby(pieces, key=attrgetter("number")):
        texts.append("".join(piece.text for piece in own))
    return texts


def place_of(text: str, pieces: Iterable[Piece]) -> str:
    """The file and line where `text` first occurs in the pieces; the file alone if no line is
    known, as of a chat."""
    tail: Piece | None = None  # of the piece before
    for new in pieces:
        piece = new
        if tail is not None and tail.number == new.number:  # a match may span the two
            piece = tail._replace(text=tail.text + new.text)

        index = piece.text.find(text)
        if index >= 0:
            name = title(piece.file)
            line = piece.line_at(index)
            return f"{name}, line {line:,}" if line > 0 else name

        start = max(len(piece.text) - (len(text) - 1), 0)  # of a match that ends in the next piece
        tail = piece._replace(text=piece.text[start:], line=piece.line_at(start))
    return "a place that is not there any more"  # a file has changed since the text was found
