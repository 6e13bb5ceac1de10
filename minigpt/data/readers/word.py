"""Word's .docx: the paragraphs of the text, without headers, footnotes, comments, deleted text and
tables of contents."""

import re
import zipfile
from collections.abc import Iterable, Iterator

from .archive import opened_zip, part_name, part_of
from .content import Content
from .document import Document, Report
from .paragraphs import (
    Block,
    Style,
    TextWithTables,
    is_hidden_by,
    paragraph_of,
    row_of,
    text_of_office,
)
from .xml import End, Event, Start, events

_LEFT_OUT = {  # what was moved away; the second copy of a text box; how a word is pronounced; the
    # format before a change
    "moveFrom", "Fallback", "rt", "pPrChange", "rPrChange",
}  # fmt: skip
_COUNTED = {
    "footnoteReference": "footnotes",
    "endnoteReference": "endnotes",
    "commentReference": "comments",
    "del": "deleted parts",
    "altChunk": "inserted documents",
}
_OFF = ("0", "false", "off")
_SIGNS = range(0xE000, 0xF900)  # characters whose meaning only their font knows
_SPACE = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "\u2011"}


def read_word(content: Content, report: Report) -> Iterator[Document]:
    """The chapters of a text by Word."""
    with opened_zip(content) as archive:
        main = _main_part(archive, content)
        styles = _styles(archive, main, content)
        with part_of(archive, main, content) as part:
            blocks = _Text(styles, report).blocks(events(part, content))
    yield from text_of_office(blocks, content.source)


def _main_part(archive: zipfile.ZipFile, content: Content) -> str:
    """The name of the part that holds the text."""
    relations = "_rels/.rels"
    if relations in archive.namelist():
        with part_of(archive, relations, content) as part:
            for event in events(part, content):
                if not isinstance(event, Start) or event.name != "Relationship":
                    continue
                if event.attributes.get("Type", "").endswith("/officeDocument"):
                    return part_name(event.attributes.get("Target", ""), "")
    return "word/document.xml"


def _styles(archive: zipfile.ZipFile, main: str, content: Content) -> dict[str, Style]:
    """The styles by their ids. Ids differ between the languages of Word, names do not."""
    name = part_name("styles.xml", main)
    if name not in archive.namelist():
        return {}

    styles: dict[str, Style] = {}
    style = Style()
    with part_of(archive, name, content) as part:
        for event in events(part, content):
            if not isinstance(event, Start):
                continue
            value = event.attributes.get("val", "")
            if event.name == "style":
                style = styles.setdefault(event.attributes.get("styleId", ""), Style())
            elif event.name == "name":
                style.name = style.name or value.lower()
            elif event.name == "basedOn":
                style.base = value
            elif event.name == "vanish":
                style.is_hidden = value not in _OFF
    return styles


def _level(style: str) -> int:
    """The level of a heading, by the name of its style; 0 if it is none."""
    if style == "title":
        return 1
    found = re.fullmatch(r"heading ?([1-6])", style)
    return int(found[1]) if found else 0


class _Paragraph:
    """A paragraph that is being read."""

    def __init__(self) -> None:
        self.style = ""
        self.is_hidden = False  # by its style
        self.goes_on = False  # in the next one: its end is deleted or hidden
        self.level = 0
        self.is_item = False
        self.parts: list[str] = []

    @property
    def is_entry(self) -> bool:
        """Whether it is an entry of a table of contents, or the heading of one."""
        return self.style.startswith("toc ")

    def block(self) -> Block:
        return paragraph_of("".join(self.parts), self.level, self.is_item)


class _Text:
    """Reads the events of the main part."""

    def __init__(self, styles: dict[str, Style], report: Report):
        self._styles = styles
        self._report = report
        self._text = TextWithTables(row_of)
        self._open: list[_Paragraph] = []  # the last one is inside the others: in a text box
        self._before: list[str] = []  # the parts of paragraphs that go on in the next
        self._in_properties = False  # of a paragraph
        self._is_hidden = False  # whether this run, a text in one format, is hidden
        self._has_hidden = False  # whether the run has text that is hidden

    def blocks(self, found: Iterable[Event]) -> list[Block]:
        """All paragraphs, headings and rows; an empty block for an empty paragraph."""
        depth_left_out = 0
        is_text = False
        for event in found:
            if isinstance(event, str):
                if is_text and self._open:
                    self._read(event)
                continue

            if event.name in _LEFT_OUT:
                depth_left_out += 1 if isinstance(event, Start) else -1
            elif depth_left_out:
                continue
            elif isinstance(event, Start):
                is_text = event.name == "t"
                self._start(event)
            else:
                is_text = False
                self._end(event)
        return self._text.found

    def _read(self, text: str) -> None:
        if self._is_hidden:
            self._has_hidden = True
        else:
            self._open[-1].parts.append(text.replace("\n", " "))

    def _start(self, event: Start) -> None:
        name = event.name
        if name == "p":
            self._open.append(_Paragraph())
            self._open[-1].parts += self._before
            self._before = []
        elif name == "pPr":
            self._in_properties = True
        elif self._in_properties and name in ("del", "vanish") and self._open:
            self._open[-1].goes_on = event.attributes.get("val", "1") not in _OFF
        elif name == "tr":
            self._text.begin_row()
        elif name == "tc":
            self._text.begin_cell()
        elif name in _COUNTED:
            self._report.leave_out(_COUNTED[name])
        elif self._open:
            self._format_paragraph(self._open[-1], event)
            self._in_run(self._open[-1], event)

    def _format_paragraph(self, paragraph: _Paragraph, event: Start) -> None:
        """Note what a paragraph says of itself."""
        value = event.attributes.get("val", "")
        if event.name == "pStyle":
            paragraph.style = self._styles.get(value, Style(value.lower())).name
            paragraph.is_hidden = is_hidden_by(value, self._styles) or False
            paragraph.level = _level(paragraph.style)
        elif event.name == "outlineLvl" and value.isdecimal():
            level = int(value[:2]) + 1
            paragraph.level = level if level <= 6 else 0
        elif event.name == "numPr":
            paragraph.is_item = True

    def _in_run(self, paragraph: _Paragraph, event: Start) -> None:
        """Read what a part of a paragraph says of itself, and what in it is no letter."""
        value = event.attributes.get("val", "")
        if event.name == "r":
            self._is_hidden = paragraph.is_hidden
        elif event.name == "rStyle":
            is_hidden = is_hidden_by(value, self._styles)
            self._is_hidden = paragraph.is_hidden if is_hidden is None else is_hidden
        elif event.name == "vanish":
            self._is_hidden = value not in _OFF
        elif event.name == "sym":
            self._add_sign(event.attributes.get("char", ""))
        elif event.name in _SPACE and not self._is_hidden:
            is_tab_stop = event.name == "tab" and "val" in event.attributes
            if not is_tab_stop:
                paragraph.parts.append(_SPACE[event.name])

    def _add_sign(self, code: str) -> None:
        """A character by its number. Those of some fonts are pictures, or letters of their own."""
        if re.fullmatch("[0-9a-fA-F]{1,4}", code) is None or int(code, 16) in _SIGNS:
            self._report.leave_out("signs whose letters the file does not tell")
        else:
            self._read(chr(int(code, 16)))

    def _end(self, event: End) -> None:
        if event.name == "p" and self._open:
            self._end_paragraph(self._open.pop())
        elif event.name in ("tc", "txbxContent", "body"):
            self._end_before()
        elif event.name == "tr":
            self._text.end_row()
        elif event.name == "pPr":
            self._in_properties = False
        elif event.name == "r":
            self._report.leave_out("hidden parts", int(self._has_hidden))
            self._is_hidden = False
            self._has_hidden = False

    def _end_paragraph(self, paragraph: _Paragraph) -> None:
        if paragraph.is_entry:
            self._report.leave_out("entries of tables of contents")
            self._text.add(Block(""))
        elif paragraph.goes_on:
            self._before = paragraph.parts
        else:
            self._text.add(paragraph.block())

    def _end_before(self) -> None:
        """End a paragraph that was to go on in the next one: there is no next one."""
        if self._before:
            paragraph = _Paragraph()
            paragraph.parts = self._before
            self._before = []
            self._end_paragraph(paragraph)
