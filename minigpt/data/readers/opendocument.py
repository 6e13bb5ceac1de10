"""OpenDocument's .odt, as LibreOffice writes it: the paragraphs of the text, without headers,
footnotes, comments, deleted and hidden text and tables of contents."""

from collections.abc import Iterable, Iterator

from .archive import opened_zip, part_of
from .content import Content
from .document import Document, Report, Unreadable
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

_LEFT_OUT = {  # with what the report calls them, if they have text
    "deletion": "deleted parts",
    "change-info": "",
    "note": "footnotes",
    "annotation": "comments",
    "table-of-content": "tables of contents",
    "alphabetical-index": "tables of contents",
    "illustration-index": "tables of contents",
    "table-index": "tables of contents",
    "user-index": "tables of contents",
    "object-index": "tables of contents",
    "bibliography-mark": "citations",
    "covered-table-cell": "hidden parts",
    "number": "",  # of a heading, or an item
    "sequence-decls": "",
    "forms": "",
    "script": "",
    "ruby-text": "",  # how a word is pronounced
}
_DESCRIBES = "urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"  # a picture: its title
_PARAGRAPH = ("p", "h")
_FAMILIES = {"p": "paragraph", "h": "paragraph", "span": "text"}  # of their styles


def read_opendocument(content: Content, report: Report) -> Iterator[Document]:
    """The chapters of a text."""
    with opened_zip(content) as archive:
        if "META-INF/manifest.xml" in archive.namelist():
            with part_of(archive, "META-INF/manifest.xml", content) as manifest:
                _refuse_encrypted(manifest.read(), content)
        styles = _Styles()
        if "styles.xml" in archive.namelist():
            with part_of(archive, "styles.xml", content) as part:
                for event in events(part, content):
                    styles.learn(event)
        with part_of(archive, "content.xml", content) as part:
            blocks = _Text(styles, report).blocks(events(part, content))
    yield from text_of_office(blocks, content.source)


def _refuse_encrypted(manifest: bytes, content: Content) -> None:
    if b"encryption-data" in manifest:
        raise Unreadable(content.source, "it is protected by a password", "locked")


class _Styles:
    """The styles of a text, which two of its parts describe."""

    def __init__(self) -> None:
        self._styles: dict[str, Style] = {}  # by family and name
        self._last = Style()

    def learn(self, event: Event) -> None:
        """Keep what a tag says of a style, if it does."""
        if not isinstance(event, Start):
            return
        get = event.attributes.get
        if event.name == "style":
            family = get("family", "")
            base = f"{family} {get('parent-style-name', '')}"
            self._last = Style(base=base)
            self._styles[f"{family} {get('name', '')}"] = self._last
        elif event.name == "text-properties" and "display" in event.attributes:
            self._last.is_hidden = get("display") == "none"

    def hide(self, event: Start) -> bool:
        """Whether the style of a paragraph or a span hides what is in it."""
        style = f"{_FAMILIES[event.name]} {event.attributes.get('style-name', '')}"
        return is_hidden_by(style, self._styles) or False


class _Paragraph:
    """A paragraph that is being read."""

    def __init__(self, level: int, is_item: bool):
        self.level = level
        self.is_item = is_item
        self.is_hidden = False
        self.parts: list[str] = []

    def block(self) -> Block:
        return paragraph_of("".join(self.parts), self.level, self.is_item)


class _Text:
    """Reads the events of content.xml."""

    def __init__(self, styles: _Styles, report: Report):
        self._styles = styles
        self._report = report
        self._text = TextWithTables(row_of)
        self._open: list[_Paragraph] = []  # the last one is inside the others: in a frame
        self._in_body = False
        self._lists = 0  # around what is being read
        self._depth = 0  # of tags
        self._left_out_from = 0  # the depth of what is left out; 0 if nothing is
        self._to_count = ""  # what the report calls it; empty once it is counted

    def blocks(self, found: Iterable[Event]) -> list[Block]:
        """All paragraphs, headings and rows; an empty block for an empty paragraph."""
        for event in found:
            if isinstance(event, str):
                self._read(event)
            elif isinstance(event, Start):
                self._depth += 1
                if not self._left_out_from:
                    self._start(event)
            else:
                if not self._left_out_from:
                    self._end(event)
                elif self._left_out_from == self._depth:
                    self._left_out_from = 0
                self._depth -= 1
        return self._text.found

    def _read(self, text: str) -> None:
        if self._left_out_from:
            if self._to_count and text.strip():
                self._report.leave_out(self._to_count)
                self._to_count = ""
        elif self._open:
            self._open[-1].parts.append(text.replace("\n", " "))

    def _is_hidden(self, event: Start) -> bool:
        """Whether a tag hides what is in it."""
        if event.name in _FAMILIES:
            return self._styles.hide(event)
        if event.name not in ("section", "hidden-text"):
            return False
        is_told = event.attributes.get("is-hidden") == "true"
        return is_told or event.attributes.get("display") == "none"

    def _start(self, event: Start) -> None:
        if event.name in ("table-cell", "covered-table-cell"):
            self._text.begin_cell()

        is_described = event.namespace == _DESCRIBES
        is_hidden = self._is_hidden(event)
        if event.name in _LEFT_OUT or is_described or is_hidden:
            self._left_out_from = self._depth
            self._to_count = "hidden parts" if is_hidden else _LEFT_OUT.get(event.name, "")
        elif event.name == "body":
            self._in_body = True
        elif not self._in_body:
            self._styles.learn(event)
        elif event.name in _PARAGRAPH:
            level = 0
            if event.name == "h":
                given = event.attributes.get("outline-level", "1")
                level = min(int(given), 6) if given in "123456789" and given else 1
            self._open.append(_Paragraph(level, self._lists > 0))
        elif event.name == "list":
            self._lists += 1
        elif event.name == "table-row":
            self._text.begin_row()
        elif self._open and event.name == "hidden-paragraph":
            self._open[-1].is_hidden = event.attributes.get("is-hidden") == "true"
        elif self._open:
            self._add_space(event)

    def _add_space(self, event: Start) -> None:
        parts = self._open[-1].parts
        if event.name in ("s", "tab"):
            parts.append(" ")  # several are no more than one
        elif event.name == "line-break":
            parts.append("\n")

    def _end(self, event: End) -> None:
        if event.name in _PARAGRAPH and self._open:
            paragraph = self._open.pop()
            self._report.leave_out("hidden parts", int(paragraph.is_hidden))
            self._text.add(Block("") if paragraph.is_hidden else paragraph.block())
        elif event.name == "list":
            self._lists -= 1
        elif event.name == "table-row":
            self._text.end_row()
