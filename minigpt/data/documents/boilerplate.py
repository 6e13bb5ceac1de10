"""What publishers add around a text: Project Gutenberg's header and licence, Standard Ebooks'
imprint, pages of rights in e-books."""

import re
from collections.abc import Iterable, Iterator, Sequence

from .blocks import Block
from .document import Report
from .mark import MARK

GUTENBERG = "Project Gutenberg's header and licence"
_START = re.compile(  # before 2003, the book begins after the small print
    r"^\s*(\*\*\* ?START OF (THE|THIS) PROJECT GUTENBERG|\*END\*? ?THE SMALL PRINT!).*$",
    re.M | re.I,
)
_END = re.compile(
    r"^\s*(\*\*\* ?END OF (THE|THIS) PROJECT GUTENBERG|End of (the )?Project Gutenberg).*$",
    re.M | re.I,
)
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
_END_BEGINS = 200  # characters that may be the beginning of the line


def book_within(blocks: Sequence[Block], report: Report) -> slice:
    """Which blocks are between Project Gutenberg's header and its licence: all without them."""
    start = 0
    end = len(blocks)
    for number, block in enumerate(blocks):
        if _START.search(block.text) and start == 0:
            start = number + 1
        elif _END.search(block.text):
            end = number
            break
    if start or end < len(blocks):
        report.leave_out(GUTENBERG)
    return slice(start, end)


def is_heading_of_contents(text: str) -> bool:
    """Whether a text is what is written above a table of contents."""
    return _CONTENTS.fullmatch(text) is not None


def is_page_of_rights(blocks: Iterable[Block]) -> bool:
    """Whether a part of an e-book says who has the rights, and no more."""
    text = "\n".join(block.text for block in blocks)
    if len(text) > _LONGEST_RIGHTS:
        return False
    return len({sign[0].lower() for sign in _SIGNS.finditer(text)}) >= _LEAST_SIGNS


def plain_without_gutenberg(blocks: Iterable[str], report: Report) -> Iterator[str]:
    """A plain text, which comes in blocks, without Project Gutenberg's header and licence.

    Only a text whose first block has the line that begins the book is changed. In place of the
    header come as many line ends and the line between documents, so that lines keep their numbers.
    """
    given = iter(blocks)
    first = next(given, None)
    if first is None:
        return
    start = _START.search(first)
    if start is None:
        yield first
        yield from given
        return

    report.leave_out(GUTENBERG)
    lines = first.count("\n", 0, start.end())
    held = "\n" * lines + MARK + first[start.end() :]
    for block in given:
        end = _END.search(held)
        if end is not None:
            break
        cut = max(len(held) - _END_BEGINS, 0)
        yield held[:cut]
        held = held[cut:] + block
    end = _END.search(held)
    yield held if end is None else held[: end.start()].rstrip("\n")
