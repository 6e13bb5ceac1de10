"""JSON objects that lie on the disk, as a window can be told of them."""

import json
from pathlib import Path
from typing import Any


def read_stored(path: Path) -> dict[str, Any]:
    """The object in a file; empty if it is not there, or damaged. A window can read neither NaN nor
    Infinity, so that these are None."""
    try:
        text = path.read_text(encoding="utf-8")
        value = json.loads(text, parse_constant=lambda _: None)
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
