"""Signal's chats as JSON lines, by sigexport. whatsapp.py reads its Markdown."""

from collections.abc import Iterator, Mapping
from typing import Any

from .turns import NOTHING, Message, moment_of


def is_row_of_signal(row: Any) -> bool:
    """Whether a line of JSON is a message of Signal."""
    return isinstance(row, dict) and {"date", "sender", "body"} <= row.keys()


def messages_of_signal(rows: Iterator[Mapping[str, Any]]) -> Iterator[Message]:
    """What people wrote."""
    for row in rows:
        text = row.get("body")
        name = row.get("sender")
        if isinstance(text, str) and isinstance(name, str):
            yield Message(name, text, moment_of(row.get("date")))
        else:
            yield NOTHING
