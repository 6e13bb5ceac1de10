"""A parquet file: a document for each row, from the column of the text; or rows of conversations,
for chats/.

It is read by pyarrow in a process of its own, which runs this module: `texts COLUMN MOST` prints
lists of the texts of a column, a few rows at a time; null for a row without text.
`rows COLUMNS MOST` prints lists of rows; COLUMNS is a list in JSON, and each row has those of the
columns that the file has. MOST is the number of bytes that may be unpacked.
"""

import contextlib
import importlib.util
import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from .apart import CannotRead, answer, read_apart
from .content import Content, needs_extra
from .document import Document, Report
from .plain import documents_in_rows

_LONGEST_FOOTER = 16 << 20  # bytes at the end of a file that name its columns
_ROWS = 256  # at a time
_MOST_NAMED = 8  # columns


def read_parquet(content: Content, report: Report) -> Iterator[Document]:
    """The documents of a parquet file."""
    if importlib.util.find_spec("pyarrow") is None:
        raise needs_extra(content.source, "parquet (pyarrow)", "parquet", "no_parquet")
    return documents_in_rows(_rows(content), content.source, report)


def rows_of_parquet(content: Content, columns: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The rows of a parquet file, with those of `columns` that it has. There are no rows if it has
    none of the columns."""
    wanted = list(columns)
    if importlib.util.find_spec("pyarrow") is None or not _may_name(content, wanted):
        return
    arguments = ("rows", json.dumps(wanted), str(content.most_unpacked()))
    for rows in read_apart("parquet", content, *arguments):
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
    for values in read_apart("parquet", content, *arguments):
        size += sum(len(value) for value in values if value is not None)
        content.count_unpacked(size)
        for value in values:
            number += 1
            yield number, value


# In the other process


def texts_of_column(stream: Any, column: str, most_unpacked: int) -> Iterator[list[str | None]]:
    """The texts of a column."""
    from pyarrow import parquet

    file = parquet.ParquetFile(stream)
    names = file.schema_arrow.names
    if column not in names:
        shown = ", ".join(name[:40] for name in names[:_MOST_NAMED])
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        listed = f"{shown}{more}"
        missing = f"has no column {column!r}"
        raise CannotRead(f"{missing}; name one with --text-field: {listed}", "column")

    read = 0
    for batch in file.iter_batches(batch_size=_ROWS, columns=[column]):
        found = [_text(value) for value in _values(batch.column(0))]
        read += sum(len(text) for text in found if text is not None)
        _check_unpacked(read, most_unpacked)
        yield found


def _values(column: Any) -> list[Any]:
    """The values of a column; texts as bytes, since a damaged one would make all unreadable."""
    import pyarrow

    is_text = pyarrow.types.is_string(column.type) or pyarrow.types.is_large_string(column.type)
    values: list[Any] = (column.cast(pyarrow.large_binary()) if is_text else column).to_pylist()
    return values


def _text(value: Any) -> str | None:
    """A value, which may come as bytes, as text; None if it is no text."""
    if isinstance(value, bytes):
        with contextlib.suppress(UnicodeDecodeError):
            return value.decode()
    return value if isinstance(value, str) else None


def rows_of_columns(
    stream: Any, columns: list[str], most_unpacked: int
) -> Iterator[list[dict[str, Any]]]:
    """The rows, with those of `columns` that the file has."""
    from pyarrow import parquet

    file = parquet.ParquetFile(stream)
    chosen = [name for name in file.schema_arrow.names if name in columns]
    read = 0
    for batch in file.iter_batches(batch_size=_ROWS, columns=chosen):
        read += batch.nbytes
        _check_unpacked(read, most_unpacked)
        yield batch.to_pylist()


def _check_unpacked(read: int, most: int) -> None:
    if read > most:
        remedy = "if you trust it, use --raise-limits 10"
        raise CannotRead(f"unpacks to too many times its size; {remedy}", "too_large")


if __name__ == "__main__":
    _, _, what, wanted, most = sys.argv
    if what == "texts":
        answer(texts_of_column(sys.stdin.buffer, wanted, int(most)))
    else:
        answer(rows_of_columns(sys.stdin.buffer, json.loads(wanted), int(most)))
