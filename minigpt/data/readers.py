"""From one file to documents of text: which kind of file it is, and what its reader yields.

The readers are in documents/; corpus.py joins the files.
"""

from collections.abc import Iterator
from pathlib import Path

from .. import UserError
from ..config import ReadingConfig
from .documents.content import BLOCK, Content
from .documents.document import STANDARD_INPUT, Document, Refused, Report, Unreadable, title
from .documents.kept import KEPT
from .documents.kinds import recognise
from .documents.rows import value_in
from .file_version import version_of

__all__ = [
    "BLOCK",
    "STANDARD_INPUT",
    "Document",
    "Refused",
    "Report",
    "Unreadable",
    "check_is_text",
    "has_fields",
    "read_file",
    "title",
    "value_in",
]


def read_file(
    file: Path, reading: ReadingConfig, report: Report | None = None
) -> Iterator[Document]:
    """The documents of a file, as they come: long ones in pieces of about a megabyte.

    `report` is filled in while the documents are taken. What cannot be read is raised as UserError,
    perhaps only after some documents."""
    if report is None:
        report = Report(file)
    return report.counted(_documents(file, reading, report))


def _documents(file: Path, reading: ReadingConfig, report: Report) -> Iterator[Document]:
    """The documents of a file; those of a slow reader are read once."""
    key = (str(file), version_of(file), reading)
    kept = KEPT.documents(key, report)
    if kept is not None:
        return kept

    content = Content.of_file(file, reading)
    kind = recognise(content)
    report.kind = kind.name
    documents = kind.read(content, report)
    return KEPT.keep(key, documents, report) if kind.is_converted else documents


def check_is_text(file: Path, reading: ReadingConfig) -> None:
    """Refuse a file that is no text, judging by its beginning: with Refused or Unreadable."""
    recognise(Content.of_file(file, reading))


def has_fields(file: Path, reading: ReadingConfig) -> bool:
    """Whether a file has rows with fields, of which one holds the text."""
    try:
        return recognise(Content.of_file(file, reading)).has_fields
    except UserError:  # said when it is read
        return False
