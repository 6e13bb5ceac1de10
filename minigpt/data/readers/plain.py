"""Plain text: a document, or several between which a line says <|endoftext|>, without what Project
Gutenberg puts around each book.
"""

import itertools
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from ...tokenizer import END_OF_TEXT
from .content import MOST_WHOLE, Content
from .document import Document, Report, without_invisible
from .encoding import plain_blocks
from .paragraphs import Block

# A line that holds nothing else, and the line ends before it.
_SEPARATOR = re.compile(rf"((?<!\n)\n++[ \t]*+{re.escape(END_OF_TEXT)}[ \t]*+)(?=\n|\Z)")
_MOST_HELD = 1 << 20  # characters that may be the beginning of a separator, or white space alone
GUTENBERG = "Project Gutenberg's header and licence"
_NAMES = ("Gutenberg", "GUTENBERG", "SMALL PRINT!", "new eBooks.")  # each line below has one
_HEADER = re.compile(  # the first line of a header
    r".{0,40}?\bProject Gutenberg(?:['’]s\b| (?:of Australia )?(?:e-?book|e-?text|edition))", re.I
)
_START = re.compile(  # before 2003, the book begins after the small print
    r"\s*(?:\*\*\* ?START OF (?:THE|THIS) PROJECT GUTENBERG|\*END\*? ?THE SMALL PRINT!)", re.I
)
_END = re.compile(
    r"\s*(?:\*\*\* ?END OF (?:THE|THIS) PROJECT GUTENBERG|End of (?:the )?Project Gutenberg)", re.I
)
_LAST = "to hear about new eBooks."  # how the licence ends
_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # with its end
_LONGEST = 40_000  # characters of a header, or a licence
_LONGEST_LINE = 10_000  # characters; a longer one is text


def read_plain(content: Content, report: Report) -> Iterator[Document]:
    """The text of a plain file in pieces of about a megabyte.

    A line <|endoftext|> separates two documents, and the empty lines around it belong to neither.
    Documents of white space alone are left out, and so are characters that nobody sees. Line ends
    of Windows and of old Macs become \\n."""
    blocks = map(without_invisible, plain_blocks(content, report))
    text = plain_without_gutenberg(blocks, report)
    return without_blank_ones(separated(text, content.source))


def all_text(content: Content, report: Report) -> str:
    """The whole text of a plain file, which must not be too large."""
    most = content.limit(MOST_WHOLE)
    size = 0
    parts = []
    for block in plain_without_gutenberg(plain_blocks(content, report), report):
        size += len(block)
        if size > most:
            raise content.too_large(most)
        parts.append(block)
    return "".join(parts)


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


# Project Gutenberg


def without_gutenberg(parts: Iterable[Sequence[Block]], report: Report) -> list[list[Block]]:
    """Parts of a text without what Project Gutenberg puts around each book. A part that holds
    several books becomes several."""
    given = list(parts)
    lines = (line for part in given for block in part for line in block.text.split("\n"))
    are_text = (is_text for _, is_text in _with_is_text(lines, report))

    found: list[list[Block]] = []
    for part in given:
        found.append([])
        for block in part:
            own = zip(block.text.split("\n"), are_text, strict=False)
            for is_text, group in groupby(own, key=itemgetter(1)):
                if is_text:
                    found[-1].append(block._replace(text="\n".join(line for line, _ in group)))
                else:
                    found.append([])
    return [part for part in found if part]


def plain_without_gutenberg(blocks: Iterable[str], report: Report) -> Iterator[str]:
    """A plain text, which comes in blocks, without what Project Gutenberg puts around each book.

    In its place come as many line ends and the mark between documents, so that the lines after it
    keep their numbers."""
    for is_text, group in groupby(_with_is_text(_lines(blocks), report), key=itemgetter(1)):
        if is_text:
            yield from _joined(line for line, _ in group)
            continue
        lines = sum(line.count("\n") for line, _ in group)
        yield "\n" * max(lines - 1, 0) + END_OF_TEXT + "\n"


def _joined(lines: Iterable[str]) -> Iterator[str]:
    """The text of the lines in large blocks, so that far fewer go through the readers."""
    parts: list[str] = []
    size = 0
    for line in lines:
        parts.append(line)
        size += len(line)
        if size > _LONGEST:
            yield "".join(parts)
            parts = []
            size = 0
    if parts:
        yield "".join(parts)


def _lines(blocks: Iterable[str]) -> Iterator[str]:
    """The lines of a text, each with its end. Those of a block that does not name Project Gutenberg
    stay together, which is faster."""
    rest = ""  # of a line that goes on in the next block
    for block in blocks:
        text = rest + block
        end = text.rfind("\n") + 1
        if len(text) - end > _LONGEST_LINE:
            end = len(text)
        rest = text[end:]
        if any(name in text for name in _NAMES):
            yield from _LINE.findall(text[:end])
        elif end:
            yield text[:end]
    if rest:
        yield rest


def _with_is_text(lines: Iterable[str], report: Report) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it belongs to a text: neither to a header nor to a licence.

    A header or a licence has a limited number of characters. So a text that is joined to a book,
    before or after it, is kept, and so is a book whose last line is missing."""
    held: deque[str] = deque()  # the last lines, which may be a header
    size = 0  # characters of the lines held, or of the licence
    is_beginning = True  # all lines so far are held: a header may begin with any first line
    is_book = False  # the line that begins a book has come, the line that ends it has not
    is_licence = False

    for line in lines:
        is_named = any(name in line for name in _NAMES)
        is_start = is_named and _START.match(line) is not None
        is_end = is_named and _END.match(line) is not None

        if is_start or is_end:
            begin = len(held)
            if is_start:
                begin = _where_a_header_begins(held, otherwise=0 if is_beginning else begin)
            for number, before in enumerate(held):
                yield before, number < begin
            yield line, False
            if is_start or not (is_book or is_licence):
                report.leave_out(GUTENBERG)
            held.clear()
            size = 0
            is_beginning = False
            is_book = is_start
            is_licence = is_end
            continue

        size += len(line)
        is_licence = is_licence and size <= _LONGEST
        if is_licence:
            yield line, False
            if _LAST in line:
                is_licence = False
                size = 0
            continue

        held.append(line)
        while size > _LONGEST and held:
            size -= len(held[0])
            yield held.popleft(), True
            is_beginning = False

    for line in held:
        yield line, True


def _where_a_header_begins(lines: Iterable[str], otherwise: int) -> int:
    """The number of the first of these lines that begins a header."""
    for number, line in enumerate(lines):
        if _HEADER.match(line):
            return number
    return otherwise
