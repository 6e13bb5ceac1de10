"""A parquet file: a document for each row, from the column of the text."""

import importlib.util
from collections.abc import Iterator

from .apart import read_apart
from .content import Content, needs_extra
from .document import Document, Report
from .plain import documents_in_rows

MAGIC = b"PAR1"


def read_parquet(content: Content, report: Report) -> Iterator[Document]:
    """The documents of a parquet file."""
    if importlib.util.find_spec("pyarrow") is None:
        raise needs_extra(content.source, "parquet (pyarrow)")
    return documents_in_rows(_rows(content, report), content.source)


def _rows(content: Content, report: Report) -> Iterator[tuple[int, str]]:
    """The number of each row that has a text, and its text."""
    arguments = (content.reading.text_field, str(content.most_unpacked()))
    number = 0
    for texts in read_apart("parquet_rows", content, *arguments):
        for text in texts:
            number += 1
            if text:
                yield number, text
            else:
                report.leave_out("rows without text")
