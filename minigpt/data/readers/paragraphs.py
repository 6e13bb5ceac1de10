"""Paragraphs, headings and rows of tables, as the readers of documents find them, how they become
documents, and which styles hide them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from .document import Document, without_invisible

_LEAST_CHAPTERS = 5  # fewer headings of a level do not cut a text: validation would take too much
_LEAST_LENGTH = 1000  # characters of a chapter, on average; shorter ones are sections
_LEAST_LINES = 8  # of verses
_SHORT = 80  # characters; lines of verses are shorter
_CONTENTS = re.compile(
    r"(table of )?contents|inhalt(sverzeichnis)?|table des matières|índice|indice|inhoud", re.I
)

T = TypeVar("T")


class Block(NamedTuple):
    """A paragraph, a heading or a line of a list, a table or a verse."""

    text: str
    level: int = 0  # of a heading, from 1; 0 if it is none
    is_line: bool = False  # no empty line separates it from another such block


def in_one_line(text: str) -> str:
    """The text with single spaces, without what nobody sees."""
    return " ".join(without_invisible(text).split())


def paragraph_of(text: str, level: int = 0, is_item: bool = False) -> Block:
    """A paragraph in which lines are broken on purpose, without empty lines: a heading if it has a
    level, or else perhaps an item of a list."""
    lines = (in_one_line(line) for line in text.split("\n"))
    written = "\n".join(line for line in lines if line)
    if is_item and written and not level:
        return Block(f"- {written}", is_line=True)
    return Block(written, level)


def text_of_office(paragraphs: Sequence[Block], source: Path) -> Iterator[Document]:
    """The chapters of a text from an office program, in which empty paragraphs may part verses."""
    return documents_of(chapters(verses(paragraphs)), source)


def documents_of(parts: Iterable[Sequence[Block]], source: Path) -> Iterator[Document]:
    """A document for each part that has text. Their line numbers count through all parts."""
    line = 1
    for part in parts:
        text = joined(part)
        if text.strip():
            yield Document(text, source, line=line)
            line += text.count("\n") + 2


def joined(blocks: Iterable[Block]) -> str:
    """The blocks as text, with an empty line between paragraphs."""
    paragraphs = []
    written = [block for block in blocks if block.text]
    for is_line, group in groupby(written, key=lambda block: block.is_line):
        texts = [block.text for block in group]
        paragraphs += ["\n".join(texts)] if is_line else texts
    return "\n\n".join(paragraphs)


def chapters(blocks: Sequence[Block]) -> list[Sequence[Block]]:
    """The blocks, cut before each heading of the chapters; in one part if there are no chapters.

    Chapters begin at the headings of the highest level that has enough of them. A heading directly
    above one, such as "Book One", stays with the chapter after it."""
    characters = sum(len(block.text) for block in blocks)
    for level in range(1, 7):
        starts = [number for number, block in enumerate(blocks) if block.level == level]
        is_chapters = len(starts) >= _LEAST_CHAPTERS
        if is_chapters and characters >= _LEAST_LENGTH * len(starts):
            return _cut_before(blocks, starts)
    return [blocks]


def _cut_before(blocks: Sequence[Block], starts: Sequence[int]) -> list[Sequence[Block]]:
    """The blocks, cut before each start, or before the headings directly above it."""
    cuts = []
    for start in starts:
        cut = start
        while cut > 0 and blocks[cut - 1].level:
            cut -= 1
        cuts.append(cut)
    places = sorted({0, *cuts, len(blocks)})
    return [blocks[begin:end] for begin, end in pairwise(places)]


def verses(paragraphs: Sequence[Block]) -> list[Block]:
    """The paragraphs that have text. If they are lines of verses or of diary entries, which empty
    paragraphs separate, the lines of a verse or an entry become one block."""
    written = [block for block in paragraphs if block.text]
    empty = len(paragraphs) - len(written)
    is_short = bool(written) and sorted(map(_length, written))[len(written) // 2] < _SHORT
    is_verse = is_short and len(written) / 8 < empty < len(written) * 0.7
    is_verse = is_verse and len(written) >= _LEAST_LINES
    if not is_verse:
        return written

    lines = []
    for block in paragraphs:
        is_line = block.level == 0
        lines.append(block._replace(is_line=is_line))
    return _with_gaps(lines)


def _with_gaps(lines: Iterable[Block]) -> list[Block]:
    """Lines joined to paragraphs where no empty block is between them."""
    kept: list[Block] = []
    for is_gap, group in groupby(lines, key=lambda block: not block.text or block.level > 0):
        if is_gap:
            kept += [block for block in group if block.text]
        else:
            kept.append(Block("\n".join(block.text for block in group)))
    return kept


def _length(block: Block) -> int:
    return len(block.text)


# Styles


@dataclass
class Style:
    """The format of paragraphs or of characters."""

    name: str = ""  # in lower case
    base: str = ""  # the id of the style on which it is based
    is_hidden: bool | None = None  # None if it does not say


def is_hidden_by(style: str, styles: Mapping[str, Style]) -> bool | None:
    """Whether a style hides what has it; None if neither it nor what it is based on says."""
    seen = set()
    while style in styles and style not in seen:
        seen.add(style)
        found = styles[style]
        if found.is_hidden is not None:
            return found.is_hidden
        style = found.base
    return None


# Tables


class TextWithTables(Generic[T]):
    """What is read of a text, in its order. What the cells of a row hold is joined at its end."""

    def __init__(self, join_cells: Callable[[list[list[T]]], list[T]]):
        self.found: list[T] = []
        self._join_cells = join_cells
        self._rows: list[list[list[T]]] = []  # that are open: what their cells hold

    def begin_row(self) -> None:
        """A row begins, perhaps inside the cell of another one."""
        self._rows.append([])

    def begin_cell(self) -> None:
        """A cell of the innermost row begins; outside of a row nothing happens."""
        if self._rows:
            self._rows[-1].append([])

    def end_row(self) -> None:
        """The innermost row ends, if there is one."""
        if self._rows:
            for one in self._join_cells(self._rows.pop()):
                self.add(one)

    def add(self, one: T) -> None:
        """Add to the cell that is open, or to the text; what comes before the first cell of a row
        stands before the row."""
        if self._rows and self._rows[-1]:
            self._rows[-1][-1].append(one)
        else:
            self.found.append(one)


def row_of(cells: list[list[Block]]) -> list[Block]:
    """The row of a table as a line, with tabs between its cells. If only one cell has text, the
    table is there for the layout: the blocks of the cell are returned as they are."""
    written = [[block for block in cell if block.text] for cell in cells]
    filled = [cell for cell in written if cell]
    if len(filled) <= 1:
        return [block for cell in filled for block in cell]

    texts = [" ".join(block.text.replace("\n", " ") for block in cell) for cell in written]
    return [Block("\t".join(texts).rstrip("\t"), is_line=True)]


def is_heading_of_contents(text: str) -> bool:
    """Whether a text is what is written above a table of contents."""
    return _CONTENTS.fullmatch(text) is not None
