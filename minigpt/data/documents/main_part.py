"""Which blocks of a page are its main part, and which are around it: those that a class names as
navigation or the like, and paragraphs of links.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from .blocks import Block
from .boilerplate import is_heading_of_contents
from .document import Report

_LEAST_ENTRIES = 5  # links in a row that are a table of contents
_MOST_LINKS = 0.6  # share of a short paragraph's characters that may be links
_SHORT = 200  # characters
_LEAST_MAIN = 0.2  # share of the text that the main part has, or the page's names mislead


@dataclass(frozen=True)
class Inside:
    """Where in the page a text is."""

    is_left_out: bool = False  # for certain
    is_guessed: bool = False  # the name of a class says that it is around the main part
    is_main: bool = False
    is_link: bool = False
    leads_to_part: bool = False  # in a link to a part of a page, as the mark of a note is
    turns_the_page: bool = False  # in a link to the next page, or the one before
    is_verbatim: bool = False
    is_item: bool = False
    is_in_item: bool = False  # in an item of a list, perhaps in a heading there
    is_cited: bool = False  # by a letter, from another letter
    is_signature: bool = False  # of a letter
    level: int = 0


class PageBlock(NamedTuple):
    """A block, where it is, and how many of its characters are links."""

    block: Block
    inside: Inside
    links: int

    @property
    def is_guessed(self) -> bool:
        return self.inside.is_guessed


def without_contents(found: list[PageBlock], report: Report) -> list[PageBlock]:
    """The blocks of a chapter without lists of links to the chapters, wherever they stand."""
    kept: list[PageBlock] = []
    for may_be_entries, group in groupby(found, key=_may_be_entry):
        run = list(group)
        links = sum(map(_are_links, run))
        if may_be_entries and links >= max(_LEAST_ENTRIES, len(run) / 2):
            report.leave_out("entries of tables of contents", len(run))
            _drop_heading_of_contents(kept)
        else:
            kept += run
    return kept


def _may_be_entry(found: PageBlock) -> bool:
    """Whether a block may be an entry of a table of contents. Not every entry is a link."""
    is_short = len(found.block.text) < _SHORT
    is_item = found.inside.is_in_item and not found.inside.is_verbatim
    return _is_navigation(found) or (is_item and is_short)


def _drop_heading_of_contents(kept: list[PageBlock]) -> None:
    """Leave out a heading of a table of contents whose entries are left out."""
    if kept and is_heading_of_contents(kept[-1].block.text):
        kept.pop()


def without_frame(found: list[PageBlock], report: Report) -> list[PageBlock]:
    """The blocks of the main part, without what is around it."""
    kept = [one for one in found if not one.is_guessed]
    if _length(kept) < _LEAST_MAIN * _length(found):  # the names of classes mislead
        kept = found
    in_main = [one for one in kept if one.inside.is_main]
    if _length(in_main) >= _LEAST_MAIN * _length(kept):
        kept = in_main

    main: list[PageBlock] = []
    for one in kept:
        if _is_navigation(one):
            _drop_heading_of_contents(main)
        else:
            main.append(one)
    report.leave_out("paragraphs around the main part", len(found) - len(main))
    return main


def _is_navigation(found: PageBlock) -> bool:
    """Whether a paragraph is a short one of links."""
    return not found.block.level and _are_links(found)


def _are_links(found: PageBlock) -> bool:
    """Whether a short block is mostly links."""
    length = len(found.block.text)
    is_short = 0 < length < _SHORT and not found.inside.is_verbatim
    return is_short and found.links > _MOST_LINKS * length


def _length(found: Iterable[PageBlock]) -> int:
    return sum(len(one.block.text) for one in found)
