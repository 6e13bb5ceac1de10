"""Which kind of file a content is, and what reads it. The first kind that matches does."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from .content import Content
from .document import Document, Refused, Report
from .encoding import text_head
from .plain import read_plain
from .rows import read_json_lines, read_table

Read = Callable[[Content, Report], Iterator[Document]]


class Kind(NamedTuple):
    """A kind of file."""

    name: str  # as `minigpt read` shows it
    matches: Callable[[Content], bool]  # by the content where that tells, else by the name
    read: Read
    has_fields: bool = False  # whether a row has fields of which one holds the text
    is_streamed: bool = True  # whether it can be read as often as needed, at no great cost


def recognise(content: Content) -> Kind:
    """The kind of a content. UserError if it is no text, as far as its beginning tells."""
    head = content.head
    for kind in KINDS:
        if kind.matches(content):
            return kind

    for magic, what in _NO_TEXT.items():
        if head.startswith(magic):
            raise Refused(content.source, f"is {what}")
    text_head(content)
    return PLAIN


def _ends(*endings: str) -> Callable[[Content], bool]:
    """Whether the name has one of these endings."""
    return lambda content: content.name.endswith(endings)


PLAIN = Kind("plain text", lambda content: True, read_plain)
KINDS: tuple[Kind, ...] = (
    Kind("JSON lines", _ends(".jsonl", ".ndjson"), read_json_lines, has_fields=True),
    Kind("table", _ends(".csv", ".tsv"), read_table, has_fields=True),
)
_OLD = "a word processor's file, a PDF or an archive; save it as plain text (.txt, UTF-8)"
_NO_TEXT = {
    b"PK\x03\x04": _OLD,
    b"%PDF-": _OLD,
    b"{\\rtf": _OLD,
    b"\xd0\xcf\x11\xe0": _OLD,
    b"\x89PNG": "a picture (PNG)",
    b"\xff\xd8\xff": "a picture (JPEG)",
    b"GIF8": "a picture (GIF)",
    b"RIFF": "a sound, a film or a picture (RIFF)",
    b"ID3": "a sound (MP3)",
    b"OggS": "a sound (Ogg)",
    b"7z\xbc\xaf\x27\x1c": "an archive that is not read (7z); unpack it first",
    b"Rar!": "an archive that is not read (RAR); unpack it first",
    b"\xfd7zXZ": "packed with xz, which is not read; unpack it first",
    b"BZh": "packed with bzip2, which is not read; unpack it first",
    b"\x7fELF": "a program",
    b"SQLite format 3": "a database (SQLite)",
}
