"""Which form of dialogue a text is in, if any: the one place that decides it.

Nothing is recognised by the name of a file alone. What is recognised is read by the modules beside
this one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from . import discord, mail, meta, rows, script, signal, telegram, whatsapp
from .turns import Message

HEAD = 400_000  # characters of a text that are enough to recognise it

Conversations = Iterator[Iterable[Message]]  # each may hold several, with silence between them


class TextForm(NamedTuple):
    """A form of dialogue in plain text."""

    kind: str  # "WhatsApp chat"
    is_private: bool  # a chat, in which telephone numbers are not told
    conversations: Callable[[str], Conversations]  # of the whole text
    is_script: bool = False  # a play or an interview, whose text can stay as it is


class DataForm(NamedTuple):
    """A form of dialogue in the data of a JSON file."""

    kind: str
    is_private: bool
    conversations: Callable[[Any], Conversations]


class RowForm(NamedTuple):
    """A form of dialogue in rows: lines of JSON, or the rows of a table."""

    kind: str
    is_private: bool
    conversations: Callable[[Iterator[Mapping[str, Any]]], Conversations]


def form_of_text(head: str) -> TextForm | None:
    """The form of a text that begins like this, in at most HEAD characters."""
    chat = whatsapp.kind_of_chat(head)
    if chat is not None:
        return TextForm(f"{chat} chat", True, whatsapp.exports)
    if script.is_script(head):
        return TextForm("play or interview", False, script.scenes, is_script=True)
    return None


def form_of_data(data: Any) -> DataForm | None:
    """The form of what a JSON file holds."""
    if meta.is_meta(data):
        return DataForm(
            "Messenger or Instagram chat", True, lambda data: iter([meta.messages_of_meta(data)])
        )
    if discord.is_discord(data):
        return DataForm(
            "Discord chat", True, lambda data: iter([discord.messages_of_channel(data)])
        )
    if telegram.is_telegram(data):
        return DataForm("Telegram chat", True, telegram.chats)
    if rows.is_conversation(data):
        return DataForm("conversation", False, lambda data: iter([rows.messages_of_row(data)]))
    return None


def form_of_rows(first: Mapping[str, Any]) -> RowForm | None:
    """The form of rows of which this is the first."""
    if signal.is_row_of_signal(first):
        return RowForm("Signal chat", True, lambda given: iter([signal.messages_of_signal(given)]))
    if rows.is_conversation(first):
        return RowForm(
            "conversations in rows", False, lambda given: map(rows.messages_of_row, given)
        )
    return None


def is_mailbox(beginning: bytes) -> bool:
    """Whether a file that begins like this is a mailbox, which `mail.threads` reads."""
    return mail.is_mbox(beginning)
