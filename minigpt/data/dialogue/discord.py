"""Channels of Discord, as DiscordChatExporter writes them in JSON. What it writes in other formats
is recognised, so that it can be refused."""

import codecs
from collections.abc import Iterator
from typing import Any

from .turns import NOTHING, Message, moment_of

COLUMNS = ("AuthorID", "Author", "Date", "Content")  # with which a table in CSV begins
_HEADER = ",".join(COLUMNS).encode()
_FRAME = b"=" * 62  # a line above and below what a text says of its channel
_GROUP = b"chatlog__message-group"  # a class of each web page
BEGINNINGS = (_HEADER, b"<", _FRAME)  # of what may be an export that is not in JSON
_WRITTEN = ("Default", "Reply")  # types of messages that people write


def is_discord(data: Any) -> bool:
    """Whether data is the JSON of a channel."""
    if not isinstance(data, dict) or not isinstance(data.get("messages"), list):
        return False
    is_channel = "channel" in data or "guild" in data
    return is_channel and any(
        isinstance(message, dict)
        and isinstance(message.get("author"), dict)
        and "content" in message
        for message in data["messages"][:50]
    )


def channels(data: dict[str, Any]) -> Iterator[Iterator[Message]]:
    """The messages of the one channel that an export holds."""
    yield _messages(data)


def _messages(data: dict[str, Any]) -> Iterator[Message]:
    """What people wrote in a channel: its JSON."""
    for message in data["messages"]:
        author = message.get("author") if isinstance(message, dict) else None
        if not isinstance(author, dict) or message.get("type", "Default") not in _WRITTEN:
            yield NOTHING
            continue
        name = author.get("nickname") or author.get("name") or "Somebody"
        text = str(message.get("content") or "")
        yield Message(str(name), text, moment_of(message.get("timestamp")))


def other_format(head: bytes) -> str | None:
    """The format of a channel whose file begins like this: "CSV", "text" or "HTML". None if it is
    in JSON, or no channel."""
    begin = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if begin.startswith(_HEADER):
        return "CSV"
    if begin.startswith(b"<") and _GROUP in begin:
        return "HTML"
    first, _, rest = begin.partition(b"\n")
    is_text = first.rstrip() == _FRAME and rest.startswith(b"Guild: ")
    return "text" if is_text else None
