"""A parquet file: a document for each row, from the column of the text; or rows of conversations,
for dialogue/."""

import importlib.util
import json
from collections.abc import Iterable, Iterator
from typing import Any

from .apart import read_apart
from .content import Content, needs_extra
from .document import Document, Report
from .plain import documents_in_rows

_LONGEST_FOOTER = 16 << 20  # bytes at the end of a file that name its columns


def read_parquet(content: Content, report: Report) -> Iterator[Document]:
    """The documents of a parquet file."""
    if importlib.util.find_spec("pyarrow") is None:
        raise needs_extra(content.source, "parquet (pyarrow)", "parquet", "no_parquet")
    return documents_in_rows(_rows(content), content.source, report)


def rows_of(content: Content, columns: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The rows of a parquet file, with those of `columns` that it has. There are no rows if it has
    none of the columns."""
    wanted = list(columns)
    if importlib.util.find_spec("pyarrow") is None or not _may_name(content, wanted):
        return
    arguments = ("rows", json.dumps(wanted), str(content.most_unpacked()))
    for rows in read_apart("parquet_rows", content, *arguments):
        yield from rows


def _may_name(content: Content, columns: Iterable[str]) -> bool:
    """Whether the end of a file may name one of these columns: a quick look, without pyarrow."""
    with content.seekable() as stream:
        size = stream.seek(0, 2)
        stream.seek(max(size - _LONGEST_FOOTER, 0))
        footer = stream.read()
    begin = len(footer) - 8 - int.from_bytes(footer[-8:-4], "little")
    return any(column.encode() in footer[max(begin, 0) :] for column in columns)


def _rows(content: Content) -> Iterator[tuple[int, Any]]:
    """The number of each row, and what it has in the column of the text."""
    arguments = ("texts", content.reading.text_field, str(content.most_unpacked()))
    number = 0
    size = 0
    for values in read_apart("parquet_rows", content, *arguments):
        size += sum(len(value) for value in values if value is not None)
        content.count_unpacked(size)
        for value in values:
            number += 1
            yield number, value
