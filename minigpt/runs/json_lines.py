"""Files with a row of JSON in each line, which grow while a training goes on."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..system.json_objects import parse_object, to_json


def lines_of(rows: Iterable[dict[str, Any]]) -> str:
    """The text of such rows."""
    return "".join(to_json(row) + "\n" for row in rows)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a file; a line that is no row, such as half of one, is left out. No rows if the
    file cannot be read."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []

    rows = []
    for line in text.split("\n"):  # splitlines would also split at U+2028, inside a row
        row = parse_object(line)
        if row:
            rows.append(row)
    return rows
