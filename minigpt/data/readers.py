"""One file to documents of text: plain text, JSON lines or Parquet, as it is or packed with gzip
or zstd. Files are read as streams, a megabyte at a time.
"""

import codecs
import gzip
import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from .. import UserError

SUFFIXES = (".txt", ".md", ".jsonl", ".parquet")  # of texts, each also with one of PACKED
PACKED = (".gz", ".zst")
BLOCK = 1 << 20  # bytes read at a time
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"  # how these formats begin: RFC 1952, RFC 8878
_ROWS = 256  # of a Parquet file read at a time


@dataclass(frozen=True)
class TextPiece:
    """A stretch of a document's text, and whether the document ends with it."""

    text: str
    ends_document: bool = False


def read_text(file: Path, text_field: str) -> Iterator[TextPiece]:
    """The text of a file in order, in pieces of about a megabyte.

    A plain file is a document; in .jsonl each line is one, in .parquet each row.

    Args:
        file: to read.
        text_field: name of the field or column that holds the text.

    Raises:
        UserError: naming the file, why it cannot be read, and where.
    """
    if kind(file) == ".jsonl":
        return _json_lines(file, text_field)
    if kind(file) == ".parquet":
        return _parquet(file, text_field)
    return _plain_text(file)


def kind(file: Path) -> str:
    """The suffix that says how to read a file, without .gz or .zst."""
    return Path(file.stem if file.suffix in PACKED else file.name).suffix.lower()


def open_stored(file: Path) -> BinaryIO:
    """Open a file to read its bytes as they are stored.

    Raises:
        UserError: naming the file and why it cannot be opened.
    """
    try:
        return open(file, "rb")
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None


def stored_size(file: Path) -> int:
    """Bytes of a file as they are stored."""
    with open_stored(file) as raw:
        return os.fstat(raw.fileno()).st_size


def _blocks(file: Path) -> Iterator[bytes]:
    """What was put into a file, unpacked if its content is gzip or zstd."""
    with open_stored(file) as raw:
        mark = raw.read(4)
        raw.seek(0)
        try:
            if mark.startswith(_ZSTD):
                yield from _unpacked_zstd(file, raw)
            else:
                source = _unpacked_gzip(raw) if mark.startswith(_GZIP) else raw
                while block := source.read(BLOCK):
                    yield block
        except (OSError, EOFError, zlib.error) as error:  # BadGzipFile is an OSError
            raise UserError(f"cannot read {file}: {error}") from None


def _unpacked_gzip(raw: BinaryIO) -> BinaryIO:
    return gzip.open(raw)  # type: ignore[return-value]


def _unpacked_zstd(file: Path, raw: BinaryIO) -> Iterator[bytes]:
    """The frames of a zstd file, one after the other (RFC 8878).

    The library's own stream ends in silence where a file was cut off.
    """
    try:
        import zstandard
    except ImportError:
        raise UserError(f"{file} is zstd, which needs: pip install zstandard") from None
    frame = None
    while packed := raw.read(1 << 12):  # which may unpack to a hundred megabytes
        while packed:
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            try:
                yield frame.decompress(packed)
            except zstandard.ZstdError as error:
                raise UserError(f"cannot read {file}: {error}") from None
            packed = frame.unused_data
            frame = None if frame.eof else frame
    if frame is not None:
        raise UserError(f"cannot read {file}: it ends in the middle")


def _plain_text(file: Path) -> Iterator[TextPiece]:
    decoder = codecs.getincrementaldecoder("utf-8")()
    offset = 0  # of the first byte that the decoder has not turned into text
    empty = True
    for block in _blocks(file):
        if offset == 0:
            _refuse_binary(file, block)
        pending = len(decoder.getstate()[0])
        text = _decode(decoder, block, file, offset - pending)
        if empty:
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


def _json_lines(file: Path, text_field: str) -> Iterator[TextPiece]:
    for number, line in enumerate(_lines(file), start=1):
        if not line.strip():
            continue
        place = f"{file}, line {number}"
        try:
            # json would guess at UTF-16 and UTF-32, which the other files may not be
            row = json.loads(line.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            raise UserError(f"{place}: not JSON in UTF-8") from None
        yield TextPiece(text_in(row, text_field, place), ends_document=True)


def _lines(file: Path) -> Iterator[bytes]:
    rest = b""
    for block in _blocks(file):
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
    yield rest


def _parquet(file: Path, text_field: str) -> Iterator[TextPiece]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UserError(f"{file} is Parquet, which needs: pip install pyarrow") from None
    try:
        with parquet.ParquetFile(file) as table:
            columns = table.schema_arrow.names
            if text_field not in columns:
                raise UserError(
                    f"{file} has no column {text_field!r}, only {', '.join(columns)}; "
                    "name the one that holds the text with --text-field"
                )
            batches = table.iter_batches(_ROWS, columns=[text_field])
            rows = (row for batch in batches for row in batch.to_pylist())
            for number, row in enumerate(rows, start=1):
                text = text_in(row, text_field, f"{file}, row {number}")
                yield TextPiece(text, ends_document=True)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {file}: {' '.join(str(error).split())}") from None


def text_in(row: Any, text_field: str, place: str) -> str:
    """The text of a row, which is a mapping.

    Raises:
        UserError: naming the place, if the row has no such field or it holds no text.
    """
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
