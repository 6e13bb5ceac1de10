"""Chats that Messenger and Instagram export as JSON, newest message first.

Their exports write each byte of UTF-8 as a character of Latin-1, so that ü becomes Ã¼; that is
undone. Chats with end-to-end encryption come in another, newer form, which is read too.
"""

import re
from collections.abc import Iterator
from typing import Any

from .turns import NOTHING, Message, moment_at

_OF_PROGRAM = re.compile(
    r".{1,60} (?:sent an attachment|sent a (?:photo|video|sticker|GIF|link|voice message|reel|post)"
    r"|unsent a message|missed your (?:video )?call|liked a message"
    r"|hat (?:eine[nm]?) .{1,30} gesendet"
    r"|changed the (?:theme|chat theme|group photo|quick reaction)\b.{0,60}"
    r"|named the group .{1,100}|set the (?:emoji|quick reaction|nickname)\b.{0,100})\.?"
    r"|liked a message|you are now connected on messenger\.?|reacted .{1,12} to your message\s?"
    r"|you can now message and call each other\b.{0,120}|this poll is no longer available\.?"
    r"|missed your (?:video )?call\.?|(?:you )?named the group .{1,100}"
    r"|you (?:sent an attachment|unsent a message|missed a (?:video )?call.*)\.?",
    re.IGNORECASE,
)


def is_meta(data: Any) -> bool:
    """Whether data is a chat of Messenger or Instagram."""
    if not isinstance(data, dict) or not isinstance(data.get("participants"), list):
        return False
    messages = data.get("messages")
    if not isinstance(messages, list):
        return False
    return any(
        isinstance(message, dict) and _pick(message, "sender_name", "senderName") is not None
        for message in messages[:50]
    )


def chats_of_meta(data: dict[str, Any]) -> Iterator[Iterator[Message]]:
    """The messages of the one chat that an export holds."""
    yield _messages(data)


def _messages(data: dict[str, Any]) -> Iterator[Message]:
    """What people wrote, the oldest first."""
    written = [message for message in data["messages"] if isinstance(message, dict)]
    is_older = any("sender_name" in message for message in written[:50])
    yield from [NOTHING] * (len(data["messages"]) - len(written))
    for message in sorted(written, key=_milliseconds):
        text = _pick(message, "content", "text")
        name = _pick(message, "sender_name", "senderName")
        is_gone = message.get("is_unsent") or message.get("isUnsent") or "share" in message
        if not isinstance(text, str) or not isinstance(name, str) or is_gone:
            yield NOTHING
            continue
        if is_older:
            text = repaired(text)
            name = repaired(name)
        if _OF_PROGRAM.fullmatch(text.strip()):
            text = ""
        yield Message(name, text, moment_at(_milliseconds(message)))


def repaired(text: str) -> str:
    """The original of a text whose bytes were taken for Latin-1; any other text unchanged."""
    try:
        return text.encode("latin-1").decode("utf-8")
    except (UnicodeEncodeError, UnicodeDecodeError):
        return text


def _pick(message: dict[str, Any], *names: str) -> Any:
    return next((message[name] for name in names if name in message), None)


def _milliseconds(message: dict[str, Any]) -> float:
    time = _pick(message, "timestamp_ms", "timestamp")
    return float(time) if isinstance(time, int | float) else 0.0
