"""JSON objects of files and lines that may be missing, damaged or another program's."""

import json
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
    """The object that a text is; empty if it is none. With `finite` NaN and Infinity, which no
    browser can read, are None."""
    try:
        value = json.loads(text, parse_constant=(lambda _: None) if finite else None)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
