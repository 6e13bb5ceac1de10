"""Signal's chats as JSON lines, by sigexport or signal-cli. whatsapp.py reads its Markdown."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .turns import NOTHING, Message, moment_at, moment_of


def is_row_of_signal(row: Any) -> bool:
    """Whether a line of JSON is a message of Signal."""
    if not isinstance(row, dict):
        return False
    is_of_sigexport = {"date", "sender", "body"} <= row.keys()
    return is_of_sigexport or isinstance(row.get("envelope"), dict)


def chats_of_signal(rows: Iterable[Mapping[str, Any]]) -> Iterator[Iterator[Message]]:
    """The messages of the one chat that a file holds."""
    yield _messages(rows)


def _messages(rows: Iterable[Mapping[str, Any]]) -> Iterator[Message]:
    """What people wrote."""
    for row in rows:
        envelope = row.get("envelope")
        message = _of_envelope(envelope) if isinstance(envelope, dict) else _of_sigexport(row)
        yield NOTHING if message is None else message


def _of_sigexport(row: Mapping[str, Any]) -> Message | None:
    text = row.get("body")
    name = row.get("sender")
    if not isinstance(text, str) or not isinstance(name, str) or not text.strip():
        return None
    return Message(name, text, moment_of(row.get("date")))


def _of_envelope(envelope: Mapping[str, Any]) -> Message | None:
    """A message that was received, or one that was sent by another device of the same person."""
    name = envelope.get("sourceName") or envelope.get("source")
    content = envelope.get("dataMessage")
    sync = envelope.get("syncMessage")
    if content is None and isinstance(sync, dict):
        content = sync.get("sentMessage")
    text = content.get("message") if isinstance(content, dict) else None
    if not isinstance(name, str) or not isinstance(text, str) or not text.strip():
        return None
    return Message(name, text, moment_at(envelope.get("timestamp")))
