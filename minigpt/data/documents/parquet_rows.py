"""The texts of a parquet file, by pyarrow: a program that `apart.read_apart` starts.

It prints lists of the texts of a column, a few rows at a time; null for a row without text.
"""

import sys
from collections.abc import Iterator
from typing import Any

from .apart import Told, answer

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
        raise Told(f"has no column {column!r}; name one with --text-field: {listed}")

    read = 0
    for batch in file.iter_batches(batch_size=_ROWS, columns=[column]):
        values = batch.column(0).to_pylist()
        found = [value if isinstance(value, str) else None for value in values]
        read += sum(len(text) for text in found if text is not None)
        if read > most_unpacked:
            remedy = "if you trust it, use --raise-limits 10"
            raise Told(f"unpacks to too many times its size; {remedy}")
        yield found


if __name__ == "__main__":
    answer(texts(sys.stdin.buffer, sys.argv[2], int(sys.argv[3])))
