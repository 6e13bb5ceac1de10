"""From files, folders and Python objects to documents of text, some set aside to validate on.

A `Corpus` is read as a stream, as often as needed, and is never held in memory whole. Next comes
token_cache.py, which encodes the documents.
"""

import atexit
import contextlib
import glob
import hashlib
import json
import os
import shutil
import sys
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

from .. import UserError
from ..config import TextConfig
from ..tokenizer import TextChunk
from .readers import SUFFIXES, kind, read_text, text_in

STANDARD_INPUT = "-"
FABLES = "data/fables.txt"  # what is trained on if no text is named
CHANGED = "changed while it was read; start again when it is complete"
_PACKAGE = Path(__file__).parents[1]
_COPIES = {"stdin": "minigpt-stdin-", "documents": "minigpt-documents-"}  # folders of copies

Document = tuple[int, str]  # a document's number, and a piece of its text


@dataclass(frozen=True)
class Scan:
    """What one reading of a corpus tells about its text, packed or not."""

    fingerprint: str  # SHA-256 of the documents
    text_bytes: int  # in UTF-8
    lengths: Sequence[int]  # of each document, in characters
    ends: Sequence[int]  # for each file, the number of documents up to its end
    times: Sequence[object]  # when each file had been written to


@dataclass(frozen=True)
class Corpus:
    """Text files, read one after the other; `text_field` holds the text of a line of .jsonl."""

    files: tuple[Path, ...]
    text_field: str = "text"

    def documents(self) -> Iterator[Document]:
        """The text in pieces of about a megabyte, each with the number of its document."""
        first = 0
        for file in self.files:
            number = -1
            for number, text in read_text(file, self.text_field):
                yield first + number, text
            first += number + 1

    def scan(self) -> Scan:
        """Read all of it once; later calls return the same."""
        return self._scan

    @cached_property
    def _scan(self) -> Scan:
        digest, text_bytes, lengths, ends, times = hashlib.sha256(), 0, array("Q"), [], []
        for file in self.files:
            times.append(_time(file))
            digest.update(b"\xfe")  # this byte and the next occur in no text in UTF-8
            first = len(lengths)
            for number, text in read_text(file, self.text_field):
                if first + number == len(lengths):
                    digest.update(b"\xff")
                    lengths.append(0)
                encoded = text.encode()
                digest.update(encoded)
                text_bytes += len(encoded)
                lengths[-1] += len(text)
            ends.append(len(lengths))
        return Scan(digest.hexdigest(), text_bytes, lengths, ends, times)


@dataclass(frozen=True)
class Source:
    """The text of a run: what to train on, and what to validate on if that is separate."""

    training: Corpus
    validation: Corpus | None
    weighted: tuple[Corpus, ...] = ()  # the training text again, in the parts that have weights

    @property
    def fingerprint(self) -> str:
        """A hash of all of it."""
        own = self.validation.scan().fingerprint if self.validation else ""
        return hashlib.sha256((self.training.scan().fingerprint + own).encode()).hexdigest()

    def check_unchanged(self) -> None:
        """Refuse files that were written to after they were scanned."""
        for corpus in filter(None, (self.training, self.validation)):
            for file, time in zip(corpus.files, corpus.scan().times, strict=True):
                if _time(file) != time:
                    raise UserError(f"{file} {CHANGED}")


@dataclass(frozen=True)
class Part:
    """A part of the text that is encoded on its own: its length, and its documents."""

    characters: int
    documents: Callable[[], Iterator[Document]]  # from the beginning


def find_source(config: TextConfig) -> Source:
    """The files of the text that `config` names.

    Where whole documents are set aside, a file that is named twice is read once, and a file to
    validate on is not trained on: no document is on both sides.
    """
    found = [find_files((name,)) for name in config.files]
    aside = find_files(config.validation) if config.validation else ()
    if config.split == "documents":
        seen = {file.resolve() for file in aside}
        for i, files in enumerate(found):
            new = {file.resolve(): file for file in files}
            found[i] = tuple(file for path, file in new.items() if path not in seen)
            seen.update(new)
    for name, files in zip(config.files, found, strict=True):
        if not files and (config.weights or not any(found)):
            raise UserError(f"{name} is validation text too, or named twice; name it only once")
    training = Corpus(tuple(chain(*found)), config.text_field)
    validation = Corpus(aside, config.text_field) if config.validation else None
    parts = (Corpus(files, config.text_field) for files in found)
    return Source(training, validation, tuple(parts) if config.weights else ())


def find_files(names: tuple[str, ...]) -> tuple[Path, ...]:
    """The files that `names` stand for: files, folders to search, glob patterns, "-" for stdin."""
    found: list[Path] = []
    for name in names:
        if name == STANDARD_INPUT:
            found.append(_copy_of_standard_input())
        elif os.path.isdir(name):
            wanted = (*SUFFIXES, ".parquet")  # better an error than a file silently left out
            inside = (file for file in sorted(Path(name).rglob("*")) if kind(file) in wanted)
            if not (files := [file for file in inside if os.path.isfile(file)]):
                raise UserError(f"no {', '.join(SUFFIXES)} file (or .gz of one) in folder {name}")
            found += files
        elif os.path.exists(name):
            found.append(Path(name))
        elif matches := sorted(f for f in glob.glob(name, recursive=True) if os.path.isfile(f)):
            found += map(Path, matches)
        elif name == FABLES:  # of an installed package, or of a checkout
            packed = _PACKAGE / "fables.txt"
            found.append(packed if packed.exists() else _PACKAGE.parent / FABLES)
        else:
            raise UserError(f"no such file: {name}")
    return tuple(found)


def split(source: Source, config: TextConfig) -> tuple[list[Part], Part]:
    """The parts to train on (one for each weight, or just one), and the part to validate on."""
    scan, first, training = source.training.scan(), 0, []
    kept = array("Q")  # of each document the first characters, to train on
    parts = source.weighted or (source.training,)
    for corpus, files in zip(parts, accumulate(len(part.files) for part in parts), strict=True):
        lengths = scan.lengths[first : scan.ends[files - 1]]
        if not lengths:
            raise UserError(f"there is no text in {', '.join(map(str, corpus.files))}")
        own = array("Q", lengths if source.validation else _kept(lengths, config))
        training.append(Part(sum(own), partial(_half, corpus, own, aside=False)))
        kept += own
        first += len(own)
    if (other := source.validation) is not None:
        return training, Part(sum(other.scan().lengths), other.documents)
    rest = sum(scan.lengths) - sum(kept)
    return training, Part(rest, partial(_half, source.training, kept, aside=True))


def _half(corpus: Corpus, kept: Sequence[int], aside: bool) -> Iterator[Document]:
    """The first `kept` characters of each document, or, if `aside`, the characters after them."""
    last, position = -1, 0
    for number, text in corpus.documents():
        if number >= len(kept):
            raise UserError(f"the text {CHANGED}")
        position = position if number == last else 0
        cut = max(kept[number] - position, 0)
        if half := text[cut:] if aside else text[:cut]:
            yield number, half
        last, position = number, position + len(text)


def _kept(lengths: Sequence[int], config: TextConfig) -> Iterator[int]:
    """How many characters of each document are trained on."""
    if config.split == "documents" and len(lengths) > 1:
        chosen = set_aside(lengths, config.validation_fraction)
        yield from (0 if aside else n for n, aside in zip(lengths, chosen, strict=True))
        return
    left = int(sum(lengths) * (1 - config.validation_fraction))
    for length in lengths:
        yield min(length, left)
        left -= min(length, left)


def set_aside(lengths: Sequence[int], fraction: float) -> bytearray:
    """For each document, 1 if it is set aside and 0 if not.

    They are spread over the text: a document is set aside whenever this brings the share set aside
    so far nearer to `fraction`. Of several documents at least one is set aside and at least one is
    not; if need be, the one whose length fits best.
    """
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


def chunks(documents: Iterable[Document]) -> Iterator[TextChunk]:
    """Documents for the tokenizer, which puts an end of text between two of them."""
    last = None
    for number, text in documents:
        yield last is not None and number != last, text
        last = number


@contextlib.contextmanager
def spooled(documents: Iterable[Any], text_field: str) -> Iterator[Path]:
    """A temporary .jsonl file of documents, since a corpus is read more than once.

    A document is a text, or a mapping that holds one, such as a row of a Hugging Face dataset.
    """
    with tempfile.TemporaryDirectory(prefix=_COPIES["documents"]) as folder:
        file = Path(folder) / "documents.jsonl"
        with open(file, "wb") as copy:
            for number, document in enumerate(documents, start=1):
                row = {text_field: document} if isinstance(document, str) else document
                text = text_in(row, text_field, f"document {number}")
                copy.write(json.dumps({text_field: text}, ensure_ascii=False).encode() + b"\n")
        yield file


def _copy_of_standard_input() -> Path:
    folder = tempfile.TemporaryDirectory(prefix=_COPIES["stdin"])
    atexit.register(folder.cleanup)
    file = Path(folder.name) / "stdin.txt"
    with open(file, "wb") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
    return file


def spooled_from(file: str | Path) -> str | None:
    """Whether a temporary file is a copy of "stdin" or of "documents"; None for other files."""
    folder = Path(file).parent.name
    return next((what for what, start in _COPIES.items() if folder.startswith(start)), None)


def _time(file: Path) -> tuple[int, int] | None:
    """When a file was last written to, in nanoseconds, and its size; None if it is not there."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
