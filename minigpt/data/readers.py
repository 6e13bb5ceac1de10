"""From one file to pieces of text: plain text, Markdown or JSON lines, each also packed with gzip.

This is the first step of a text on its way to a model; corpus.py joins the files. Files are read as
streams, about a megabyte at a time.
"""

import codecs
import contextlib
import gzip
import itertools
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from .. import UserError

SUFFIXES = (".txt", ".md", ".jsonl")  # of the files that are read, each also with .gz
BLOCK = 1 << 20  # bytes read at a time
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"  # how these formats begin: RFC 1952, RFC 8878


def read_text(file: Path, text_field: str) -> Iterator[tuple[int, str]]:
    """The text of a file in pieces, each with the number of its document, counted from 0.

    A plain file is one document; in .jsonl each line is one. Empty documents are left out.
    """
    if kind(file) == ".jsonl":
        return _json_lines(file, text_field)
    return ((0, text) for text in _plain_text(file))


def kind(file: Path) -> str:
    """The suffix that says how to read a file; of my.txt.gz it is .txt."""
    return Path(file.name.lower().removesuffix(".gz").removesuffix(".zst")).suffix


def text_in(row: Any, text_field: str, place: str) -> str:
    """The text in a field of a row, which is a mapping; `place` is the row's name in errors."""
    try:
        text: str = row[text_field]
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        raise UserError(f"{place}: not JSON in UTF-8") from None
    except (KeyError, IndexError, TypeError, AttributeError):
        raise UserError(
            f"{place}: no text in field {text_field!r}; name the field with --text-field"
        ) from None
    return text


def _plain_text(file: Path) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")()
    position, is_start = 0, True
    with _opened(file) as content:
        blocks = iter(lambda: content.read(BLOCK), b"")
        for block in itertools.chain(blocks, [b""]):
            if position == 0:
                _refuse_binary(file, block)
            undecoded = len(decoder.getstate()[0])  # bytes of a character that has not ended
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                offset = position - undecoded + error.start
                raise UserError(
                    f"{file} is not UTF-8: byte 0x{error.object[error.start]:02x} at offset "
                    f"{offset}; convert it, for instance with "
                    f"iconv -f latin1 -t utf-8 {file} > utf8.txt"
                ) from None
            position += len(block)
            if is_start and text:
                text, is_start = text.removeprefix("\ufeff"), False  # the byte-order mark
            if text:
                yield text


def _json_lines(file: Path, text_field: str) -> Iterator[tuple[int, str]]:
    number = 0
    with _opened(file) as content:
        for line_number, line in enumerate(content, start=1):
            if not line.strip():
                continue
            place = f"{file}, line {line_number}"
            try:
                # Given bytes, json would also accept UTF-16 and UTF-32, unlike for plain text.
                row = json.loads(line.decode("utf-8-sig"))
            except (ValueError, RecursionError):
                raise UserError(f"{place}: not JSON in UTF-8") from None
            if text := text_in(row, text_field, place):
                yield number, text
                number += 1


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    """The content of a file, unpacked if it is gzip."""
    try:
        with open(file, "rb") as raw:
            start = raw.peek(4)
            if kind(file) == ".parquet" or start.startswith(_ZSTD):
                _refuse_foreign(file)
            is_packed = start.startswith(_GZIP)
            yield gzip.GzipFile(fileobj=raw) if is_packed else raw  # type: ignore[misc]
    except (OSError, EOFError, zlib.error) as error:  # gzip.BadGzipFile is an OSError
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"cannot read {file}: {reason}") from None


def _refuse_foreign(file: Path) -> None:
    """Refuse a format that is not read here, with the line of Python that reads it."""
    name, options = {".parquet": ("parquet", ""), ".jsonl": ("json", "")}.get(
        kind(file), ("text", ', sample_by="document"')
    )
    raise UserError(
        f"{file} is {'Parquet' if name == 'parquet' else 'zstd'}, which is read with the library "
        f'datasets: minigpt.train(datasets.load_dataset("{name}", data_files="{file}"{options}))'
    )


def _refuse_binary(file: Path, block: bytes) -> None:
    """Refuse a file with a NUL byte, which text in UTF-8 never holds."""
    if block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise UserError(
            f"{file} is UTF-16, not UTF-8; convert it, for instance with "
            f"iconv -f utf-16 -t utf-8 {file} > utf8.txt"
        )
    if (position := block.find(b"\0")) >= 0:
        raise UserError(f"{file} is a binary file, not text (a NUL byte at offset {position})")
