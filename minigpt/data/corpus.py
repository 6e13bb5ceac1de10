"""A text as a stream of pieces: a `Corpus` is some files, a `Part` some characters of these.

Both are read as often as needed, since a text may be larger than memory. `encode` turns the pieces
into tokens. source.py finds the files and decides what is set aside to validate on; token_cache.py
stores the tokens.
"""

import copy
import hashlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from .. import UserError
from ..config import ReadingConfig
from ..tokenizer import Encoded, Tokenizer, UnknownCharacter, encode_in_pieces
from .dialogue.dialogue import Dialogue
from .dialogue.layout import Layout, SpeakerCounter
from .dialogue.names import Names
from .file_version import FileVersion, version_of
from .pieces import LineCounter, Piece, chunks, place_of
from .readers import Document, Report, read_file

_STRETCH = 1 << 14  # characters of a stretch, where only a sample of a text is taken
CHANGED = "changed while it was read; start again when it is complete"

TellShare = Callable[[float], None]  # gets a share of the work that is done, 0 to 1
Watch = Callable[[Path, int], object]  # gets a file that is read, and its characters so far


@dataclass(frozen=True)
class Talking:
    """What one reading tells of the conversations in a text, and of plays and interviews."""

    speakers: Mapping[str, int]  # the turns of each, by the name in the text; most frequent first
    files_speakers: tuple[str, ...]  # as the files name them, in the order of their appearance
    not_found: Sequence[str]  # who was renamed, but does not appear
    conversations: int  # that were made into turns; a play or an interview stays as it is
    characters: int  # of all of these
    layout: Layout  # of most of these characters


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
        names = Names(self.reading, self.known_speakers)
        for file in self.files:
            for document in read_file(file, self.reading):
                number += document.is_first
                text = text_of(document, names)
                yield Piece(number, text, document.source, document.line, document.is_row)

    @cached_property
    def scan(self) -> Scan:
        """What the text is: all of it is read when this is first asked for, and never again."""
        scanner = _Scanner(self)
        for file in self.files:
            scanner.read(file)
        return scanner.result()

    def readable(self, watch: Watch = lambda *_: None) -> tuple["Corpus", list[Report]]:
        """This corpus, scanned, without the files that cannot be read, and a report of each file.
        If there is only one file, its error is raised. `watch` is called while files are read."""
        scanner = _Scanner(self, watch)
        good = []
        reports = []
        for file in self.files:
            report = scanner.read_if_possible(file)
            reports.append(report)
            if report.error is None:
                good.append(file)
            elif len(self.files) == 1:
                raise report.error

        corpus = replace(self, files=tuple(good))
        vars(corpus)["scan"] = scanner.result()  # as if it had been asked for
        return corpus, reports


class ShareRead:
    """Watches some files being read: tells which share of them is read, by their sizes. A character
    counts as a byte; a packed file holds more characters than it has bytes."""

    def __init__(self, files: Sequence[Path], tell_share: TellShare):
        self._sizes = {}
        self._before = {}  # bytes of the files before it
        self._total = 0
        for file in files:
            version = version_of(file)
            self._sizes[file] = 0 if version is None else version[1]
            self._before[file] = self._total
            self._total += self._sizes[file]
        self._tell_share = tell_share

    def __call__(self, file: Path, characters: int) -> None:
        done = self._before[file] + min(characters, self._sizes[file])
        self._tell_share(done / max(self._total, 1))


class _Scanner:
    """Reads files one after the other for what a scan tells of them."""

    def __init__(self, corpus: Corpus, watch: Watch = lambda *_: None):
        self._reading = corpus.reading
        self._watch = watch
        self._names = Names(corpus.reading, corpus.known_speakers)
        self._turns: Counter[str] = Counter()  # by speaker
        self._conversations = 0
        self._speakers = SpeakerCounter()  # of texts that stay as they are
        self._characters: Counter[Layout] = Counter()  # of texts with turns
        self._digest = hashlib.sha256()
        self._text_bytes = 0
        self._lengths = array("Q")
        self._alphabet: set[int] = set()
        self._versions: list[FileVersion | None] = []
        self._reports: list[Report] = []

    def read(self, file: Path) -> None:
        """Add a file; UserError if it cannot be read."""
        report = Report(file)
        version = version_of(file)
        self._watch(file, 0)
        for document in read_file(file, self._reading, report):
            self._add(document)
            self._watch(file, report.characters)
        self._versions.append(version)
        self._reports.append(report)

    def read_if_possible(self, file: Path) -> Report:
        """Add a file, or nothing of one that cannot be read."""
        digest = self._digest.copy()
        text_bytes = self._text_bytes
        documents = len(self._lengths)
        alphabet = self._alphabet.copy()
        names = copy.deepcopy(self._names)
        turns = self._turns.copy()
        conversations = self._conversations
        speakers = copy.deepcopy(self._speakers)
        characters = self._characters.copy()

        try:
            self.read(file)
            return self._reports[-1]
        except UserError as error:
            self._digest = digest
            self._text_bytes = text_bytes
            del self._lengths[documents:]
            self._alphabet = alphabet
            self._names = names
            self._turns = turns
            self._conversations = conversations
            self._speakers = speakers
            self._characters = characters
            report = Report(file)
            report.error = error
            return report

    def _add(self, document: Document) -> None:
        if document.is_first:
            self._lengths.append(0)
            self._digest.update(b"\xff")  # marks a new document: no UTF-8 text holds 0xff
        text = text_of(document, self._names)
        self._lengths[-1] += len(text)
        if document.turns:
            self._conversations += 1
            self._characters[Layout()] += len(text)
            self._turns.update(self._names.name_of(speaker) for speaker, _ in document.turns)
        elif document.layout is not None:
            self._characters[document.layout] += len(text)
            self._speakers.add(text, document.layout, is_first=document.is_first)

        encoded = text.encode()
        self._digest.update(encoded)
        self._text_bytes += len(encoded)
        # Deleting is fast, and leaves next to nothing to add one by one.
        unknown = encoded.translate(None, delete=bytes(self._alphabet))
        self._alphabet.update(unknown)

    def _talk(self) -> Talking | None:
        turns = self._turns + self._speakers.turns
        if not turns:
            return None
        ((layout, _),) = self._characters.most_common(1)
        return Talking(
            speakers=dict(turns.most_common()),
            files_speakers=self._names.speakers,
            not_found=self._names.not_found,
            conversations=self._conversations,
            characters=self._characters.total(),
            layout=layout,
        )

    def result(self) -> Scan:
        """What was read."""
        return Scan(
            fingerprint=self._digest.hexdigest(),
            text_bytes=self._text_bytes,
            lengths=self._lengths,
            versions=self._versions,
            alphabet=frozenset(self._alphabet),
            reports=self._reports,
            talk=self._talk(),
        )


def text_of(document: Document, names: Names) -> str:
    """The text of a document; of a conversation, its turns."""
    if document.turns:
        return Dialogue().write(names.turns(document.turns))
    return document.text


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
            lines = LineCounter(piece)
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
                line = LineCounter(piece).line_at(cut)
                yield piece._replace(text=piece.text[cut:], line=line)


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
