"""Files, folders and Python objects to documents of text.

A `Corpus` is read as a stream, as often as needed, and never held in memory whole.
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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from .. import UserError
from ..config import TextConfig
from .readers import (
    BLOCK,
    PACKED,
    SUFFIXES,
    TextPiece,
    kind,
    open_stored,
    read_text,
    stored_size,
    text_in,
)

STANDARD_INPUT = "-"
FABLES = "data/fables.txt"  # what is trained on if no text is named
_SPOOLED = {"stdin": "minigpt-stdin-", "documents": "minigpt-documents-"}  # names of copies


@dataclass(frozen=True)
class Corpus:
    """Text files read one after the other, each a document or many.

    Args:
        files: the files, from :func:`find_files`.
        text_field: name of the field that holds the text in .jsonl and .parquet files.
    """

    files: tuple[Path, ...]
    text_field: str = "text"

    def pieces(self) -> Iterator[TextPiece]:
        """The text in order, in pieces of about a megabyte.

        Raises:
            UserError: naming the file that cannot be read and why.
        """
        for file in self.files:
            yield from read_text(file, self.text_field)

    def documents(self) -> Iterator[tuple[int, str]]:
        """The same: each piece with the number of its document, counted from 0.

        What is empty is left out, pieces and documents.
        """
        number, is_empty = 0, True
        for piece in self.pieces():
            if piece.text:
                is_empty = False
                yield number, piece.text
            if piece.ends_document and not is_empty:
                number, is_empty = number + 1, True

    @property
    def size(self) -> int:
        """Bytes of all files, as they are stored."""
        return sum(stored_size(file) for file in self.files)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the files' bytes and lengths, as hexadecimal digits."""
        _ = self._times  # before anything is read
        digest = hashlib.sha256(self.text_field.encode())
        for file in self.files:
            digest.update(f"{kind(file)} {stored_size(file)} ".encode())
            with open_stored(file) as raw:
                while block := raw.read(BLOCK):
                    digest.update(block)
        return digest.hexdigest()

    def check_unchanged(self) -> None:
        """Refuse files that have been written to since the fingerprint was taken.

        Raises:
            UserError: naming the first.
        """
        for file, time in zip(self.files, self._times, strict=True):
            if _time(file) != time:
                raise UserError(f"{file} changed while it was read; start again once it is whole")

    @cached_property
    def _times(self) -> list[tuple[int, int]]:
        return [_time(file) for file in self.files]


@dataclass(frozen=True)
class Source:
    """The text of a run: what to train on, and what to validate on if that is separate.

    Args:
        training: all of it.
        validation: if separate.
        weighted: the training text again, in the parts that each have a weight, if they have.
    """

    training: Corpus
    validation: Corpus | None
    weighted: tuple[Corpus, ...] = ()

    @property
    def fingerprint(self) -> str:
        """A hash of all of it."""
        own = self.validation.fingerprint if self.validation else ""
        return hashlib.sha256((self.training.fingerprint + own).encode()).hexdigest()

    def check_unchanged(self) -> None:
        """Refuse files that have been written to since the fingerprint was taken.

        Raises:
            UserError: naming the first.
        """
        for corpus in (self.training, self.validation):
            if corpus is not None:
                corpus.check_unchanged()


def find_source(config: TextConfig) -> Source:
    """The files of the text that `config` names.

    Where documents are set aside, a file that is named twice is read once, and one that is named
    to validate on is not trained on: no document is on both sides.

    Raises:
        UserError: if there is no such file, or none that is left to train on.
    """
    field = config.text_field
    found = [find_files((name,)) for name in config.files]
    aside = find_files(config.validation) if config.validation else ()
    if config.split == "documents":
        found = _apart(found, aside)
    for name, files in zip(config.files, found, strict=True):
        if not files and (config.weights or not any(found)):
            raise UserError(f"{name} is to be validated on, or named before; leave it out once")
    training = Corpus(tuple(file for files in found for file in files), field)
    validation = Corpus(aside, field) if config.validation else None
    weighted = tuple(Corpus(files, field) for files in found) if config.weights else ()
    return Source(training, validation, weighted)


def _apart(found: Sequence[Iterable[Path]], aside: Iterable[Path]) -> list[tuple[Path, ...]]:
    """The same lists of files without those that an earlier list or `aside` has."""
    seen = {file.resolve() for file in aside}
    lists = []
    for files in found:
        new = {file.resolve(): file for file in files if file.resolve() not in seen}
        seen.update(new)
        lists.append(tuple(new.values()))
    return lists


def find_files(names: tuple[str, ...]) -> tuple[Path, ...]:
    """The files that `names` stand for: files, folders (searched for .txt, .md, .jsonl, .parquet
    and these with .gz or .zst), glob patterns, and "-" for standard input.

    Raises:
        UserError: naming what does not exist or holds no text file.
    """
    found: list[Path] = []
    for name in names:
        path = Path(name)
        if name == STANDARD_INPUT:
            found.append(_spooled_standard_input())
        elif name == FABLES and not path.exists():
            found.append(_fables())
        elif not _may_exist(name):
            raise UserError(f"no such file: {name}")
        elif path.is_dir():
            inside = [f for f in sorted(path.rglob("*")) if f.is_file() and kind(f) in SUFFIXES]
            if not inside:
                raise UserError(
                    f"no {', '.join(SUFFIXES)} file (or {' or '.join(PACKED)} of one) "
                    f"in folder {name}"
                )
            found += inside
        elif path.exists():
            found.append(path)
        elif matches := sorted(f for f in glob.glob(name, recursive=True) if Path(f).is_file()):
            found += map(Path, matches)
        else:
            raise UserError(f"no such file: {name}")
    return tuple(found)


@contextlib.contextmanager
def spooled(documents: Iterable[Any], text_field: str) -> Iterator[Path]:
    """A temporary .jsonl file of documents, since a corpus is read more than once.

    Args:
        documents: texts, or mappings that hold one, such as the rows of a Hugging Face dataset.
        text_field: the field that holds the text of a mapping.

    Raises:
        UserError: naming the number of a document that holds no text.
    """
    file = _temporary("documents", ".jsonl")
    try:
        with open(file, "w", encoding="utf-8") as lines:
            for number, document in enumerate(documents, start=1):
                row = {text_field: document} if isinstance(document, str) else document
                text = text_in(row, text_field, f"document {number}")
                lines.write(json.dumps({text_field: text}, ensure_ascii=False) + "\n")
        yield file
    finally:
        file.unlink(missing_ok=True)


def spooled_from(file: str | Path) -> str | None:
    """What a temporary file is a copy of, "stdin" or "documents"; None for other files."""
    name = Path(file).name
    return next((what for what, prefix in _SPOOLED.items() if name.startswith(prefix)), None)


def _spooled_standard_input() -> Path:
    """Standard input copied to a temporary file, since a corpus is read more than once."""
    copy = _temporary("stdin", ".txt")
    atexit.register(copy.unlink, missing_ok=True)
    with open(copy, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return copy


def _temporary(what: str, suffix: str) -> Path:
    descriptor, name = tempfile.mkstemp(prefix=_SPOOLED[what], suffix=suffix)
    os.close(descriptor)
    return Path(name)


def _fables() -> Path:
    """The text of the demo, from wherever minigpt is: a checkout, or an installed package."""
    package = Path(__file__).parents[1]
    packed, checkout = package / "fables.txt", package.parent / FABLES
    return packed if packed.exists() else checkout


def _may_exist(name: str) -> bool:
    """Whether the system accepts `name` at all: not if it is empty or too long."""
    try:
        Path(name).exists()
    except (OSError, ValueError):
        return False
    return bool(name)


def _time(file: Path) -> tuple[int, int]:
    """When a file was last written to, in nanoseconds, and its size then."""
    try:
        status = file.stat()
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    return status.st_mtime_ns, status.st_size
