"""From files and Python objects to documents of text, some set aside to validate on.

A `Corpus` is read as a stream, as often as needed; token_cache.py encodes its documents.
"""

import contextlib
import hashlib
import json
import os
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from .. import UserError
from ..config import TextConfig
from ..tokenizer import Encoded, TextChunk, Tokenizer, UnknownCharacter, encode_in_pieces
from .files import Say, each_once, find_files, identity
from .readers import STANDARD_INPUT, is_json_lines, read_text, text_in, title

_STRETCH = 1 << 14  # characters, where a part of a long text is taken
_MAYBE_NAMES = 100  # documents that are checked for being the names of files
_TO_VALIDATE = 1 << 20  # characters of a longer text; evaluations read fewer
CHANGED = "changed while it was read; start again when it is complete"

Document = tuple[int, str]  # a document's number, and a piece of its text


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
    times: Sequence[object]  # when each file had been written to
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
                number += is_first
                yield Piece(number, text, file, line)

    @cached_property
    def scan(self) -> Scan:
        """Read all of it once."""
        digest, text_bytes, lengths = hashlib.sha256(), 0, array("Q")
        alphabet: set[int] = set()
        times = [_time(file) for file in self.files]
        for number, text in self.documents():
            if number == len(lengths):
                digest.update(b"\xff")  # which occurs in no text in UTF-8
                lengths.append(0)
            encoded = text.encode()
            digest.update(encoded)
            alphabet.update(encoded.translate(None, bytes(alphabet)))
            text_bytes += len(encoded)
            lengths[-1] += len(text)
        return Scan(digest.hexdigest(), text_bytes, lengths, times, frozenset(alphabet))


@dataclass(frozen=True)
class Source:
    """The text of a run: what to train on, and what to validate on if that is separate."""

    training: Corpus  # and to validate on, if there is no other
    validation: Corpus | None

    @property
    def fingerprint(self) -> str:
        """A hash of all of it."""
        parts = [part and part.scan.fingerprint for part in (self.training, self.validation)]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def check_unchanged(self) -> None:
        """Refuse files that were written to after they were scanned."""
        for corpus in filter(None, (self.training, self.validation)):
            for file, time in zip(corpus.files, corpus.scan.times, strict=True):
                if _time(file) != time:
                    raise UserError(f"{title(file)} {CHANGED}")


@dataclass(frozen=True)
class Part:
    """The first `kept` characters of each document, or, if `aside`, the characters after them.

    If these are more than `most`, stretches spread over them that have so many together.
    """

    characters: int
    corpus: Corpus
    kept: Sequence[int]
    aside: bool = False
    most: int | None = None
    stretch: int = _STRETCH

    def at_most(self, most: int | None, stretch: int = _STRETCH) -> "Part":
        """A part of this part, in stretches of so many characters, or an eighth of it."""
        if most is None:
            return self
        most = min(most, self.most or most)
        return replace(self, most=most, stretch=min(stretch, max(most // 8, 1)))

    @property
    def size(self) -> int:
        """How many characters there are in the documents."""
        return min(self.characters, self.most or self.characters)

    def documents(self) -> Iterator[Document]:
        """Pieces of the documents, as of a :class:`Corpus`; UserError if a file has changed."""
        return ((piece.number, piece.text) for piece in self.pieces())

    def pieces(self) -> Iterator[Piece]:
        """The same, each with its place."""
        length = self.stretch if self.size < self.characters else 1 << 30
        read = taken = 0
        for whole in self._whole_pieces():
            lines = _LinesOf(whole)
            for start in range(0, len(whole.text), length):
                stretch = whole.text[start : start + length]
                read += len(stretch)
                if (taken + len(stretch)) * self.characters <= self.size * read:
                    taken += len(stretch)
                    yield whole._replace(text=stretch, line=lines.at(start))
        if read != self.characters:
            raise UserError(f"the text {CHANGED}")

    def _whole_pieces(self) -> Iterator[Piece]:
        left = array("Q", self.kept)
        for piece in self.corpus.pieces():
            if piece.number == len(left):
                raise UserError(f"the text {CHANGED}")
            cut = min(left[piece.number], len(piece.text))
            left[piece.number] -= cut
            if half := piece.text[cut:] if self.aside else piece.text[:cut]:
                line = _LinesOf(piece).at(cut) if self.aside else piece.line
                yield piece._replace(text=half, line=line)


class _LinesOf:
    """The lines of a file in which places of a piece stand, asked for from left to right."""

    def __init__(self, piece: Piece):
        self._text, self._line, self._place = piece.text, piece.line, 0
        self._is_one_line = is_json_lines(piece.file)

    def at(self, place: int) -> int:
        if not self._is_one_line:
            self._line += self._text.count("\n", self._place, place)
        self._place = place
        return self._line


def place_of(text: str, pieces: Iterable[Piece]) -> str:
    """The file and the line in which a text begins where it stands in documents first."""
    held: Piece | None = None  # the end of what was read of a document
    for new in pieces:
        piece = new
        if held is not None and held.number == new.number:
            piece = held._replace(text=held.text + new.text)
        lines = _LinesOf(piece)
        if (found := piece.text.find(text)) >= 0:
            return f"{title(piece.file)}, line {lines.at(found):,}"

        rest = max(len(piece.text) - len(text) + 1, 0)
        held = piece._replace(text=piece.text[rest:], line=lines.at(rest))
    return "a place that is not there any more"


def encode(tokenizer: Tokenizer, text: Corpus | Part) -> Iterator[Encoded]:
    """The tokens of a text, in pieces; UserError with the file and the line of a character that
    the tokenizer does not know."""
    try:
        yield from encode_in_pieces(tokenizer, chunks(text.documents()))
    except UnknownCharacter as unknown:
        place = place_of(unknown.character, text.pieces())
        raise UnknownCharacter(unknown.character, f"({place})") from None


def find_source(config: TextConfig, say: Say = lambda line: None) -> Source:
    """The files of the text that `config` names. A file to validate on is not trained on. Where
    whole documents are set aside, each file is read once: no document is on both sides."""
    if (*config.files, *config.validation).count(STANDARD_INPUT) > 1:
        raise UserError("standard input can be read once only; write it to a file first")
    found = find_files(config.files, say)
    aside = find_files(config.validation, say) if config.validation else ()
    check_text_field((*found, *aside), config.text_field)
    if config.split == "end" and aside:
        say("--split end does nothing beside --validation")

    to_validate = {identity(file) for file in aside}
    found = tuple(file for file in found if identity(file) not in to_validate)
    if not found:
        raise UserError(f"{' '.join(config.files)} is validation text too; train on another text")
    if config.split == "documents":
        found = each_once(found)

    training = Corpus(found, config.text_field)
    validation = Corpus(aside, config.text_field) if aside else None
    for names, corpus in ((config.files, training), (config.validation, validation)):
        if corpus is not None and not corpus.scan.lengths:
            raise UserError(f"there is no text in {' '.join(map(title, names))}")
    return Source(training, validation)


def check_text_field(files: Iterable[Path], text_field: str) -> None:
    """Refuse another field than the usual one if no file has fields: it would be ignored."""
    if text_field != TextConfig.text_field and not any(map(is_json_lines, files)):
        raise UserError(f"--text-field {text_field} is for .jsonl files, and there is none")


def find_again(config: TextConfig, fingerprint: str, say: Say = lambda line: None) -> Source:
    """The text that a run learned from; UserError if it cannot be read again or has changed."""
    if any(title(name) != name for name in config.files + config.validation):
        given = "standard input or from documents given in Python, which cannot be read again"
        raise UserError(f"the run learned from {given}")
    source = find_source(config, say)
    if source.fingerprint != fingerprint:
        raise UserError(f"{' '.join(config.files)} has changed since the run learned from it")
    return source


def read_again(config: TextConfig, fingerprint: str) -> tuple[Part, Part]:
    """What a run was trained and validated on, as of :func:`split`; errors as above."""
    return split(find_again(config, fingerprint), config)


def split(source: Source, config: TextConfig) -> tuple[Part, Part]:
    """What to train on, and what to validate on."""
    corpus, lengths = source.training, source.training.scan.lengths
    if (other := source.validation) is not None:
        all_of_it = other.scan.lengths
        validation = Part(sum(all_of_it), other, all_of_it)
        return Part(sum(lengths), corpus, lengths).at_most(config.max_characters), validation
    kept, most = array("Q", _kept(lengths, config)), config.max_characters
    training = Part(sum(kept), corpus, kept).at_most(most)
    rest = Part(sum(lengths) - sum(kept), corpus, kept, aside=True)
    return training, rest.at_most(most and min(most, max(most // 8, _TO_VALIDATE)))


def _kept(lengths: Sequence[int], config: TextConfig) -> Iterable[int]:
    """How many characters of each document are trained on."""
    if config.split == "documents" and len(lengths) > 1:
        chosen = set_aside(lengths, config.validation_fraction)
        return (0 if aside else n for n, aside in zip(lengths, chosen, strict=True))
    cut = int(sum(lengths) * (1 - config.validation_fraction))
    ends = accumulate(lengths)
    return (min(max(cut - end + n, 0), n) for n, end in zip(lengths, ends, strict=True))


def set_aside(lengths: Sequence[int], fraction: float) -> bytearray:
    """For each document, 1 if it is set aside, else 0: it is if that brings the share so far nearer
    to `fraction`. At least one is and one is not; if need be, the one whose length fits best."""
    chosen, owed = bytearray(), 0.0
    for length in lengths:
        owed += fraction * length
        chosen.append(owed > length / 2)
        owed -= length * chosen[-1]
    if all(chosen) or not any(chosen):
        wanted = sum(lengths) * (1 - fraction if all(chosen) else fraction)
        last_first = reversed(range(len(lengths)))
        chosen[min(last_first, key=lambda i: abs(lengths[i] - wanted))] ^= 1
    return chosen


def whole(documents: Iterable[Document]) -> list[str]:
    """The documents, each in one piece."""
    groups = groupby(documents, key=itemgetter(0))
    return ["".join(text for _, text in group) for _, group in groups]


def chunks(documents: Iterable[Document]) -> Iterator[TextChunk]:
    """Documents for the tokenizer, which puts an end of text between two of them."""
    last = None
    for number, text in documents:
        yield last is not None and number != last, text
        last = number


def _refuse_name(document: str, number: int) -> None:
    """Refuse a document that is the name of a file: a list of names would else be the text."""
    if 0 < len(document) < 256 and "\0" not in document and os.path.isfile(document):
        remedy = "give its name itself, or several as Paths"
        raise UserError(f"document {number} is {document!r}, the name of a file; {remedy}")


@contextlib.contextmanager
def spooled(documents: Iterable[Any], text_field: str) -> Iterator[Path]:
    """A temporary .jsonl file of documents: texts, or rows of a dataset that hold one."""
    with tempfile.TemporaryDirectory(prefix="minigpt-documents-") as folder:
        file = Path(folder) / "documents.jsonl"
        with open(file, "wb") as copy:
            for number, document in enumerate(documents, start=1):
                row = document
                if isinstance(document, str):
                    row = {text_field: document}
                    if number <= _MAYBE_NAMES:
                        _refuse_name(document, number)
                text = text_in(row, text_field, f"document {number}")
                copy.write(json.dumps({text_field: text}, ensure_ascii=False).encode() + b"\n")
        yield file


def _time(file: Path) -> tuple[int, int] | None:
    """When a file was last written to, and its size; None if it is not there."""
    with contextlib.suppress(OSError):
        status = file.stat()
        return status.st_mtime_ns, status.st_size
    return None
