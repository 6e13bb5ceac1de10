"""From files, folders and Python objects to documents of text, some set aside to validate on.

A `Corpus` is read as a stream, as often as needed; token_cache.py encodes its documents.
"""

import atexit
import contextlib
import difflib
import glob
import hashlib
import json
import os
import shlex
import sys
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO

from .. import UserError
from ..config import TextConfig
from ..tokenizer import TextChunk
from .readers import BLOCK, STANDARD_INPUT, is_text, read_text, text_in, title

TALES = "data/tales.txt"  # what is trained on if no text is named
_STRETCH = 1 << 14  # characters, where a part of a long text is taken
_TO_VALIDATE = 1 << 20  # characters of a longer text; evaluations read fewer
CHANGED = "changed while it was read; start again when it is complete"

Document = tuple[int, str]  # a document's number, and a piece of its text
Say = Callable[[str], object]  # gets the lines that a person should read


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
        number = -1
        for file in self.files:
            for is_first, text in read_text(file, self.text_field):
                number += is_first
                yield number, text

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
        """A part of this part, in stretches of so many characters."""
        if most is None:
            return self
        return replace(self, most=min(most, self.most or most), stretch=stretch)

    @property
    def size(self) -> int:
        """How many characters there are in the documents."""
        return min(self.characters, self.most or self.characters)

    def documents(self) -> Iterator[Document]:
        """Pieces of the documents, as of a :class:`Corpus`; UserError if a file has changed."""
        length = self.stretch if self.size < self.characters else 1 << 30
        read = taken = 0
        for number, text in self._whole_documents():
            for start in range(0, len(text), length):
                stretch = text[start : start + length]
                read += len(stretch)
                if (taken + len(stretch)) * self.characters <= self.size * read:
                    taken += len(stretch)
                    yield number, stretch
        if read != self.characters:
            raise UserError(f"the text {CHANGED}")

    def _whole_documents(self) -> Iterator[Document]:
        left = array("Q", self.kept)
        for number, text in self.corpus.documents():
            if number == len(left):
                raise UserError(f"the text {CHANGED}")
            cut = min(left[number], len(text))
            left[number] -= cut
            if half := text[cut:] if self.aside else text[:cut]:
                yield number, half


def find_source(config: TextConfig, say: Say = lambda line: None) -> Source:
    """The files of the text that `config` names. Where whole documents are set aside, each file is
    read once and a file to validate on is not trained on: no document is on both sides."""
    found = find_files(config.files, say)
    aside = find_files(config.validation, say) if config.validation else ()
    if config.split == "documents":
        seen, new = {file.resolve() for file in aside}, {file.resolve(): file for file in found}
        found = tuple(file for path, file in new.items() if path not in seen)
    if not found:
        raise UserError(f"{' '.join(config.files)} is validation text too; train on another text")
    validation = Corpus(aside, config.text_field) if aside else None
    source = Source(Corpus(found, config.text_field), validation)
    if not source.training.scan.lengths:
        raise UserError(f"there is no text in {' '.join(map(title, config.files))}")
    return source


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


def find_files(names: tuple[str, ...], say: Say = lambda line: None) -> tuple[Path, ...]:
    """The files that `names` stand for: files, folders to search, glob patterns, "-" for stdin."""
    found: list[Path] = []
    for name in names:
        pattern = f"{glob.escape(name)}/**" if os.path.isdir(name) else name
        if name == STANDARD_INPUT and sys.stdin is not None:  # it may be closed
            folder = tempfile.TemporaryDirectory(prefix="minigpt-stdin-")
            atexit.register(folder.cleanup)
            found.append(Path(folder.name) / "stdin.txt")
            with open(found[-1], "wb") as copy:
                _copy_standard_input(copy)
        elif os.path.exists(name) and not os.path.isdir(name):
            found.append(Path(name))
        elif matches := glob.glob(pattern, recursive=True):
            found += _texts(name, matches, say)
        elif name == TALES:  # of an installed package, or of a checkout
            packed = Path(__file__).parents[1] / "tales.txt"
            found.append(packed if packed.exists() else packed.parents[1] / TALES)
        else:
            raise UserError(f"no such file: {name}{_hint(name)}")
    return tuple(found)


def _copy_standard_input(copy: BinaryIO) -> None:
    """Piece by piece as they come, so that a signal has its effect between two of them."""
    standard_input: Any = sys.stdin.buffer
    while block := standard_input.read1(BLOCK):
        copy.write(block)


def _texts(place: str, found: Iterable[str], say: Say) -> list[Path]:
    """Those of the files that hold text, whatever their names; what is left out is said."""
    files = sorted(Path(name) for name in found if os.path.isfile(name))
    texts = list(filter(is_text, files))
    if left_out := [file.name for file in sorted({*files} - {*texts})]:
        names = ", ".join(left_out[:3]) + f" and {len(left_out) - 3} more" * (len(left_out) > 3)
        say(f"left out of {place}, since it is not plain text in UTF-8: {names}")
    if not texts:
        raise UserError(f"there is no text in {place}")
    return texts


def _hint(name: str) -> str:
    """Which file might have been meant: one with a space in its name, or one spelled alike."""
    path = Path(name)
    with contextlib.suppress(OSError):
        others = [file.name for file in path.parent.iterdir()]
        near = [other for other in others if name and other.startswith(f"{path.name} ")]
        if near := near or difflib.get_close_matches(path.name, others, 1, 0.75):
            return f"; did you mean {shlex.quote(str(path.with_name(near[0])))}?"
    return ""


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


@contextlib.contextmanager
def spooled(documents: Iterable[Any], text_field: str) -> Iterator[Path]:
    """A temporary .jsonl file of documents: texts, or rows of a dataset that hold one."""
    with tempfile.TemporaryDirectory(prefix="minigpt-documents-") as folder:
        file = Path(folder) / "documents.jsonl"
        with open(file, "wb") as copy:
            for number, document in enumerate(documents, start=1):
                row = {text_field: document} if isinstance(document, str) else document
                text = text_in(row, text_field, f"document {number}")
                copy.write(json.dumps({text_field: text}, ensure_ascii=False).encode() + b"\n")
        yield file


def _time(file: Path) -> tuple[int, int] | None:
    """When a file was last written to, and its size; None if it is not there."""
    with contextlib.suppress(OSError):
        status = file.stat()
        return status.st_mtime_ns, status.st_size
    return None
