"""JSON: objects of files and lines that may be missing, damaged or another program's; files with an
object in each line, which grow while a training goes on; and text that is not whole.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def read_object(path: Path) -> dict[str, Any]:
    """The object in a file; empty if it is not there, or damaged."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return {}
    return parse_object(text)


def parse_object(text: str | bytes, *, finite: bool = True) -> dict[str, Any]:
    """The object that a text holds; empty if it holds none. With `finite` NaN and Infinity, which
    no browser can read, are None."""
    try:
        value = json.loads(text, parse_constant=(lambda _: None) if finite else None)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


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


def to_json(value: Any, *, indent: int | None = None) -> str:
    """JSON that UTF-8 can hold and people can read: only half a surrogate pair, such as a byte of a
    file name that is not UTF-8, is escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return text.encode("utf-8", errors="backslashreplace").decode()


def without_halves(value: Any) -> Any:
    """A value of JSON, with U+FFFD in the place of each half of a surrogate pair."""
    text = json.dumps(value, ensure_ascii=False)
    return json.loads(text.encode("utf-16", errors="surrogatepass").decode("utf-16", "replace"))
