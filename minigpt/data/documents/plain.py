"""Plain text: a document, or several between which a line says <|endoftext|>."""

import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ...tokenizer import END_OF_TEXT
from .boilerplate import plain_without_gutenberg
from .content import Content
from .document import Document, Report, without_invisible
from .encoding import plain_blocks

# A line that holds nothing else, and the line ends before it.
_SEPARATOR = re.compile(rf"((?<!\n)\n++[ \t]*+{re.escape(END_OF_TEXT)}[ \t]*+)(?=\n|\Z)")
_MOST_HELD = 1 << 20  # characters that may be the beginning of a separator, or white space alone


def read_plain(content: Content, report: Report) -> Iterator[Document]:
    """The text of a plain file in pieces of about a megabyte.

    A line <|endoftext|> separates two documents, and the empty lines around it belong to neither.
    Documents of white space alone are left out, and so are characters that nobody sees. Line ends
    of Windows and of old Macs become \\n."""
    blocks = map(without_invisible, plain_blocks(content, report))
    text = plain_without_gutenberg(blocks, report)
    return without_blank_ones(separated(text, content.source))


def documents_in_rows(
    rows: Iterable[tuple[int, Any]], source: Path, report: Report
) -> Iterator[Document]:
    """The documents of rows, each given as a line number and a text. A text is one document, or
    several if there are marks in it. A row whose text is null, a number or the like is a row
    without text."""
    for line, value in rows:
        text = without_invisible(value) if _is_text(value) else ""
        if END_OF_TEXT in text:
            for document in without_blank_ones(separated([text], source)):
                yield document._replace(line=line, is_row=True)
        elif text and not text.isspace():
            yield Document(text, source, line=line, is_row=True)
        else:
            report.leave_out("rows without text")


def _is_text(value: Any) -> bool:
    """Whether a value is text: JSON can name half a surrogate pair, which is none."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def separated(blocks: Iterable[str], source: Path) -> Iterator[Document]:
    """The documents of a text in blocks."""
    held = "\n"  # a text begins as a line does: as if a line end had come before
    line = 0  # the number of the line that this line end ends
    is_start = True  # of the text: that line end has to be removed yet
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
        parts = _SEPARATOR.split(text) if END_OF_TEXT in text else [text]
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
                yield Document(document, source, line=line, is_first=is_first)
                line += document.count("\n")
                is_first = False
                follows_mark = False


def _where_a_separator_may_begin(text: str) -> int:
    """The place from which on the end of a text may begin a separator; its length if there is
    none."""
    last_line = text.rfind("\n") + 1
    if last_line == 0:  # a separator begins with a line end, and there is none
        return len(text)
    may_be_mark = END_OF_TEXT.startswith(text[last_line:].strip(" \t"))
    if not may_be_mark:
        return len(text)

    place = len(text[:last_line].rstrip("\n"))
    is_held = len(text) - place <= _MOST_HELD
    return place if is_held else len(text)


def without_blank_ones(pieces: Iterable[Document]) -> Iterator[Document]:
    """Documents that hold more than white space, or more than a megabyte of it."""
    blank: Document | None = None  # the beginning of a document, white space so far
    for new in pieces:
        piece = new
        if blank is not None and not new.is_first:
            piece = blank._replace(text=blank.text + new.text)

        blank = None
        if piece.is_first and piece.text.isspace() and len(piece.text) <= _MOST_HELD:
            blank = piece
        else:
            yield piece
