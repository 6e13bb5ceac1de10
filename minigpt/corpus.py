"""Files and folders to documents of text: what to read, how, and what to say when it cannot be.

A `Corpus` is read as a stream, as often as needed, and never held in memory whole.
"""

import atexit
import codecs
import glob
import gzip
import hashlib
import json
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from .config import UserError

SUFFIXES = (".txt", ".md", ".jsonl")  # what a folder is searched for, each also with .gz
STANDARD_INPUT = "-"
FABLES = "data/fables.txt"  # what is trained on if no text is named
_BLOCK = 1 << 20  # bytes read at a time


@dataclass(frozen=True)
class TextPiece:
    """A stretch of a document's text, and whether the document ends with it."""

    text: str
    ends_document: bool = False


@dataclass(frozen=True)
class Corpus:
    """Text files read one after the other, each a document (in .jsonl each line one).

    Args:
        files: the files, from :func:`find_files`.
        text_field: name of the field that holds the text in .jsonl files.
    """

    files: tuple[Path, ...]
    text_field: str = "text"

    def pieces(self) -> Iterator[TextPiece]:
        """The text in order, in pieces of about a megabyte.

        Raises:
            UserError: naming the file that cannot be read and why.
        """
        for file in self.files:
            if _kind(file) == ".jsonl":
                yield from self._json_lines(file)
            else:
                yield from _plain_text(file)

    @cached_property
    def characters(self) -> int:
        """Number of characters in all documents."""
        return sum(len(piece.text) for piece in self.pieces())

    @property
    def size(self) -> int:
        """Bytes of all files, as they are stored."""
        return sum(_stored_size(file) for file in self.files)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the files' bytes and lengths, as hexadecimal digits."""
        digest = hashlib.sha256(self.text_field.encode())
        for file in self.files:
            digest.update(f"{_kind(file)} {_stored_size(file)} ".encode())
            with _open_stored(file) as raw:
                while block := raw.read(_BLOCK):
                    digest.update(block)
        return digest.hexdigest()

    def _json_lines(self, file: Path) -> Iterator[TextPiece]:
        with _open(file) as raw:
            number = 0
            for number, line in enumerate(_lines(file, raw), start=1):
                if not line.strip():
                    continue
                try:
                    # json would guess at UTF-16 and UTF-32, which the other files may not be
                    text = json.loads(line.decode("utf-8-sig"))[self.text_field]
                    text.encode("utf-8")
                except (ValueError, RecursionError):
                    raise UserError(f"{file}, line {number}: not JSON in UTF-8") from None
                except (KeyError, TypeError, AttributeError):
                    raise UserError(
                        f"{file}, line {number}: no text in field {self.text_field!r}; "
                        "name the field with --text-field"
                    ) from None
                yield TextPiece(text, ends_document=True)


def find_files(names: tuple[str, ...]) -> tuple[Path, ...]:
    """The files that `names` stand for: files, folders (searched for .txt, .md, .jsonl and
    these with .gz), glob patterns, and "-" for standard input.

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
            inside = [f for f in sorted(path.rglob("*")) if f.is_file() and _kind(f) in SUFFIXES]
            if not inside:
                raise UserError(f"no {', '.join(SUFFIXES)} file (or .gz of one) in folder {name}")
            found += inside
        elif path.exists():
            found.append(path)
        elif matches := sorted(f for f in glob.glob(name, recursive=True) if Path(f).is_file()):
            found += map(Path, matches)
        else:
            raise UserError(f"no such file: {name}")
    return tuple(found)


def _fables() -> Path:
    """The text of the demo, from wherever minigpt is: a checkout, or an installed package."""
    package = Path(__file__).parent
    packed, checkout = package / "fables.txt", package.parent / FABLES
    return packed if packed.exists() else checkout


def _may_exist(name: str) -> bool:
    """Whether the system accepts `name` at all: not if it is empty or too long."""
    try:
        Path(name).exists()
    except (OSError, ValueError):
        return False
    return bool(name)


def _kind(file: Path) -> str:
    """The suffix that says how to read a file, without .gz."""
    return Path(file.stem if file.suffix == ".gz" else file.name).suffix.lower()


def _open_stored(file: Path) -> BinaryIO:
    try:
        return open(file, "rb")
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None


def _stored_size(file: Path) -> int:
    with _open_stored(file) as raw:
        return os.fstat(raw.fileno()).st_size


def _open(file: Path) -> BinaryIO:
    """Open a file to read what was put into it, unpacked if it is gzip."""
    with _open_stored(file) as raw:
        compressed = raw.read(2) == b"\x1f\x8b"  # the gzip format's mark, RFC 1952
    return gzip.open(file) if compressed else _open_stored(file)  # type: ignore[return-value]


def _blocks(file: Path, raw: BinaryIO) -> Iterator[bytes]:
    try:
        while block := raw.read(_BLOCK):
            yield block
    except (OSError, EOFError, zlib.error) as error:  # BadGzipFile is an OSError
        raise UserError(f"cannot read {file}: {error}") from None


def _plain_text(file: Path) -> Iterator[TextPiece]:
    decoder = codecs.getincrementaldecoder("utf-8")()
    offset = 0  # of the first byte that the decoder has not turned into text
    empty = True
    with _open(file) as raw:
        for block in _blocks(file, raw):
            if offset == 0:
                _refuse_binary(file, block)
            pending = len(decoder.getstate()[0])
            text = _decode(decoder, block, file, offset - pending)
            if offset == 0:
                text = text.removeprefix("\ufeff")  # the byte-order mark
            offset += len(block)
            if text:
                empty = False
                yield TextPiece(text)
        _decode(decoder, b"", file, offset - len(decoder.getstate()[0]), final=True)
    if not empty:
        yield TextPiece("", ends_document=True)


def _decode(
    decoder: codecs.IncrementalDecoder, block: bytes, file: Path, offset: int, final: bool = False
) -> str:
    """Decode a block; `offset` is where the bytes not yet decoded begin in the file."""
    try:
        return decoder.decode(block, final)
    except UnicodeDecodeError as error:
        raise UserError(
            f"{file} is not UTF-8: byte 0x{error.object[error.start]:02x} at offset "
            f"{offset + error.start}; convert it, for instance with "
            f"iconv -f latin1 -t utf-8 {file} > utf8.txt"
        ) from None


def _refuse_binary(file: Path, block: bytes) -> None:
    """A NUL byte never occurs in text, except in UTF-16 and UTF-32, whose marks are known."""
    if block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise UserError(
            f"{file} is UTF-16, not UTF-8; convert it, for instance with "
            f"iconv -f utf-16 -t utf-8 {file} > utf8.txt"
        )
    if (position := block.find(b"\0")) >= 0:
        raise UserError(f"{file} is a binary file, not text (a NUL byte at offset {position})")


def _lines(file: Path, raw: BinaryIO) -> Iterator[bytes]:
    rest = b""
    for block in _blocks(file, raw):
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
    yield rest


def _spooled_standard_input() -> Path:
    """Standard input copied to a temporary file, since a corpus is read more than once."""
    with tempfile.NamedTemporaryFile(prefix="minigpt-stdin-", suffix=".txt", delete=False) as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    copy = Path(file.name)
    atexit.register(copy.unlink, missing_ok=True)
    return copy
