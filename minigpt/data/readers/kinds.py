"""From a file to documents of text: which kind of file it is, and which module in this folder reads
it. `CHATS`, `KINDS` and `TEXTS` list them.

The content decides where it shows the kind. The name decides only where it does not, as for .csv.
corpus.py joins the files.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ... import UserError
from ...config import ReadingConfig
from .cache import CACHE
from .content import Content, version_of
from .document import Document, Refused, Report
from .encoding import text_head

_PDF_WITHIN = 1024  # bytes, in which a PDF may begin after other lines
_ZIP = b"PK\x03\x04"


@dataclass(frozen=True)
class Kind:
    """A kind of file: how it is known, and what reads it. Readers and tests are named
    "module.function", and a module is imported when a file may need it."""

    name: str  # as `minigpt read` shows it
    reader: str
    magic: bytes = b""  # with which such a file begins
    first: str = ""  # its first character that is no white space is one of these
    endings: tuple[str, ...] = ()  # of its name
    test: str = ""  # which decides about a content with such a beginning or ending, or about a text
    has_fields: bool = False  # whether a row has fields of which one holds the text
    is_slow: bool = False  # whether what was read is kept, since reading takes long

    def matches(self, content: Content, first: str) -> bool:
        """Whether a content, which has this first character, is of this kind."""
        has_magic = self.magic != b"" and content.head.startswith(self.magic)
        begins = first != "" and first in self.first
        if not (has_magic or begins or content.name.endswith(self.endings)):
            return False
        return not self.test or _function(self.test)(content)

    def read(self, content: Content, report: Report) -> Iterator[Document]:
        """The documents of a content of this kind."""
        report.kind = self.name
        documents: Iterator[Document] = _function(self.reader)(content, report)
        return documents


def _function(name: str) -> Callable[..., Any]:
    """The function of a module in this folder."""
    module, _, function = name.rpartition(".")
    found: Callable[..., Any] = getattr(import_module(f".{module}", __package__), function)
    return found


def read_file(
    file: Path, reading: ReadingConfig, report: Report | None = None
) -> Iterator[Document]:
    """The documents of a file, as they come: long ones in pieces of about a megabyte. Those of a
    slow reader are read once.

    `report` is filled in while the documents are taken. What cannot be read is raised as UserError,
    perhaps only after some documents."""
    if report is None:
        report = Report(file)
    key = (str(file), version_of(file), reading)
    documents = CACHE.documents(key, report)
    if documents is None:
        content = Content.of_file(file, reading)
        kind = recognise(content)
        documents = kind.read(content, report)
        if kind.is_slow:
            documents = CACHE.keep(key, documents, report)

    for document in documents:
        report.documents += document.is_first
        report.characters += len(document.text)
        yield document


def check_is_text(file: Path, reading: ReadingConfig) -> None:
    """Refuse a file that is no text, judging by its beginning: with Refused or Unreadable."""
    recognise(Content.of_file(file, reading))


def has_fields(file: Path, reading: ReadingConfig) -> bool:
    """Whether a file has rows with fields, of which one holds the text."""
    try:
        return recognise(Content.of_file(file, reading)).has_fields
    except UserError:  # said when it is read
        return False


def recognise(content: Content) -> Kind:
    """The kind of a content, the first that matches. UserError if it is no text, as far as its
    beginning tells."""
    head = content.head
    if b"\n" + PDF.magic in head[:_PDF_WITHIN]:
        return PDF
    first = content.beginning.lstrip()[:1]
    for kind in KINDS if content.reading.plain else (*CHATS, *KINDS):
        if kind.matches(content, first):
            return kind

    for magic, (what, problem) in _NO_TEXT.items():
        if head.startswith(magic):
            raise Refused(content.source, f"is {what}", problem)
    if head.startswith(_ZIP):
        return _kind_of_zip(content)

    text = text_head(content)
    if content.reading.plain:
        return PLAIN
    return next((kind for kind in TEXTS if _function(kind.test)(text)), PLAIN)


def _kind_of_zip(content: Content) -> Kind:
    """Which kind of document a zip file is, as its file "mimetype" may say, or an archive."""
    from .archive import opened_zip

    with opened_zip(content) as archive:
        names = set(archive.namelist())
        mimetype = b""
        if "mimetype" in names:
            with archive.open("mimetype") as part:
                mimetype = part.read(200).strip()

    if mimetype == b"application/epub+zip" or "META-INF/container.xml" in names:
        return EPUB
    if mimetype.startswith(b"application/vnd.oasis.opendocument.text"):
        return OPENDOCUMENT
    if mimetype.startswith(b"application/vnd.oasis.opendocument"):
        reason = "is a table, a presentation or a drawing of LibreOffice; save it as .csv or .pdf"
        raise Refused(content.source, reason, "office")
    if "[Content_Types].xml" in names:
        for folder, what in _OFFICE.items():
            if any(name.startswith(folder) for name in names):
                raise Refused(content.source, f"is {what}", "office")
        return WORD
    return ARCHIVE


def _read_archive(content: Content, report: Report) -> Iterator[Document]:
    """The documents of an archive."""
    from . import archive

    return archive.read_archive(content, report, _read_member)


def _read_member(content: Content, report: Report) -> Iterator[Document]:
    """The documents of a file in an archive."""
    kind = recognise(content)
    if kind is ARCHIVE:
        raise Refused(content.source, "is an archive in an archive; unpack it first", "packed")
    return kind.read(content, report)


CHATS = (  # and mailboxes and conversations, which are looked for first
    Kind("mailbox", "chats.mail.read_mailbox", first="F", test="chats.mail.is_mailbox"),
    Kind("Discord chat", "chats.exports.refuse_other_discord", first="A<=",
         test="chats.exports.is_other_discord"),
    Kind("chat in JSON", "chats.exports.read_export", first="{", test="chats.exports.is_export"),
    Kind("Signal chat", "chats.exports.read_signal", first="{[", endings=(".csv", ".tsv"),
         test="chats.exports.is_signal"),
    Kind("conversations in rows", "chats.datasets.read_conversations", magic=b"PAR1", first="{[",
         endings=(".csv", ".tsv"), test="chats.datasets.are_conversations"),
)  # fmt: skip

PDF = Kind("PDF", "pdf.read_pdf", magic=b"%PDF-", is_slow=True)
KINDS = (
    PDF,
    Kind("parquet", "parquet.read_parquet", magic=b"PAR1", has_fields=True),
    Kind("RTF", "rtf.read_rtf", magic=b"{\\rtf", is_slow=True),
    Kind("JSON rows", "rows.read_json_list", first="[", test="rows.is_json_list",
         has_fields=True, is_slow=True),
    Kind("JSON lines", "rows.read_json_lines", endings=(".jsonl", ".ndjson"), has_fields=True),
    Kind("table", "rows.read_table", endings=(".csv", ".tsv"), has_fields=True),
    Kind("web page", "html.read_page", first="<", endings=(".html", ".htm", ".xhtml"),
         test="html.is_page", is_slow=True),
    Kind("notebook", "notebook.read_notebook", first="{", test="notebook.is_notebook",
         is_slow=True),
)  # fmt: skip

# The kinds of zip files
WORD = Kind("Word", "word.read_word", is_slow=True)
OPENDOCUMENT = Kind("OpenDocument", "opendocument.read_opendocument", is_slow=True)
EPUB = Kind("EPUB", "epub.read_epub", is_slow=True)
ARCHIVE = Kind("archive", "kinds._read_archive", has_fields=True, is_slow=True)

# Texts, whose tests are asked in this order, and what is left
TEXTS = (
    Kind("chat in a text", "chats.whatsapp.read_chat", test="chats.whatsapp.is_chat"),
    Kind("play or interview", "chats.plays.read_play", test="chats.plays.form_of"),
    Kind("plain text", "chats.whatsapp.read_unknown_chat", test="chats.whatsapp.looks_like_chat"),
)
PLAIN = Kind("plain text", "plain.read_plain")

_OFFICE = {
    "xl/": "a spreadsheet; save the column with the text as .csv",
    "ppt/": "a presentation; save it as a PDF or as text",
}
_NO_TEXT = {  # each with its kind
    b"\xd0\xcf\x11\xe0": ("a file of an old office program (.doc); save it as .docx", "office"),
    b"\x89PNG": ("a picture (PNG)", "picture"),
    b"\xff\xd8\xff": ("a picture (JPEG)", "picture"),
    b"GIF8": ("a picture (GIF)", "picture"),
    b"RIFF": ("a sound, a film or a picture (RIFF)", "picture"),
    b"ID3": ("a sound (MP3)", "picture"),
    b"OggS": ("a sound (Ogg)", "picture"),
    b"7z\xbc\xaf\x27\x1c": ("an archive that is not read (7z); unpack it first", "packed"),
    b"Rar!": ("an archive that is not read (RAR); unpack it first", "packed"),
    b"\xfd7zXZ": ("packed with xz, which is not read; unpack it first", "packed"),
    b"BZh": ("packed with bzip2, which is not read; unpack it first", "packed"),
    b"\x7fELF": ("a program", "no_text"),
    b"SQLite format 3": ("a database (SQLite)", "no_text"),
}
