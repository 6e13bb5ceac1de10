"""Which kind of file a content is, and what reads it. The first kind that matches does.

The content decides where it shows the kind. The name decides only where it does not, as for .csv.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..dialogue.reading import kind_of_data, kind_of_text
from . import epub, opendocument, rtf, zipped
from .archive import Read, read_archive
from .content import Content
from .document import Document, Refused, Report
from .encoding import text_head
from .html import is_page, read_page
from .notebook import is_notebook, read_notebook
from .parquet import MAGIC, read_parquet
from .pdf import read_pdf
from .plain import read_plain
from .rows import is_json_list, read_json_lines, read_json_list, read_table
from .word import read_word


class Kind(NamedTuple):
    """A kind of file."""

    name: str  # as `minigpt read` shows it
    matches: Callable[[Content], bool]
    read: Read
    has_fields: bool = False  # whether a row has fields of which one holds the text
    is_converted: bool = False  # whether what was read is kept, since reading takes long


def recognise(content: Content) -> Kind:
    """The kind of a content. UserError if it is no text, as far as its beginning tells."""
    data = kind_of_data(content)
    if data is not None:
        return Kind(data.name, lambda content: True, data.read)
    for kind in KINDS:
        if kind.matches(content):
            return kind

    for magic, (what, kind_of_file) in _NO_TEXT.items():
        if content.head.startswith(magic):
            raise Refused(content.source, f"is {what}", kind_of_file)
    if content.head.startswith(zipped.MAGIC):
        return _zip_kind(content)
    text_head(content)
    text = kind_of_text(content)
    if text is not None:
        return Kind(text.name, lambda content: True, text.read)
    return PLAIN


def _zip_kind(content: Content) -> Kind:
    """Which kind of document a zip file is, as its file "mimetype" may say, or an archive."""
    with zipped.opened_zip(content) as archive:
        names = set(archive.namelist())
        mimetype = b""
        if "mimetype" in names:
            with archive.open("mimetype") as part:
                mimetype = part.read(200).strip()

    if mimetype == epub.MIMETYPE or "META-INF/container.xml" in names:
        return EPUB
    if mimetype.startswith(opendocument.MIMETYPE):
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
    return read_archive(content, report, _read_member)


def _read_member(content: Content, report: Report) -> Iterator[Document]:
    """The documents of a file in an archive."""
    kind = recognise(content)
    if kind is ARCHIVE:
        raise Refused(content.source, "is an archive in an archive; unpack it first", "packed")
    report.kind = kind.name
    return kind.read(content, report)


def _ends(*endings: str) -> Callable[[Content], bool]:
    """Whether the name has one of these endings."""
    return lambda content: content.name.endswith(endings)


def _begins(magic: bytes) -> Callable[[Content], bool]:
    """Whether the content begins with these bytes."""
    return lambda content: content.head.startswith(magic)


def _is_pdf(content: Content) -> bool:
    """Whether the content is a PDF, which may begin with something else."""
    return content.head.startswith(b"%PDF-") or b"\n%PDF-" in content.head[:_PDF_WITHIN]


def _never(content: Content) -> bool:
    """For the kinds that :func:`recognise` finds itself."""
    return False


PLAIN = Kind("plain text", _never, read_plain)
WORD = Kind("Word", _never, read_word, is_converted=True)
OPENDOCUMENT = Kind("OpenDocument", _never, opendocument.read_opendocument, is_converted=True)
EPUB = Kind("EPUB", _never, epub.read_epub, is_converted=True)
ARCHIVE = Kind("archive", _never, _read_archive, has_fields=True, is_converted=True)
KINDS: tuple[Kind, ...] = (
    Kind("PDF", _is_pdf, read_pdf, is_converted=True),
    Kind("parquet", _begins(MAGIC), read_parquet, has_fields=True),
    Kind("RTF", _begins(rtf.MAGIC), rtf.read_rtf, is_converted=True),
    Kind("JSON rows", is_json_list, read_json_list, has_fields=True, is_converted=True),
    Kind("JSON lines", _ends(".jsonl", ".ndjson"), read_json_lines, has_fields=True),
    Kind("table", _ends(".csv", ".tsv"), read_table, has_fields=True),
    Kind("web page", is_page, read_page, is_converted=True),
    Kind("notebook", is_notebook, read_notebook, is_converted=True),
)
_PDF_WITHIN = 1024  # bytes
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
