"""What a parquet file holds, by pyarrow: a program that `apart.read_apart` starts.

`texts COLUMN MOST` prints lists of the texts of a column, a few rows at a time; null for a row
without text. `rows COLUMNS MOST` prints lists of rows; COLUMNS is a list in JSON, and each row has
those of the columns that the file has. MOST is the number of bytes that may be unpacked.
"""

import contextlib
import json
import sys
from collections.abc import Iterator
from typing import Any

from .apart import CannotRead, answer

_ROWS = 256  # at a time
_MOST_NAMED = 8  # columns


def texts(stream: Any, column: str, most_unpacked: int) -> Iterator[list[str | None]]:
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


def rows(stream: Any, columns: list[str], most_unpacked: int) -> Iterator[list[dict[str, Any]]]:
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
        answer(texts(sys.stdin.buffer, wanted, int(most)))
    else:
        answer(rows(sys.stdin.buffer, json.loads(wanted), int(most)))
