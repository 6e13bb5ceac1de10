"""Chats that programs export as JSON: Messenger and Instagram, Telegram Desktop, Discord (by
DiscordChatExporter), Signal (by sigexport or signal-cli; whatsapp.py reads its Markdown).
"""

import codecs
import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..content import Content
from ..document import Document, Refused, Report
from ..rows import are_rows_of, is_json_lines, rows_in
from .turns import NOTHING, Message, documents_of_chat, moment_at, moment_of

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

# One of these is in the beginning of each export. An account of Telegram begins with the person and
# the contacts, and these may be many.
_TELLING = ('"messages"', '"chats"', '"personal_information"', '"contacts"')
_COLUMNS = ("AuthorID", "Author", "Date", "Content")  # with which Discord's tables in CSV begin
_HEADER = ",".join(_COLUMNS).encode()
_FRAME = b"=" * 62  # a line above and below what a text says of its channel
_GROUP = b"chatlog__message-group"  # a class of each web page
_WRITTEN = ("Default", "Reply")  # types of messages that people write


class Program(NamedTuple):
    """A program that exports chats as JSON."""

    name: str
    exports: Callable[[Any], bool]  # whether data is of this program
    messages: Callable[[Any], Iterator[Message]]  # of a chat


def is_export(content: Content) -> bool:
    """Whether a content is an export in JSON of one of these programs."""
    if not any(word in content.beginning for word in _TELLING) or is_json_lines(content):
        return False
    has_text = isinstance(content.data, dict) and content.reading.text_field in content.data
    return not has_text and program_of(content.data) is not None


def read_export(content: Content, report: Report) -> Iterator[Document]:
    """The conversations of each chat in an export."""
    program = program_of(content.data)
    assert program is not None
    report.kind = f"{program.name} chat"
    for chat in chats_in(content.data):
        yield from documents_of_chat(program.messages(chat), content, report)


def program_of(data: Any) -> Program | None:
    """The program that exported data; None if it is no export."""
    return next((program for program in _PROGRAMS if program.exports(data)), None)


def chats_in(data: Any) -> list[Any]:
    """The chats of an export: several, if Telegram exports all of an account."""
    if not isinstance(data, dict):
        return []
    account = data.get("chats")
    if isinstance(account, dict) and isinstance(account.get("list"), list):
        return list(account["list"])
    return [data]


# Messenger and Instagram


def _is_meta(data: Any) -> bool:
    if not isinstance(data, dict) or not isinstance(data.get("participants"), list):
        return False
    messages = data.get("messages")
    if not isinstance(messages, list):
        return False
    return any(
        isinstance(message, dict) and _pick(message, "sender_name", "senderName") is not None
        for message in messages[:50]
    )


def _messages_of_meta(data: dict[str, Any]) -> Iterator[Message]:
    """What people wrote, the oldest first; the export begins with the newest.

    Older exports write each byte of UTF-8 as a character of Latin-1, so that ü becomes Ã¼; that is
    undone. Chats with end-to-end encryption come in another, newer form, which is read too."""
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
            text = _repaired(text)
            name = _repaired(name)
        if _OF_PROGRAM.fullmatch(text.strip()):
            text = ""
        yield Message(name, text, moment_at(_milliseconds(message)))


def _repaired(text: str) -> str:
    """The original of a text whose bytes were taken for Latin-1; any other text unchanged."""
    try:
        return text.encode("latin-1").decode("utf-8")
    except (UnicodeEncodeError, UnicodeDecodeError):
        return text


def _pick(message: dict[str, Any], *names: str) -> Any:
    return next((message[name] for name in names if name in message), None)


def _milliseconds(message: dict[str, Any]) -> float:
    time = _pick(message, "timestamp_ms", "timestamp")
    with contextlib.suppress(OverflowError):  # a number of hundreds of digits
        return float(time) if isinstance(time, int | float) else 0.0
    return 0.0


# Telegram


def _is_telegram(data: Any) -> bool:
    return any(_is_chat(chat) for chat in chats_in(data))


def _is_chat(chat: Any) -> bool:
    if not isinstance(chat, dict) or not isinstance(chat.get("messages"), list):
        return False
    return any(
        isinstance(message, dict)
        and "text" in message
        and ("from" in message or "actor" in message)
        for message in chat["messages"][:50]
    )


def _messages_of_telegram(chat: Any) -> Iterator[Message]:
    """What people wrote themselves: nothing that they passed on, and nothing of the program."""
    messages = chat.get("messages") if isinstance(chat, dict) else None
    if not isinstance(messages, list):
        return
    for message in messages:
        if not isinstance(message, dict) or not _is_own(message):
            yield NOTHING
            continue
        name = message.get("from") or "Deleted account"
        text = _text(message.get("text"))
        yield Message(str(name), text, moment_of(message.get("date")))


def _is_own(message: dict[str, Any]) -> bool:
    """Whether somebody wrote a message."""
    is_passed_on = message.get("forwarded_from") or message.get("via_bot")
    return message.get("type", "message") == "message" and not is_passed_on


def _text(written: Any) -> str:
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


def _is_discord(data: Any) -> bool:
    if not isinstance(data, dict) or not isinstance(data.get("messages"), list):
        return False
    is_channel = "channel" in data or "guild" in data
    return is_channel and any(
        isinstance(message, dict)
        and isinstance(message.get("author"), dict)
        and "content" in message
        for message in data["messages"][:50]
    )


def _messages_of_discord(data: dict[str, Any]) -> Iterator[Message]:
    """What people wrote in a channel."""
    for message in data["messages"]:
        author = message.get("author") if isinstance(message, dict) else None
        if not isinstance(author, dict) or message.get("type", "Default") not in _WRITTEN:
            yield NOTHING
            continue
        name = author.get("nickname") or author.get("name") or "Somebody"
        text = str(message.get("content") or "")
        yield Message(str(name), text, moment_of(message.get("timestamp")))


def is_other_discord(content: Content) -> bool:
    """Whether a content is a channel of Discord that is not in JSON; of a table only if
    --text-field names none of its columns."""
    return _other_format(content.head) is not None and content.reading.text_field not in _COLUMNS


def refuse_other_discord(content: Content, report: Report) -> Iterator[Document]:
    """Say what to do with a channel of Discord that is not in JSON."""
    form = _other_format(content.head)
    reason = f"is an export of Discord as {form}; export it as JSON in DiscordChatExporter"
    raise Refused(content.source, reason, "discord")


def _other_format(head: bytes) -> str | None:
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


def is_signal(content: Content) -> bool:
    """Whether a content has rows that are messages of Signal."""
    return are_rows_of(content, _is_row_of_signal, telling=(b"envelope", b"sender"))


def read_signal(content: Content, report: Report) -> Iterator[Document]:
    """The conversations of the one chat that a file of rows holds."""
    return documents_of_chat(messages_of_signal(rows_in(content, report)), content, report)


def messages_of_signal(rows: Iterable[Any]) -> Iterator[Message]:
    """What people wrote."""
    for row in rows:
        envelope = row.get("envelope") if isinstance(row, dict) else None
        message = _of_envelope(envelope) if isinstance(envelope, dict) else _of_sigexport(row)
        yield NOTHING if message is None else message


def _is_row_of_signal(row: Any) -> bool:
    """Whether a line of JSON is a message of Signal."""
    if not isinstance(row, dict):
        return False
    is_of_sigexport = {"date", "sender", "body"} <= row.keys()
    return is_of_sigexport or isinstance(row.get("envelope"), dict)


def _of_sigexport(row: Any) -> Message | None:
    if not isinstance(row, dict):
        return None
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


_PROGRAMS = (
    Program("Messenger or Instagram", _is_meta, _messages_of_meta),
    Program("Discord", _is_discord, _messages_of_discord),
    Program("Telegram", _is_telegram, _messages_of_telegram),
)
