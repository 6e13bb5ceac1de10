"""Rich Text Format: the paragraphs of the text, without headers, footnotes, pictures, styles and
tables of contents.

Source: Rich Text Format Specification 1.9.1 (Microsoft, 2008).
"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from .content import Content
from .document import Document, Report
from .paragraphs import Block, in_one_line, paragraph_of, text_of_office
from .xml import MOST_NESTED, too_deep

_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})?[ ]?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])"
    rb"|([^\\{}\r\n]+)|[\r\n]+"
)
_LEFT_OUT = {
    "fonttbl", "colortbl", "stylesheet", "info", "pict", "object", "header", "headerl", "headerr",
    "headerf", "footer", "footerl", "footerr", "footerf", "listtable", "listoverridetable",
    "revtbl", "rsidtbl", "generator", "themedata", "colorschememapping", "latentstyles",
    "datastore", "xmlnstbl", "fldinst", "nonshppict", "listtext", "pntext", "pntxtb", "pntxta",
    "filetbl", "mmathPr", "bkmkstart", "bkmkend", "shprslt", "nonesttables", "private", "xe", "rxe",
    "tc",
}  # fmt: skip
_READ = ("shppict", "nesttableprops")  # although \\* lets programs ignore them
_DRAWINGS = ("shpinst", "do")  # only the text boxes in them are read
_BOXES = ("shptxt", "dptxbxtext")
_BULLETS = ("listtext", "pntext")  # what goes before an item of a list
_COUNTED = {"footnote": "footnotes", "annotation": "comments"}
_HIDES = {"v": "hidden parts", "deleted": "deleted parts"}
_CHARACTERS = {
    "tab": "\t", "line": "\n", "emdash": "—", "endash": "–", "emspace": " ", "enspace": " ",
    "qmspace": " ", "lbr": "\n", "zwj": "\u200d", "zwnj": "\u200c", "bullet": "•",
    "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”",
}  # fmt: skip
_SYMBOLS = {b"~": "\xa0", b"_": "\u2011", b"{": "{", b"}": "}", b"\\": "\\"}
_ENDS = ("par", "sect", "page", "column", "row", "nestrow")
_CODE_PAGES = {437: "cp437", 850: "cp850", 852: "cp852", 10000: "mac_roman", 65001: "utf-8"}
_CHARSETS = {  # of fonts; others have the code page of the file
    77: "mac_roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "gbk", 136: "cp950",
    161: "cp1253", 162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257",
    204: "cp1251", 222: "cp874", 238: "cp1250", 254: "cp437", 255: "cp850",
}  # fmt: skip


@dataclass(frozen=True)
class _Group:
    """What holds in a group, between { and }."""

    is_left_out: bool = False
    is_hidden: bool = False  # by its format
    is_drawing: bool = False  # in a drawing, outside its text boxes
    boxes: int = 0  # text boxes around it
    is_stylesheet: bool = False
    style: int = 0  # of the paragraph, by its number
    font: int | None = None  # None for the usual one
    skips: int = 1  # characters after each \\u, for readers without Unicode
    level: int = 0  # of the paragraph's heading

    @property
    def is_text(self) -> bool:
        """Whether what is in it is read."""
        return not self.is_left_out and not self.is_hidden and not self.is_drawing


@dataclass
class _Paragraph:
    """A paragraph that is being read."""

    parts: list[str] = field(default_factory=list)
    is_row: bool = False  # of a table, not a paragraph
    is_item: bool = False  # of a list


def read_rtf(content: Content, report: Report) -> Iterator[Document]:
    """The chapters of a text."""
    blocks = _Reader(content, report).blocks(content.whole())
    yield from text_of_office(blocks, content.source)


class _Reader:
    """Goes through the file from token to token."""

    def __init__(self, content: Content, report: Report):
        self._content = content
        self._report = report
        self._most_nested = content.limit(MOST_NESTED)
        self._encoding = "cp1252"
        self._usual_font = 0
        self._encodings: dict[int, str] = {}  # of fonts that have their own
        self._group = _Group()
        self._groups: list[_Group] = []  # around that group
        self._blocks: list[Block] = []
        self._styles: dict[int, bytes] = {}  # the names of paragraphs' styles, by their numbers
        self._paragraph = _Paragraph()
        self._around: list[_Paragraph] = []  # the text boxes that are open
        self._bytes = bytearray()  # of characters in the code page
        self._to_skip = 0  # characters that repeat the last \\u
        self._may_be_ignored = False  # \\* was read: unknown groups are left out

    def blocks(self, data: bytes) -> list[Block]:
        """All paragraphs; an empty block for an empty paragraph."""
        position = 0
        while position < len(data):
            found = _TOKEN.match(data, position)
            if found is None:  # a backslash at the end
                break
            position = found.end()
            word, number, byte, symbol, brace, text = found.groups()

            if word == b"bin":
                position += max(int(number or 0), 0)
            elif word:
                self._word(word.decode(), None if number is None else int(number))
            elif byte:
                self._characters(bytes([int(byte, 16)]))
            elif symbol:
                self._symbol(symbol)
            elif brace:
                self._brace(brace)
            elif text:
                self._characters(text)

        self._end_paragraph()
        return self._blocks

    def _brace(self, brace: bytes) -> None:
        self._flush()
        self._to_skip = 0
        if brace == b"{":
            if len(self._groups) >= self._most_nested:
                raise too_deep(self._content)
            self._groups.append(self._group)
        elif self._groups:
            is_box = self._group.boxes > self._groups[-1].boxes
            if is_box:
                self._end_box()
            self._group = self._groups.pop()

    def _begin_box(self) -> None:
        """A text box begins: the paragraph that it is in goes on after it."""
        self._flush()
        self._around.append(self._paragraph)
        self._paragraph = _Paragraph()
        self._group = replace(self._group, is_drawing=False, boxes=self._group.boxes + 1)

    def _end_box(self) -> None:
        if self._paragraph.parts:
            self._end_paragraph()
        self._paragraph = self._around.pop()

    def _word(self, word: str, number: int | None) -> None:
        """A control word, such as \\par or \\u8212."""
        was_left_out = self._group.is_left_out
        if self._may_be_ignored:
            self._may_be_ignored = False
            if word not in (*_READ, *_DRAWINGS, *_BOXES):
                self._group = replace(self._group, is_left_out=True, is_stylesheet=False)
        if word in _BULLETS and self._group.is_text:
            self._paragraph.is_item = True
        if word in _DRAWINGS:
            self._group = replace(self._group, is_drawing=True)
        if word in _BOXES and self._group.is_drawing:
            self._begin_box()
        if word == "stylesheet":
            self._group = replace(self._group, is_stylesheet=True)
        if word in _LEFT_OUT or word in _COUNTED:
            if not was_left_out and word in _COUNTED:
                self._report.leave_out(_COUNTED[word])
            self._group = replace(self._group, is_left_out=True)

        if word == "ansicpg" and number is not None:
            self._encoding = _code_page(number)
        elif word == "mac":
            self._encoding = "mac_roman"
        elif word == "f" and number is not None:
            self._flush()
            self._group = replace(self._group, font=number)
        elif word == "deff" and number is not None:
            self._usual_font = number
        elif word == "fcharset" and number in _CHARSETS:
            self._encodings[self._font] = _CHARSETS[number]
        elif word == "uc" and number is not None:
            self._group = replace(self._group, skips=min(max(number, 0), 10))
        elif word == "s" and number is not None:
            self._group = replace(self._group, style=number)
        elif self._group.is_left_out or self._group.is_drawing:
            return
        elif word == "u" and number is not None:
            self._add(chr(number % 0x10000))
            self._to_skip = self._group.skips
        else:
            self._in_paragraph(word, number)

    def _in_paragraph(self, word: str, number: int | None) -> None:
        if word in _CHARACTERS:
            self._add(_CHARACTERS[word])
        elif word in ("cell", "nestcell"):
            self._add("\t")
            self._paragraph.is_row = True
        elif word in _ENDS:
            self._end_paragraph()
        elif word == "pard":
            self._group = replace(self._group, level=0, style=0)
        elif word == "plain":
            self._flush()
            self._group = replace(self._group, font=None, is_hidden=False)
        elif word in _HIDES:
            self._hide(number != 0, _HIDES[word])
        elif word == "outlinelevel" and number is not None and 0 <= number < 6:
            self._group = replace(self._group, level=number + 1)

    def _hide(self, is_hidden: bool, what: str) -> None:
        self._flush()
        if is_hidden and not self._group.is_hidden:
            self._report.leave_out(what)
        self._group = replace(self._group, is_hidden=is_hidden)

    def _symbol(self, symbol: bytes) -> None:
        if symbol == b"*":
            self._may_be_ignored = True
        elif symbol in (b"\n", b"\r"):
            self._end_paragraph()
        elif symbol in _SYMBOLS:
            self._add(_SYMBOLS[symbol])

    def _characters(self, data: bytes) -> None:
        """Characters in the code page; the first ones may repeat a \\u."""
        skipped = min(self._to_skip, len(data))
        self._to_skip -= skipped
        if self._group.is_text:
            self._bytes += data[skipped:]
        elif self._group.is_stylesheet:
            style = self._group.style
            self._styles[style] = self._styles.get(style, b"") + data[skipped:]

    def _add(self, text: str) -> None:
        if self._group.is_text:
            self._flush()
            self._paragraph.parts.append(text)

    def _flush(self) -> None:
        """Decode the characters that were read: one may be several bytes."""
        if self._bytes:
            encoding = self._encodings.get(self._font, self._encoding)
            self._paragraph.parts.append(self._bytes.decode(encoding, "replace"))
            self._bytes.clear()

    @property
    def _font(self) -> int:
        font = self._group.font
        return self._usual_font if font is None else font

    @property
    def _is_entry(self) -> bool:
        """Whether the paragraph is an entry of a table of contents, by the name of its style."""
        name = self._styles.get(self._group.style, b"")
        return name.lower().startswith(b"toc ")

    def _end_paragraph(self) -> None:
        self._flush()
        paragraph = self._paragraph
        self._paragraph = _Paragraph()
        text = "".join(paragraph.parts)
        pairs = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        if self._is_entry:
            self._report.leave_out("entries of tables of contents", bool(pairs.strip()))
            self._blocks.append(Block(""))
        elif paragraph.is_row:
            cells = (in_one_line(cell) for cell in pairs.split("\t"))
            self._blocks.append(Block("\t".join(cells).rstrip("\t"), is_line=True))
        else:
            level = self._group.level
            self._blocks.append(paragraph_of(pairs, level, paragraph.is_item))


def _code_page(number: int) -> str:
    """The name of a code page; Windows-1252 for one that Python does not know."""
    name = _CODE_PAGES.get(number, f"cp{number}")
    try:
        codecs.lookup(name)
    except LookupError:
        return "cp1252"
    return name
