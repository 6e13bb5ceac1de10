"""OpenDocument's .odt, as LibreOffice writes it: the paragraphs of the text, without headers,
footnotes, comments, deleted text and tables of contents."""

from collections.abc import Iterable, Iterator

from .blocks import Block, chapters, documents_of, verses, with_line_breaks
from .content import Content
from .document import Document, Report, Unreadable
from .table_rows import TextWithTables
from .xml import End, Event, Start, events
from .zipped import opened_zip, part_of

MIMETYPE = b"application/vnd.oasis.opendocument.text"
_LEFT_OUT = {  # with what the report calls them
    "tracked-changes": "",
    "note": "footnotes",
    "annotation": "comments",
    "table-of-content": "tables of contents",
    "alphabetical-index": "tables of contents",
    "illustration-index": "tables of contents",
    "table-index": "tables of contents",
    "bibliography-mark": "",
    "sequence-decls": "",
    "forms": "",
    "script": "",
    "ruby-text": "",  # how a word is pronounced
}
_DESCRIBES = "urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"  # a picture: its title
_PARAGRAPH = ("p", "h")


def read_opendocument(content: Content, report: Report) -> Iterator[Document]:
    """The chapters of a text."""
    with opened_zip(content) as archive:
        if "META-INF/manifest.xml" in archive.namelist():
            with part_of(archive, "META-INF/manifest.xml", content) as manifest:
                _refuse_encrypted(manifest.read(), content)
        with part_of(archive, "content.xml", content) as part:
            blocks = _Text(report).blocks(events(part, content))
    yield from documents_of(chapters(verses(blocks)), content.source)


def _refuse_encrypted(manifest: bytes, content: Content) -> None:
    if b"encryption-data" in manifest:
        raise Unreadable(content.source, "it is protected by a password", "locked")


class _Paragraph:
    """A paragraph that is being read."""

    def __init__(self, level: int, is_item: bool):
        self.level = level
        self.is_item = is_item
        self.parts: list[str] = []

    def block(self) -> Block:
        text = with_line_breaks("".join(self.parts))
        if self.is_item and text and not self.level:
            return Block(f"- {text}", is_line=True)
        return Block(text, self.level)


class _Text:
    """Reads the events of content.xml."""

    def __init__(self, report: Report):
        self._report = report
        self._text = TextWithTables()
        self._open: list[_Paragraph] = []  # the last one is inside the others: in a frame
        self._in_body = False
        self._lists = 0  # around what is being read
        self._left_out = 0  # tags around it that are left out

    def blocks(self, found: Iterable[Event]) -> list[Block]:
        """All paragraphs, headings and rows; an empty block for an empty paragraph."""
        for event in found:
            if isinstance(event, str):
                if self._open and not self._left_out:
                    self._open[-1].parts.append(event.replace("\n", " "))
            elif event.name in _LEFT_OUT or event.namespace == _DESCRIBES:
                self._count(event)
            elif self._left_out:
                continue
            elif isinstance(event, Start):
                self._start(event)
            else:
                self._end(event)
        return self._text.blocks

    def _count(self, event: Start | End) -> None:
        if isinstance(event, End):
            self._left_out -= 1
            return
        what = _LEFT_OUT.get(event.name, "")
        if not self._left_out and what:
            self._report.leave_out(what)
        self._left_out += 1

    def _start(self, event: Start) -> None:
        if event.name == "body":
            self._in_body = True
        elif event.name in _PARAGRAPH and self._in_body:
            level = 0
            if event.name == "h":
                given = event.attributes.get("outline-level", "1")
                level = min(int(given), 6) if given in "123456789" and given else 1
            self._open.append(_Paragraph(level, self._lists > 0))
        elif event.name == "list":
            self._lists += 1
        elif event.name == "table-row":
            self._text.begin_row()
        elif event.name == "table-cell":
            self._text.begin_cell()
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
            self._text.add(self._open.pop().block())
        elif event.name == "list":
            self._lists -= 1
        elif event.name == "table-row":
            self._text.end_row()
