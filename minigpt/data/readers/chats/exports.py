"""Chats that programs export as JSON: Messenger and Instagram, Telegram Desktop, Discord (by
DiscordChatExporter), Signal (by sigexport or signal-cli; whatsapp.py reads its Markdown).
"""

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .turns import NOTHING, Message, moment_at, moment_of

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

COLUMNS = ("AuthorID", "Author", "Date", "Content")  # with which a table in CSV begins
_HEADER = ",".join(COLUMNS).encode()
_FRAME = b"=" * 62  # a line above and below what a text says of its channel
_GROUP = b"chatlog__message-group"  # a class of each web page
BEGINNINGS = (_HEADER, b"<", _FRAME)  # of what may be an export that is not in JSON
_WRITTEN = ("Default", "Reply")  # types of messages that people write


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
    """The messages of the one chat that an export holds, which begins with the newest.

    Older exports write each byte of UTF-8 as a character of Latin-1, so that ü becomes Ã¼; that is
    undone. Chats with end-to-end encryption come in another, newer form, which is read too."""
    yield _written_in_meta(data)


def _written_in_meta(data: dict[str, Any]) -> Iterator[Message]:
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


# Telegram


def is_telegram(data: Any) -> bool:
    """Whether data is an export of one chat, or of several."""
    return any(_is_chat(chat) for chat in _chats(data))


def chats_of_telegram(data: Any) -> Iterator[Iterator[Message]]:
    """The messages of each chat."""
    for chat in _chats(data):
        if isinstance(chat, dict) and isinstance(chat.get("messages"), list):
            yield _written_in_telegram(chat)


def _chats(data: Any) -> list[Any]:
    if not isinstance(data, dict):
        return []
    account = data.get("chats")
    if isinstance(account, dict) and isinstance(account.get("list"), list):
        return list(account["list"])
    return [data]


def _is_chat(chat: Any) -> bool:
    if not isinstance(chat, dict) or not isinstance(chat.get("messages"), list):
        return False
    return any(
        isinstance(message, dict)
        and "text" in message
        and ("from" in message or "actor" in message)
        for message in chat["messages"][:50]
    )


def _written_in_telegram(chat: dict[str, Any]) -> Iterator[Message]:
    """What people wrote themselves: nothing that they passed on, and nothing of the program."""
    for message in chat["messages"]:
        if not isinstance(message, dict) or not _is_own(message):
            yield NOTHING
            continue
        name = message.get("from") or "Deleted account"
        text = _text_of_telegram(message.get("text"))
        yield Message(str(name), text, moment_of(message.get("date")))


def _is_own(message: dict[str, Any]) -> bool:
    """Whether somebody wrote a message."""
    is_passed_on = message.get("forwarded_from") or message.get("via_bot")
    return message.get("type", "message") == "message" and not is_passed_on


def _text_of_telegram(written: Any) -> str:
    """A text, which may come in parts such as links and mentions."""
    if isinstance(written, str):
        return written
    if not isinstance(written, list):
        return ""

    parts = []
    for part in written:
        if isinstance(part, dict):
            is_number = part.get("type") == "phone"
            parts.append("(number)" if is_number else str(part.get("text", "")))
        else:
            parts.append(str(part))
    return "".join(parts)


# Discord


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
    yield _written_in_discord(data)


def _written_in_discord(data: dict[str, Any]) -> Iterator[Message]:
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


# Signal


def is_row_of_signal(row: Any) -> bool:
    """Whether a line of JSON is a message of Signal."""
    if not isinstance(row, dict):
        return False
    is_of_sigexport = {"date", "sender", "body"} <= row.keys()
    return is_of_sigexport or isinstance(row.get("envelope"), dict)


def chats_of_signal(rows: Iterable[Mapping[str, Any]]) -> Iterator[Iterator[Message]]:
    """The messages of the one chat that a file holds."""
    yield _written_in_signal(rows)


def _written_in_signal(rows: Iterable[Mapping[str, Any]]) -> Iterator[Message]:
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
