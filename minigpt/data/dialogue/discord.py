"""Channels of Discord, as DiscordChatExporter writes them: JSON, CSV, or text of the form below;
discord_page.py reads its web pages.

[31-Dec-23 09:41 PM] anna#1234
Happy new year!
"""

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from .turns import NOTHING, Message

COLUMNS = ("AuthorID", "Author", "Date", "Content")  # of the CSV files
_HEAD = re.compile(
    r"\[(?P<date>[^\]\n]{0,30}\d{1,2}[:.]\d{2}[^\]\n]{0,20})\]"
    r" (?P<name>[^:\n]{1,60}?)(?: \(pinned\))?\s*"
)
_RULE = re.compile(r"={20,}")
_SECTION = re.compile(r"\{(?:Attachments|Embed|Reactions|Stickers|Inviting)\}.*")
_DATES = ("%d-%b-%y %I:%M %p", "%m/%d/%Y %I:%M %p", "%d/%m/%Y %H:%M", "%d.%m.%Y %H:%M",
          "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%A, %B %d, %Y %I:%M %p",
          "%A, %d %B %Y %H:%M")  # fmt: skip
_WRITTEN = ("Default", "Reply")  # types of messages that people write
_FEWEST = 3  # messages


def is_discord(data: Any) -> bool:
    """Whether data is the JSON of a channel."""
    if not isinstance(data, dict) or not isinstance(data.get("messages"), list):
        return False
    is_channel = "channel" in data or "guild" in data
    first = next((message for message in data["messages"] if isinstance(message, dict)), {})
    return is_channel and isinstance(first.get("author"), dict) and "content" in first


def messages_of_channel(data: dict[str, Any]) -> Iterator[Message]:
    """What people wrote in a channel: its JSON."""
    for message in data["messages"]:
        author = message.get("author") if isinstance(message, dict) else None
        if not isinstance(author, dict) or message.get("type", "Default") not in _WRITTEN:
            yield NOTHING
            continue
        name = author.get("nickname") or author.get("name") or "Somebody"
        text = str(message.get("content") or "")
        yield Message(str(name), text, moment(str(message.get("timestamp"))))


def messages_in_rows(rows: Iterable[Mapping[str, str]]) -> Iterator[Message]:
    """What people wrote in a channel: the rows of its CSV."""
    for row in rows:
        text = row.get("Content") or ""
        if text.strip():
            yield Message(without_tag(row.get("Author") or ""), text, moment(row.get("Date") or ""))


def is_text_of_discord(text: str) -> bool:
    """Whether a text is a channel: lines with a date and a name, which come back, and below them
    what was written."""
    lines = text.splitlines()
    heads = [match["name"] for line in lines if (match := _HEAD.fullmatch(line))]
    if len(heads) < _FEWEST or len(set(heads)) < 2:
        return False
    begins = next((line for line in lines if line.strip()), "")
    has_frame = _RULE.fullmatch(begins.strip()) is not None
    come_back = sum(times for times in Counter(heads).values() if times > 1)
    is_dense = len(heads) >= len([line for line in lines if line.strip()]) / 6
    return has_frame or (is_dense and come_back >= len(heads) / 2)


def messages_of_text(text: str) -> Iterator[Message]:
    """What people wrote in a channel: its text."""
    name: str | None = None
    date = ""
    lines: list[str] = []
    is_text = True  # and not a list of attachments or reactions

    for line in [*text.splitlines(), "[00:00] end"]:
        head = _HEAD.fullmatch(line)
        if head is not None:
            if name is not None:
                yield Message(without_tag(name), "\n".join(lines).strip(), moment(date))
            name = head["name"]
            date = head["date"]
            lines = []
            is_text = True
        elif _RULE.fullmatch(line.strip()) or _SECTION.fullmatch(line.strip()):
            is_text = False
        elif is_text:
            lines.append(line)


def without_tag(name: str) -> str:
    """A name of Discord without the number that old names had."""
    return re.sub(r"#\d{4}$", "", name.strip())


def moment(date: str) -> datetime | None:
    """When a message was written; None if the date is in no usual form."""
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(date).replace(tzinfo=None)
    for form in _DATES:
        with contextlib.suppress(ValueError):
            return datetime.strptime(date, form)
    return None
