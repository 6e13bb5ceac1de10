"""From one file to pieces of text: plain text or JSON lines, each also packed with gzip.

Files are read as streams, about a megabyte at a time; corpus.py joins them.
"""

import codecs
import contextlib
import gzip
import io
import itertools
import json
import re
import shlex
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .. import UserError
from .temporary import kind_of

STANDARD_INPUT = "-"
BLOCK = 1 << 20  # bytes read at a time
_MARK = "<|endoftext|>"  # between documents: as the token
# A line that holds nothing else, and the line ends before it.
_SEPARATOR = re.compile(rf"(\n+[ \t]*{re.escape(_MARK)}[ \t]*)(?=\n|\Z)")
_MOST_HELD = 1 << 20  # characters that may be the beginning of a separator, or white space alone
_GZIP = b"\x1f\x8b"  # how such a file begins: RFC 1952
_DOCUMENTS = (b"PK\x03\x04", b"%PDF-", b"{\\rtf", b"\xd0\xcf\x11\xe0")  # docx, odt; pdf; rtf; doc


class Unreadable(UserError):
    """A file that cannot be opened, or is damaged; `reason` says why in two words or so."""

    def __init__(self, file: Path, reason: str):
        super().__init__(f"cannot read {title(file)}: {reason}")
        self.reason = reason


class TextPiece(NamedTuple):
    """A piece of a document."""

    is_first: bool  # of its document
    line: int  # the number of the file's line in which it begins
    text: str


def read_text(file: Path, text_field: str) -> Iterator[TextPiece]:
    """The text of a file in pieces of about a megabyte.

    A line <|endoftext|> separates two documents, and the empty lines around it belong to neither.
    In .jsonl each line is a document, or several with such lines between them. Documents of white
    space alone are left out. In a plain file line ends of Windows and of old Macs become \\n."""
    if is_json_lines(file):
        return _documents_in_rows(_json_lines(file, text_field))
    return _without_blank_ones(_separated(_plain_text(file)))


def is_text(file: Path) -> bool:
    """Whether a file that nobody named is text, judging by its beginning; Unreadable is raised."""
    try:
        next(read_text(file, ""), None)
        return True
    except Unreadable:
        raise
    except UserError:
        return is_json_lines(file)  # better an error than rows silently left out


def title(file: str | Path) -> str:
    """What to call a text: "stdin" or "documents" if the file is a temporary copy of them."""
    if str(file) == STANDARD_INPUT:
        return "stdin"
    return kind_of(Path(file)) or str(file)


def is_json_lines(file: Path) -> bool:
    """Whether each line of a file is a document: its name says so."""
    return file.name.lower().removesuffix(".gz").endswith(".jsonl")


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


def _separated(blocks: Iterable[str]) -> Iterator[TextPiece]:
    """The documents of a text in blocks."""
    held = "\n"  # a text begins as a line does: as if a line end had come before
    line = 0  # that of this line end
    is_start = True  # of the text: the line end is still there
    is_first = True  # the next piece is the first of its document
    follows_mark = False  # nothing but line ends has come since the last mark

    for block in itertools.chain(blocks, [""]):  # the empty one says that no other comes
        read = held + block
        end = _where_a_separator_may_begin(read) if block else len(read)
        text = read[:end]
        held = read[end:]
        if not text:
            continue

        # To look for the mark by itself first makes reading three times as fast.
        parts = _SEPARATOR.split(text) if _MARK in text else [text]
        for number, part in enumerate(parts):
            is_separator = number % 2 == 1
            if is_separator:
                line += part.count("\n")
                is_first = True
                follows_mark = True
                continue

            document = part
            if follows_mark:
                document = part.lstrip("\n")
            elif is_start:
                document = part[1:]
            is_start = False

            left_out = len(part) - len(document)
            line += part.count("\n", 0, left_out)
            if document:
                yield TextPiece(is_first, line, document)
                line += document.count("\n")
                is_first = False
                follows_mark = False


def _where_a_separator_may_begin(text: str) -> int:
    """The place in a text from which on it may be the beginning of a separator; or its end."""
    last_line = text.rfind("\n") + 1
    if last_line == 0:  # there is no line end, with which a separator begins
        return len(text)
    may_be_mark = _MARK.startswith(text[last_line:].strip(" \t"))
    if not may_be_mark:
        return len(text)

    place = len(text[:last_line].rstrip("\n"))
    is_held = len(text) - place <= _MOST_HELD
    return place if is_held else len(text)


def _without_blank_ones(pieces: Iterable[TextPiece]) -> Iterator[TextPiece]:
    """Documents that hold more than white space, or more than a megabyte of it."""
    blank: TextPiece | None = None  # the beginning of a document, white space so far
    for new in pieces:
        piece = new
        if blank is not None and not new.is_first:
            piece = blank._replace(text=blank.text + new.text)

        blank = None
        if piece.is_first and piece.text.isspace() and len(piece.text) <= _MOST_HELD:
            blank = piece
        else:
            yield piece


def _documents_in_rows(rows: Iterable[tuple[int, str]]) -> Iterator[TextPiece]:
    """The documents of rows, each a line's number and its text: one each, or several with marks."""
    for line, text in rows:
        if _MARK in text:
            for piece in _without_blank_ones(_separated([text])):
                yield piece._replace(line=line)
        elif not text.isspace():
            yield TextPiece(True, line, text)


def _plain_text(file: Path) -> Iterator[str]:
    """The text of a plain file, in blocks."""
    utf_8 = codecs.getincrementaldecoder("utf-8-sig")()
    decoder = io.IncrementalNewlineDecoder(utf_8, translate=True)
    position = 0  # bytes read so far

    with _opened(file) as content:
        is_last = False
        while not is_last:
            block = content.read(BLOCK)
            is_last = not block
            if position == 0:
                _refuse_nul(block, file)
            position += len(block)

            try:
                text = decoder.decode(block, final=is_last)
            except UnicodeDecodeError as error:
                bad = error.object[error.start :]  # up to the end of the block
                found = f"byte 0x{bad[0]:02x} at offset {position - len(bad)}"
                raise _not_utf_8(file, f"not UTF-8: {found}", "latin1") from None
            if text:
                yield text


def _refuse_nul(block: bytes, file: Path) -> None:
    """Refuse a file that has a NUL byte in its first block: it is not text."""
    nul = block.find(b"\0")
    if nul >= 0:
        raise UserError(f"{title(file)} is not text: it has a NUL byte at offset {nul}")


def _not_utf_8(file: Path, found: str, encoding: str) -> UserError:
    """An error with the command that converts a file from an encoding."""
    is_copy = title(file) != str(file)  # such as that of standard input, which iconv reads too
    name = "" if is_copy else shlex.quote(str(file)) + " "
    command = f"iconv -f {encoding} -t utf-8 {name}> utf8.txt"
    return UserError(f"{title(file)} is {found}; convert it, for instance with:  {command}")


def _json_lines(file: Path, text_field: str) -> Iterator[tuple[int, str]]:
    """The rows of a .jsonl file that have a text: the number of each line, and its text."""
    with _opened(file) as content:
        for line_number, line in enumerate(content, start=1):
            if not line.strip():
                continue
            place = f"{title(file)}, line {line_number}"
            try:
                # Given bytes, json would also accept UTF-16 and UTF-32, unlike for plain text.
                row = json.loads(line.decode("utf-8-sig"))
            except (ValueError, RecursionError):
                raise UserError(f"{place}: not JSON in UTF-8") from None

            text = text_in(row, text_field, place)
            if text:
                yield line_number, text


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[io.BufferedReader | gzip.GzipFile]:
    """The content of a file, unpacked if it is gzip."""
    try:
        with open(file, "rb") as raw:
            is_packed = raw.peek(2).startswith(_GZIP)
            content = gzip.GzipFile(fileobj=raw) if is_packed else raw

            if content.peek(8).startswith(_DOCUMENTS):
                kinds = "a word processor's file, a PDF or an archive"
                raise UserError(f"{title(file)} is {kinds}; save it as plain text (.txt, UTF-8)")
            if content.peek(2).startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise _not_utf_8(file, "UTF-16, not UTF-8", "utf-16")
            yield content
    except (OSError, EOFError, zlib.error) as error:  # gzip.BadGzipFile is an OSError
        reason = getattr(error, "strerror", None) or str(error)
        raise Unreadable(file, reason) from None
