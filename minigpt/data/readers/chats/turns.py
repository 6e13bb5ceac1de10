"""What a conversation is made of: a reader of chats finds `Message`s, as they were written, and
these become documents of turns.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from ..content import Content
from ..document import Document, Report, Turn, without_invisible

_LONGEST_NAME = 60  # characters
_PHONE = re.compile(r"\+?\(?\d[\d\s().\u2011\u202f\xa0/-]{5,}\d")
_PHONE_IN_TEXT = re.compile(r"(?<![\w+])\+\d(?:[\s().\u2011\u202f\xa0/-]{0,2}\d){6,14}(?!\w)")
_MENTION = re.compile(r"@\u2068?\+?\d{7,15}\u2069?(?!\w)")  # of somebody by the number


class Message(NamedTuple):
    """Something that somebody wrote or said, as it is in the file."""

    speaker: str
    text: str
    time: datetime | None = None  # by the clock of the place


NOTHING = Message("", "")  # in the place of what nobody wrote, so that it can be counted


def conversations(messages: Iterable[Message], silence: float) -> Iterator[list[Turn]]:
    """The conversations of a chat, which hours of `silence` separate. Messages that one speaker
    sends one after another are one turn; those without text are left out."""
    pause = timedelta(hours=silence)
    turns: list[Turn] = []
    last: datetime | None = None

    for message in messages:
        is_later = last is not None and message.time is not None and message.time - last > pause
        if is_later and turns:
            yield turns
            turns = []
        last = message.time or last

        text = clean_text(message.text)
        if not text:
            continue
        if turns and turns[-1].speaker == message.speaker:
            text = f"{turns.pop().text}\n{text}"
        turns.append(Turn(message.speaker, text))

    if turns:
        yield turns


def documents_of_chat(
    messages: Iterable[Message],
    content: Content,
    report: Report,
    *,
    is_private: bool = True,
) -> Iterator[Document]:
    """The conversations of a chat, each a document. In a private one telephone numbers are left
    out; messages without text are counted."""

    def written() -> Iterator[Message]:
        for message in messages:
            text = clean_text(message.text)
            if text:
                yield message._replace(text=without_numbers(text) if is_private else text)
            else:
                report.leave_out("messages without text")

    for turns in conversations(written(), content.reading.silence):
        text = "\n".join(turn.text for turn in turns)
        yield Document(text, content.source, line=0, is_row=True, turns=tuple(turns))


def moment_of(date: Any) -> datetime | None:
    """The moment that a date names, such as 2024-01-01T10:00:00; None if it names none."""
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(str(date)).replace(tzinfo=None)
    return None


def moment_at(milliseconds: Any) -> datetime | None:
    """The moment so many milliseconds after 1970 began; None if they are no such number."""
    with contextlib.suppress(ValueError, TypeError, OverflowError, OSError):
        return datetime.fromtimestamp(float(milliseconds) / 1000, UTC).replace(tzinfo=None)
    return None


def clean_text(text: str) -> str:
    """The lines of a text, without white space at their ends, empty lines and marks that nobody
    sees: an empty line ends a turn."""
    visible = without_invisible(text)
    lines = (line.strip() for line in visible.splitlines())
    return "\n".join(line for line in lines if line)


def without_numbers(text: str) -> str:
    """A text without telephone numbers, also where they mention somebody."""
    if "+" not in text and "@" not in text:
        return text
    return _PHONE_IN_TEXT.sub("(number)", _MENTION.sub("@somebody", text))


def clean_name(name: str) -> str:
    """A name that can be told from the text after it: one line, without a colon."""
    words = without_invisible(name).replace(":", " ").split()
    return " ".join(words)[:_LONGEST_NAME].strip() or "Somebody"


def is_phone_number(name: str) -> bool:
    """Whether somebody is known by a telephone number only."""
    return _PHONE.fullmatch(without_invisible(name).strip().removeprefix("~").strip()) is not None


def digits_of(name: str) -> str:
    """The digits of a telephone number, by which it is known however it is written."""
    return "".join(character for character in name if character.isdigit())
