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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .. import UserError

STANDARD_INPUT = "-"
BLOCK = 1 << 20  # bytes read at a time
_MARK = "<|endoftext|>"  # between documents: as the token
_SEPARATOR = re.compile(rf"\n+{re.escape(_MARK)}(?:\n+|\Z)")
_GZIP = b"\x1f\x8b"  # how such a file begins: RFC 1952
_DOCUMENTS = (b"PK\x03\x04", b"%PDF-", b"{\\rtf", b"\xd0\xcf\x11\xe0")  # docx, odt; pdf; rtf; doc


def read_text(file: Path, text_field: str) -> Iterator[tuple[bool, str]]:
    """The text of a file in pieces, and whether each is the first of its document.

    In a plain file a line <|endoftext|> separates two documents, and the empty lines around it
    belong to neither; in .jsonl each line is a document. Empty documents are left out. Line ends
    of Windows and of old Macs become \\n."""
    if _is_json_lines(file):
        return ((True, text) for _, text in _json_lines(file, text_field))
    return _separated(_plain_text(file))


def is_text(file: Path) -> bool:
    """Whether a file that nobody named is text, judging by its beginning."""
    try:
        next(read_text(file, ""), None)
        return True
    except UserError:
        return _is_json_lines(file)  # better an error than rows silently left out


def find_line(file: Path, text_field: str, stretch: str) -> int | None:
    """The number of the line of a file in which a stretch of its text begins."""
    if _is_json_lines(file):
        return next((n for n, text in _json_lines(file, text_field) if stretch in text), None)
    line, held = 1, ""
    for piece in _plain_text(file):
        before, found, _ = (held + piece).partition(stretch)
        if found:
            return line + before.count("\n")
        line, held = line + before[: -len(stretch)].count("\n"), before[-len(stretch) :]
    return None


def title(file: str | Path) -> str:
    """What to call a text: "stdin" or "documents" if the file is a temporary copy of them."""
    copy = re.match("minigpt-(stdin|documents)-", Path(file).parent.name)
    return copy[1] if copy else "stdin" if str(file) == STANDARD_INPUT else str(file)


def _is_json_lines(file: Path) -> bool:
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


def _separated(pieces: Iterator[str]) -> Iterator[tuple[bool, str]]:
    held, is_first = "", True
    for piece in itertools.chain(pieces, [""]):
        text = held + piece
        # The end of a piece may be the beginning of a separator.
        end = len(text.rstrip("\n<|>endoftx")) if piece else len(text)
        held = text[end:]
        text = text[:end]
        # To look for the mark by itself first makes reading three times as fast.
        *ended, text = _SEPARATOR.split(text) if _MARK in text else [text]
        for document in ended:
            if document:
                yield is_first, document
            is_first = True
        if text:
            yield is_first, text
            is_first = False


def _plain_text(file: Path) -> Iterator[str]:
    utf_8 = codecs.getincrementaldecoder("utf-8-sig")()
    decoder = io.IncrementalNewlineDecoder(utf_8, translate=True)
    position = 0
    with _opened(file) as content:
        for block in itertools.chain(iter(lambda: content.read(BLOCK), b""), [b""]):
            if position == 0 and (nul := block.find(b"\0")) >= 0:
                raise UserError(f"{title(file)} is not text: it has a NUL byte at offset {nul}")
            position += len(block)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                bad = error.object[error.start :]  # up to the end of the block
                found = f"byte 0x{bad[0]:02x} at offset {position - len(bad)}"
                raise _not_utf_8(file, f"not UTF-8: {found}", "latin1") from None
            if text:
                yield text


def _not_utf_8(file: Path, found: str, encoding: str) -> UserError:
    name = "" if title(file) != str(file) else shlex.quote(str(file)) + " "
    command = f"iconv -f {encoding} -t utf-8 {name}> utf8.txt"
    return UserError(f"{title(file)} is {found}; convert it, for instance with:  {command}")


def _json_lines(file: Path, text_field: str) -> Iterator[tuple[int, str]]:
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
            if text := text_in(row, text_field, place):
                yield line_number, text


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[io.BufferedReader | gzip.GzipFile]:
    """The content of a file, unpacked if it is gzip."""
    try:
        with open(file, "rb") as raw:
            content = gzip.GzipFile(fileobj=raw) if raw.peek(2).startswith(_GZIP) else raw
            if content.peek(8).startswith(_DOCUMENTS):
                kinds = "a word processor's file, a PDF or an archive"
                raise UserError(f"{title(file)} is {kinds}; save it as plain text (.txt, UTF-8)")
            if content.peek(2).startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise _not_utf_8(file, "UTF-16, not UTF-8", "utf-16")
            yield content
    except (OSError, EOFError, zlib.error) as error:  # gzip.BadGzipFile is an OSError
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"cannot read {title(file)}: {reason}") from None
