"""An e-book in EPUB: its chapters in the order of its spine, without covers, title pages, tables of
contents, imprints and notes."""

import re
import urllib.parse
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ... import UserError
from .archive import opened_zip, part_name, part_of
from .content import DAMAGED, Content, reason_of
from .document import Document, Refused, Report, Unreadable
from .html import blocks_of_page, decoded_page
from .paragraphs import Block, chapters, documents_of, is_heading_of_contents
from .plain import without_gutenberg
from .xml import Start, events

_CONTAINER = "META-INF/container.xml"
_TEXTS = ("application/x-dtbook+xml", "text/x-oeb1-document")  # in EPUB 2, beside XHTML
_MOST_FALLBACKS = 10  # one after the other; they may lead in a circle
_LEAST_CHAPTERS = 5  # files of the spine; fewer are no chapters
_SIGNS = re.compile(
    r"all rights reserved|ISBN|copyright (©|\(c\)|\d{4})|© ?\d{4}|first published|"
    r"library of congress|produced by|standard ebooks",
    re.I,
)
_LEAST_SIGNS = 2  # in a page of rights
_LONGEST_RIGHTS = 4000  # characters


class _Item(NamedTuple):
    """A file of the book, by its manifest."""

    name: str  # in the zip file
    media_type: str
    properties: str
    fallback: str = ""  # the id of the file to read if this one is no text

    @property
    def is_text(self) -> bool:
        return self.media_type in _TEXTS or "html" in self.media_type


def read_epub(content: Content, report: Report) -> Iterator[Document]:
    """The chapters of a book."""
    with opened_zip(content) as archive:
        parts = without_gutenberg(_parts(archive, content, report), report)
    if len(parts) < _LEAST_CHAPTERS:
        blocks = [block for part in parts for block in part]
        yield from documents_of(chapters(blocks), content.source)
    else:
        yield from documents_of(_with_titles(parts), content.source)


def _parts(archive: zipfile.ZipFile, content: Content, report: Report) -> Iterator[list[Block]]:
    """The blocks of each file of the spine that belongs to the text."""
    names = set(archive.namelist())
    protected = _protected(archive, names, content)
    is_read = False
    problems = []
    for item in _spine(archive, content):
        if item.name in protected:
            raise Refused(content.source, "is protected against copying (DRM)", "locked")
        why = _why_left_out(item, names)
        if why:
            report.leave_out(why)
            continue

        try:
            blocks = _blocks(archive, item, content, report)
        except (*DAMAGED, UserError) as error:
            report.leave_out("chapters that cannot be read")
            report.note(f"{item.name} cannot be read: {reason_of(error)}")
            problems.append(error)
            continue
        is_read = True
        if blocks:
            yield blocks
    if problems and not is_read:
        raise problems[0]


def _why_left_out(item: _Item, names: set[str]) -> str:
    """Why a file of the spine is not read; empty if it is."""
    if "nav" in item.properties.split():
        return "tables of contents"
    if item.name not in names:
        return "chapters that are missing"
    return "" if item.is_text else "parts that are no text"


def _blocks(archive: zipfile.ZipFile, item: _Item, content: Content, report: Report) -> list[Block]:
    """The blocks of a file of the spine that belong to the text. A file without any is counted
    once."""
    with part_of(archive, item.name, content) as part:
        page = decoded_page(part.read(), content, report)
    before = report.left_out.total()
    blocks = blocks_of_page(page, content, report, is_book=True)
    if _is_page_of_rights(blocks):
        report.leave_out("imprints")
        return []
    if blocks and is_heading_of_contents(blocks[0].text):
        report.leave_out("tables of contents")
        return []
    is_counted = report.left_out.total() > before
    report.leave_out("chapters without text", not blocks and not is_counted)
    return blocks


def _with_titles(parts: Sequence[list[Block]]) -> list[list[Block]]:
    """The parts; a part that has only headings is joined to the next one."""
    joined: list[list[Block]] = []
    titles: list[Block] = []
    for part in parts:
        if all(block.level for block in part):
            titles += part
        else:
            joined.append([*titles, *part])
            titles = []
    return joined


def _spine(archive: zipfile.ZipFile, content: Content) -> list[_Item]:
    """The files of the book in the order of the spine. Those that it puts outside the order of
    reading (linear="no") are in it too: some books say so of their chapters."""
    package = _package(archive, content)
    items: dict[str, _Item] = {}
    order: dict[str, None] = {}  # the ids of the files
    with part_of(archive, package, content) as part:
        for event in events(part, content):
            if not isinstance(event, Start):
                continue
            get = event.attributes.get
            if event.name == "item" and "href" in event.attributes:
                href = urllib.parse.unquote(get("href", "").partition("#")[0])
                name = part_name(href, package)
                kind = get("media-type", "")
                items[get("id", "")] = _Item(name, kind, get("properties", ""), get("fallback", ""))
            elif event.name == "itemref":
                order.setdefault(get("idref", ""))

    if not items.keys() & order.keys():
        raise Unreadable(content.source, "the book names no chapters")
    return [_readable(name, items) for name in order]


def _readable(name: str, items: dict[str, _Item]) -> _Item:
    """The file with this id or, if it is no text, the first text among its fallbacks."""
    item = items.get(name, _Item("", "", ""))
    instead = item
    for _ in range(_MOST_FALLBACKS):
        if instead.is_text:
            return instead
        instead = items.get(instead.fallback, item)
    return item


def _package(archive: zipfile.ZipFile, content: Content) -> str:
    """The name of the file that describes the book."""
    with part_of(archive, _CONTAINER, content) as part:
        for event in events(part, content):
            if isinstance(event, Start) and event.name == "rootfile":
                return part_name(event.attributes.get("full-path", ""), "")
    raise Unreadable(content.source, "the book is not described in it")


def _protected(archive: zipfile.ZipFile, names: set[str], content: Content) -> set[str]:
    """The files that are encrypted; fonts often are, which does no harm."""
    name = "META-INF/encryption.xml"
    if name not in names:
        return set()
    found = set()
    with part_of(archive, name, content) as part:
        for event in events(part, content):
            if isinstance(event, Start) and event.name == "CipherReference":
                found.add(urllib.parse.unquote(event.attributes.get("URI", "")))
    return found


def _is_page_of_rights(blocks: Iterable[Block]) -> bool:
    """Whether a part of an e-book says who has the rights, and no more."""
    text = "\n".join(block.text for block in blocks)
    if len(text) > _LONGEST_RIGHTS:
        return False
    return len({sign[0].lower() for sign in _SIGNS.finditer(text)}) >= _LEAST_SIGNS
