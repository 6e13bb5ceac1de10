"""What publishers add around a text: Project Gutenberg's header and licence, Standard Ebooks'
imprint, pages of rights in e-books."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from ...tokenizer import END_OF_TEXT
from .blocks import Block
from .document import Report

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
_SIGNS = re.compile(
    r"all rights reserved|ISBN|copyright (©|\(c\)|\d{4})|© ?\d{4}|first published|"
    r"library of congress|produced by|standard ebooks",
    re.I,
)
_CONTENTS = re.compile(
    r"(table of )?contents|inhalt(sverzeichnis)?|table des matières|índice|indice|inhoud", re.I
)
_LEAST_SIGNS = 2  # in a page of rights
_LONGEST_RIGHTS = 4000  # characters


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


def is_heading_of_contents(text: str) -> bool:
    """Whether a text is what is written above a table of contents."""
    return _CONTENTS.fullmatch(text) is not None


def is_page_of_rights(blocks: Iterable[Block]) -> bool:
    """Whether a part of an e-book says who has the rights, and no more."""
    text = "\n".join(block.text for block in blocks)
    if len(text) > _LONGEST_RIGHTS:
        return False
    return len({sign[0].lower() for sign in _SIGNS.finditer(text)}) >= _LEAST_SIGNS
