"""Chats that Telegram Desktop exports as JSON: one chat, or all of an account."""

from collections.abc import Iterator
from typing import Any

from .turns import NOTHING, Message, moment_of


def is_telegram(data: Any) -> bool:
    """Whether data is an export of one chat, or of several."""
    return any(_is_chat(chat) for chat in _chats(data))


def chats_of_telegram(data: Any) -> Iterator[Iterator[Message]]:
    """The messages of each chat."""
    for chat in _chats(data):
        if isinstance(chat, dict) and isinstance(chat.get("messages"), list):
            yield _messages(chat)


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


def _messages(chat: dict[str, Any]) -> Iterator[Message]:
    """What people wrote themselves: nothing that they passed on, and nothing of the program."""
    for message in chat["messages"]:
        if not isinstance(message, dict) or not _is_own(message):
            yield NOTHING
            continue
        name = message.get("from") or "Deleted account"
        yield Message(str(name), _text(message.get("text")), moment_of(message.get("date")))


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
