"""An HTML page, or a chapter of an e-book in XHTML, to paragraphs and headings.

Left out: scripts, styles, navigation, page headers and footers, the marks of notes. If the page
says what its main part is, only that is read. Short paragraphs of links alone are navigation too.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from .content import Content
from .document import Document, Report, without_invisible
from .encoding import decoded_whole, encoding_called, marked_encoding
from .html_main import (
    Inside,
    PageBlock,
    cites,
    looks_like_navigation,
    signs,
    why_left_out,
    without_contents,
    without_frame,
)
from .html_tags import Tag, tags_and_text
from .paragraphs import Block, TextWithTables, documents_of, paragraph_of, row_of
from .plain import without_gutenberg
from .xml import MOST_NESTED, too_deep

_VOID = {
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
}  # fmt: skip
_PARAGRAPH = {
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details",
    "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2",
    "h3", "h4", "h5", "h6", "header", "hgroup", "hr", "html", "legend", "li", "main", "menu", "nav",
    "ol", "p", "pre", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr",
    "ul",
}  # fmt: skip
_ENDS = {  # what a tag ends that was not closed
    "li": {"li"}, "dt": {"dt", "dd"}, "dd": {"dt", "dd"}, "tr": {"tr", "td", "th"},
    "td": {"td", "th"}, "th": {"td", "th"}, "option": {"option"},
}  # fmt: skip
_CLOSE_P = _PARAGRAPH - {"body", "html", "td", "th", "tr", "tbody", "thead", "tfoot", "caption"}
_SCOPES = {
    "ul",
    "ol",
    "table",
    "dl",
    "menu",
    "div",
    "section",
    "body",
}  # inside of one nothing outside is ended
_WITHOUT_TEXT = {
    "audio", "button", "canvas", "head", "iframe", "math", "noscript", "object", "script", "select",
    "style", "svg", "template", "textarea", "title", "video", "rp", "rt",
}  # fmt: skip
_IN_HEAD = {"base", "link", "meta", "noframes", "noscript", "script", "style", "template", "title"}
_MARK_IN_LINK = re.compile(r"[#¶§🔗]|\[(?:\d{1,3}|[a-z]|(?:note|nb) \d{1,3})\]|[*†‡]{1,3}")
_MARK_ABOVE = re.compile(r"[\[(]?(?:\d{1,3}|[a-z]|[*†‡§]{1,3})[\])]?")  # the line
_TURNS_THE_PAGE = {"next", "prev", "previous", "up"}  # what a link is for, as its `rel` says
_QUOTES = ("‘’", "“”")  # of a quotation inside another one, and of an outer one
_FAR = 64  # tags; no tag that many levels up is ended by another
_SPACE = re.compile(r"\s")
_BEGINS = re.compile(  # nothing is tried twice, however many comments there are
    r"\s*+(?:<\?xml[^>]*+>\s*+)?+(?:<!--(?:(?!-->).)*+-->\s*+)*+<(?:!doctype\s+html|html\b)",
    re.I | re.S,
)
_TAGS = re.compile(r"<(p|div|body|head|table|h[1-6]|span|a)\b[^<]*>", re.I)
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w-]{1,40})""", re.I)
_XML_ENCODING = re.compile(rb"""^\s*<\?xml[^>]{0,100}?encoding\s*=\s*["']([\w-]{1,40})""", re.I)
_CHARSET_WITHIN = 4096  # bytes


class _Open(NamedTuple):
    """A tag that is open, and where the text in it is."""

    name: str
    inside: Inside
    begin: int  # how many parts of the paragraph are before it
    to_parts: int  # how many characters before it lead to parts of a page


def blocks_of_page(page: str, content: Content, report: Report, is_book: bool) -> list[Block]:
    """The paragraphs and headings of a page; of a book's, all but its notes and title pages."""
    found = all_blocks(page, content, report, has_frame=not is_book)
    around = without_contents if is_book else without_frame
    return [one.block for one in around(found, report)]


def all_blocks(page: str, content: Content, report: Report, *, has_frame: bool) -> list[PageBlock]:
    """The paragraphs and headings of a page, each with where it is. If the page has a frame, what
    is certainly not part of the main part is left out."""
    reader = _Reader(content, report, has_frame)
    for part in tags_and_text(page):
        if isinstance(part, Tag):
            reader.tag(part)
        else:
            reader.text(part)
    return reader.end()


class _Reader:
    """Goes through a page from tag to tag."""

    def __init__(self, content: Content, report: Report, has_frame: bool):
        self._text = TextWithTables(_row_of_page)
        self._content = content
        self._report = report
        self._most_nested = content.limit(MOST_NESTED)
        self._has_frame = has_frame
        self._open: list[_Open] = []
        self._how_many: Counter[str] = Counter()  # tags are open, by name
        self._parts: list[str] = []  # of the paragraph that is being read
        self._links = 0  # characters of it that are links
        self._to_parts = 0  # characters of it in links to a part of a page
        self._turns_the_page = False  # whether it has a link to the next page, or the one before
        self._inside = Inside()  # where it is

    @property
    def _here(self) -> Inside:
        return self._open[-1].inside if self._open else Inside()

    def text(self, text: str) -> None:
        """Add text to the paragraph."""
        if text.strip():
            self._end_head()
        here = self._here
        if here.is_left_out:
            return
        if not here.is_verbatim:
            text = _SPACE.sub(" ", text)
        if not self._parts and not text.strip():
            return

        if not self._parts:
            self._inside = here
        self._parts.append(text)
        if here.is_link:
            self._links += len(text.strip())
        if here.leads_to_part:
            self._to_parts += len(text.strip())
        if here.turns_the_page:
            self._turns_the_page = True

    def tag(self, tag: Tag) -> None:
        """Open or close a tag."""
        if tag.name == "br":
            if self._parts:
                self._parts.append("\n")
        elif tag.is_end:
            self._close(tag.name)
        elif tag.name in _VOID:
            if tag.name == "hr":
                self.end_paragraph()
        else:
            self._start(tag)

    def end(self) -> list[PageBlock]:
        """End the page, and all that is still open in it; what was found."""
        while self._open:
            self._close_last()
        self.end_paragraph()
        return self._text.found

    def _start(self, tag: Tag) -> None:
        if tag.name not in _IN_HEAD:
            self._end_head()
        if tag.name in _CLOSE_P:
            self._end_unclosed({"p"})
        self._end_unclosed(_ENDS.get(tag.name, set()))
        if tag.name in _PARAGRAPH:
            self.end_paragraph()

        if tag.is_closed and tag.name not in ("p", "div"):
            return
        if len(self._open) >= self._most_nested:
            raise too_deep(self._content)
        inside = self._inside_of(tag)
        self._open.append(_Open(tag.name, inside, len(self._parts), self._to_parts))
        self._how_many[tag.name] += 1
        if tag.name == "tr":
            self._text.begin_row()
        elif tag.name in ("td", "th"):
            self._text.begin_cell()
        elif tag.name == "q":
            self.text(self._quotes[0])

    @property
    def _quotes(self) -> str:
        """The marks around the innermost quotation, which browsers add."""
        return _QUOTES[self._how_many["q"] % 2]

    def _end_head(self) -> None:
        """End a head that was not closed, since what comes cannot be in one."""
        if self._open and self._open[-1].name == "head":
            self._close_last()

    def _end_unclosed(self, names: set[str]) -> None:
        """End tags that were not closed, up to the list or table around them."""
        if not any(self._how_many[name] for name in names):
            return
        first = len(self._open)  # the outermost of these tags
        lowest = max(len(self._open) - _FAR, 0)
        for place in range(len(self._open) - 1, lowest - 1, -1):
            name = self._open[place].name
            if name in names:
                first = place
            elif name in _SCOPES:
                break
        while len(self._open) > first:
            self._close_last()

    def _close(self, name: str) -> None:
        """Close the last tag of a name, and all inside of it."""
        if not self._how_many[name]:
            if name == "p":
                self.end_paragraph()
            return
        is_last = False
        while not is_last:
            is_last = self._open[-1].name == name
            self._close_last()

    def _close_last(self) -> None:
        name = self._open[-1].name
        if name in ("a", "sup"):
            self._end_mark(self._open[-1])
        if name == "q":
            self.text(self._quotes[1])
        if name in _PARAGRAPH:
            self.end_paragraph()
        self._open.pop()
        self._how_many[name] -= 1
        if name == "tr":
            self._text.end_row()

    def _end_mark(self, opened: _Open) -> None:
        """Leave out what is in a link or above the line, if it is the mark of a note."""
        leads = opened.inside.leads_to_part
        pattern = _MARK_IN_LINK if opened.name == "a" else _MARK_ABOVE
        if not leads and (opened.name == "a" or self._to_parts == opened.to_parts):
            return
        parts = self._parts[opened.begin :]
        if pattern.fullmatch("".join(parts).strip()) is None:
            return

        del self._parts[opened.begin :]
        self._links -= sum(len(part.strip()) for part in parts) if leads else 0
        self._report.leave_out("marks of notes")

    def end_paragraph(self) -> None:
        """End the paragraph: all that was read since the last one."""
        text = "".join(self._parts)
        links = len(text) if self._turns_the_page else self._links
        self._parts = []
        self._links = 0
        self._to_parts = 0
        self._turns_the_page = False
        if not text.strip():
            return

        inside = self._inside
        if inside.is_verbatim:
            block = Block(without_invisible(text).strip("\n").rstrip())
        else:
            block = paragraph_of(text, inside.level, inside.is_item)
        if block.text:
            self._text.add(PageBlock(block, inside, links))

    def _inside_of(self, tag: Tag) -> Inside:
        """Where the text in a tag is."""
        inside = self._here
        if tag.name == "a" and "href" in tag.attributes:
            relations = tag.attributes.get("rel", "").lower().split()
            turns = not _TURNS_THE_PAGE.isdisjoint(relations)
            leads = "#" in tag.attributes["href"]
            inside = replace(inside, is_link=True, leads_to_part=leads, turns_the_page=turns)
        elif cites(tag):
            inside = replace(inside, is_cited=True)
        elif signs(tag):
            inside = replace(inside, is_signature=True)
        elif tag.name == "pre":
            inside = replace(inside, is_verbatim=True)
        elif tag.name in ("ul", "ol", "dl", "td", "th"):
            inside = replace(inside, is_item=False)
        elif tag.name == "li":
            inside = replace(inside, is_item=True, is_in_item=True)
        elif re.fullmatch("h[1-6]", tag.name):
            inside = replace(inside, level=int(tag.name[1]), is_item=False)
        elif tag.name in ("main", "article") or tag.attributes.get("role", "").lower() == "main":
            inside = replace(inside, is_main=True)

        if inside.is_left_out:
            return inside
        if tag.name in _WITHOUT_TEXT:
            return replace(inside, is_left_out=True)
        why = why_left_out(
            tag,
            is_paragraph=tag.name in _PARAGRAPH,
            is_in_main=self._here.is_main,
            has_frame=self._has_frame,
        )
        if why:
            self._report.leave_out(why)
            return replace(inside, is_left_out=True)

        if self._has_frame and looks_like_navigation(tag):
            is_certain = tag.name not in _PARAGRAPH
            return replace(inside, is_left_out=is_certain, is_guessed=True)
        return inside


def _row_of_page(cells: list[list[PageBlock]]) -> list[PageBlock]:
    """The row of a table as a line; what is in its only cell with text stays as it is."""
    found = [one for cell in cells for one in cell]
    if sum(map(bool, cells)) <= 1:
        return found

    links = sum(one.links for one in found)
    row = row_of([[one.block for one in cell] for cell in cells])
    return [PageBlock(block, found[0].inside, links) for block in row]


# Encodings


def is_page(content: Content) -> bool:
    """Whether a content begins as a page does, or has a page's name and tags."""
    encoding = marked_encoding(content.head)
    head = content.head[:_CHARSET_WITHIN].decode(encoding, "replace")
    if _BEGINS.match(head) is not None:
        return True
    has_name = content.name.endswith((".html", ".htm", ".xhtml"))
    return has_name and _TAGS.search(head) is not None


def read_page(content: Content, report: Report) -> Iterator[Document]:
    """One document: the main part of a page; several, if it holds several books."""
    page = decoded_page(content.whole(), content, report)
    blocks = blocks_of_page(page, content, report, is_book=False)
    yield from documents_of(without_gutenberg([blocks], report), content.source)


def decoded_page(data: bytes, content: Content, report: Report) -> str:
    """The text of a page, in the encoding that was given, or that of its mark, or the one that it
    names."""
    encoding = content.reading.encoding or marked_encoding(data)
    named = encoding_named_in(data)
    if encoding == "utf-8-sig" and named is not None:
        encoding = encoding_called(named)
    return decoded_whole(data, encoding, content, report)


def encoding_named_in(data: bytes) -> str | None:
    """The encoding that a page names; None if it names none."""
    head = data[:_CHARSET_WITHIN]
    named = _CHARSET.search(head) or _XML_ENCODING.search(head)
    return None if named is None else named[1].decode()
