"""What belongs to the main part of a page: what its tags are for, as their names, roles, classes
and ids say, and which blocks are around it, such as paragraphs of links.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from .document import Report
from .html_tags import Tag
from .paragraphs import Block, is_heading_of_contents

_LEAST_ENTRIES = 5  # links in a row that are a table of contents
_MOST_LINKS = 0.6  # share of a short paragraph's characters that may be links
_SHORT = 200  # characters
_LEAST_MAIN = 0.2  # share of the text that the main part has, or the page's names mislead
_FRAME = {"nav": "navigation", "aside": "asides", "footer": "page footers", "dialog": "navigation"}
_ROLES = {
    "navigation": "navigation", "banner": "page headers", "contentinfo": "page footers",
    "search": "navigation", "complementary": "asides", "menu": "navigation",
    "menubar": "navigation", "toolbar": "navigation", "dialog": "navigation",
    "doc-noteref": "marks of notes", "doc-backlink": "marks of notes", "doc-toc": "navigation",
    "doc-endnotes": "notes", "doc-footnote": "notes",
}  # fmt: skip
_BOOK = {  # epub:type
    "noteref": "marks of notes", "backlink": "marks of notes", "footnote": "notes",
    "footnotes": "notes", "endnote": "notes", "endnotes": "notes", "rearnote": "notes",
    "rearnotes": "notes", "pagebreak": "page numbers", "toc": "tables of contents",
    "landmarks": "tables of contents", "page-list": "tables of contents",
    "loi": "tables of contents", "lot": "tables of contents", "titlepage": "title pages",
    "halftitlepage": "title pages", "imprint": "imprints", "colophon": "imprints",
    "copyright-page": "imprints", "cover": "covers",
}  # fmt: skip
_NAVIGATION = re.compile(
    r"(?:(?:main|site|page|doc|top|left|right|global|primary|secondary|mobile|sphinx|md|wy|rst|related)"
    r"[-_]?)?(?:nav|navheader|navfooter|navbar|navbox|navigation|menu|sidebar|sidenav|breadcrumbs?|footer|pagination|"
    r"pager|toc|tableofcontents|table-of-contents|localtoc|searchbox|related|share|sharing|social|"
    r"cookies?|cookie-banner|banner|newsletter|headerlink|header-link|anchor-link|anchorjs-link|"
    r"skip-link|skiplink|mw-editsection|mw-jump-link|catlinks|printfooter|noprint|linenos|linenodiv|"
    r"viewcode-link|viewcode-back|prev-next|prev-next-area|edit-this-page|copybtn|toctree-wrapper|"
    r"comments|comments-area|comments-section|commentlist|respond|disqus_thread|related-?posts|"
    r"jp-relatedposts|sharedaddy|pg-header|pg-footer|pgheader|pg-boilerplate|pg-machine-header|pg-start-separator|visually-hidden|"
    r"sr-only|screen-reader-text)(?:[-_](?:wrapper|container|links?|menu|bar|list|inner|content|panel))?"
)
_NEVER_AROUND = {"html", "body", "main", "article", "h1", "h2", "h3"}
_NOTE = re.compile(r"foot-?note-?(ref|reference|marker|link)|note-?ref|fnref|pginternal-note")
_NOTES = {"footnotes", "footnote", "endnotes", "endnote", "reflist"}  # classes of notes


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


# What a tag is for


def why_left_out(tag: Tag, *, is_paragraph: bool, is_in_main: bool, has_frame: bool) -> str:
    """Why the content of a tag is certainly left out; empty if it is read. A page with a frame has
    headers, footers and navigation around its main part."""
    attributes = tag.attributes
    if not attributes and tag.name not in _FRAME and tag.name != "header":
        return ""
    for kind in attributes.get("epub:type", "").lower().split():
        if kind in _BOOK:
            return _BOOK[kind]
    role = attributes.get("role", "").lower()
    if role in _ROLES:
        return _ROLES[role]

    classes = attributes.get("class", "").lower()
    if is_paragraph and not _NOTES.isdisjoint(classes.split()):
        return "notes"
    if tag.name == "ol" and "references" in classes.split():
        return "notes"
    names = f"{classes} {attributes.get('id', '').lower()}"
    is_mark = tag.name in ("a", "sup", "span") and _NOTE.search(names) is not None
    if is_mark:
        return "marks of notes"
    if "hidden" in attributes and attributes["hidden"].lower() != "until-found":
        return "hidden parts"
    if "display:none" in attributes.get("style", "").replace(" ", "").lower():
        return "hidden parts"
    if not has_frame:
        return ""
    if tag.name == "header" and not is_in_main:
        return "page headers"
    return _FRAME.get(tag.name, "")


def cites(tag: Tag) -> bool:
    """Whether a tag is around what a letter cites of another one, as mailers write it. Quotations
    that the writer made are not marked in this way."""
    attributes = tag.attributes
    if tag.name != "blockquote":
        return attributes.get("name") == "quote"
    is_typed = attributes.get("type", "").lower() == "cite"
    is_named = "quote" in attributes.get("class", "").lower() or is_typed
    return is_named or "border-left:" in attributes.get("style", "").lower().replace(" ", "")


def signs(tag: Tag) -> bool:
    """Whether a tag is around the signature of a letter, as mailers write it."""
    names = f"{tag.attributes.get('class', '')} {tag.attributes.get('id', '')}"
    return tag.name in ("div", "span", "table") and "signature" in names.lower()


def looks_like_navigation(tag: Tag) -> bool:
    """Whether the name of its class says that a tag holds what is around the text."""
    if not tag.attributes or tag.name in _NEVER_AROUND:
        return False
    names = [*tag.attributes.get("class", "").split(), tag.attributes.get("id", "")]
    return any(_NAVIGATION.fullmatch(name.lower()) for name in names[:20] if name)
