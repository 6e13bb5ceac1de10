"""Channels of Discord as web pages, by DiscordChatExporter and by programs that write the same.

    <div class="chatlog__message-group">
      <div class="chatlog__message-container"> ...
        <span class="chatlog__author">anna</span> <span class="chatlog__timestamp">...</span>
        <div class="chatlog__content"><span class="chatlog__markdown-preserve">Hello</span>

A message without an author is by the author of the one before it in its group.
"""

import re
from collections import Counter
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from ..documents.tags import Tag, tags_and_text
from .discord import moment, without_tag
from .turns import NOTHING, Message

_IS_CHANNEL = re.compile(rb"<html.*\bchatlog__message-group\b", re.DOTALL | re.IGNORECASE)
_VOID = {"br", "hr", "img", "input", "link", "meta", "source"}  # tags that have no end

# Names of classes, also those of older versions.
_GROUP = "chatlog__message-group"
_MESSAGES = ("chatlog__message-container", "chatlog__message")
_AUTHOR = {"chatlog__author", "chatlog__author-name"}
_TIME = {"chatlog__timestamp", "chatlog__short-timestamp"}
_CONTENT = "chatlog__content"
_TEXT = {"chatlog__markdown-preserve", "preserve-whitespace"}
_LEFT_OUT = ("chatlog__embed", "chatlog__attachment", "chatlog__edited", "chatlog__forwarded",
             "chatlog__reply", "chatlog__reaction", "chatlog__sticker")  # fmt: skip


class _Place(Enum):
    """Where in a message something stands."""

    AROUND = 0
    AUTHOR = 1
    TIME = 2
    CONTENT = 3
    TEXT = 4
    LEFT_OUT = 5


class _Open(NamedTuple):
    """A tag that is open, and where what is in it stands."""

    name: str
    place: _Place


def is_channel_page(beginning: bytes) -> bool:
    """Whether a web page that begins like this is a channel."""
    return _IS_CHANNEL.search(beginning) is not None


def messages_of_page(page: str) -> Iterator[Message]:
    """What people wrote in a channel."""
    reader = _Reader(next((name for name in _MESSAGES if name in page), _MESSAGES[0]))
    for part in tags_and_text(page):
        if isinstance(part, str):
            reader.add(part)
        elif part.name in _VOID:
            reader.add_picture(part)
        elif part.is_end:
            reader.close(part.name)
        else:
            yield from reader.begun(part)
    yield reader.message()


class _Reader:
    """Goes through the page from tag to tag."""

    def __init__(self, name_of_message: str):
        self._name_of_message = name_of_message  # the class that each message has
        self._open: list[_Open] = []
        self._how_many: Counter[str] = Counter()  # are open, of each name
        self._author = ""
        self._said: dict[_Place, list[str]] = {place: [] for place in _Place}

    def begun(self, tag: Tag) -> Iterator[Message]:
        """Open a tag; if a message begins with it, the one before."""
        names = set(tag.attributes.get("class", "").split())
        if names & {_GROUP, self._name_of_message}:
            yield self.message()
        if _GROUP in names:
            self._author = ""
        if tag.is_closed:
            return

        place = self._place_in(names)
        self._open.append(_Open(tag.name, place))
        self._how_many[tag.name] += 1
        if place is _Place.TIME and names & _TIME:
            self._said[place] += [tag.attributes.get("title", ""), "\n"]

    def close(self, name: str) -> None:
        """Close the last tag of a name, and all inside of it."""
        if not self._how_many[name]:
            return
        is_last = False
        while not is_last:
            closed = self._open.pop().name
            self._how_many[closed] -= 1
            is_last = closed == name

    def add(self, text: str) -> None:
        """Add text to what it belongs to."""
        if self._open:
            self._said[self._open[-1].place].append(text)

    def add_picture(self, tag: Tag) -> None:
        """Add the letter that a picture stands for, as of an emoji; or a line end."""
        self.add("\n" if tag.name == "br" else tag.attributes.get("alt", ""))

    def message(self) -> Message:
        """The message that has ended."""
        text = "".join(self._said[_Place.TEXT])
        times = "".join(self._said[_Place.TIME]).splitlines()
        self._author = "".join(self._said[_Place.AUTHOR]).strip() or self._author
        for parts in self._said.values():
            parts.clear()

        if not text.strip() or not self._author:
            return NOTHING
        time = next((found for line in times if (found := moment(line.strip())) is not None), None)
        return Message(without_tag(self._author), text, time)

    def _place_in(self, names: set[str]) -> _Place:
        """Where what is in a tag with these classes stands."""
        around = self._open[-1].place if self._open else _Place.AROUND
        if around is _Place.LEFT_OUT or any(name.startswith(_LEFT_OUT) for name in names):
            return _Place.LEFT_OUT
        if names & _AUTHOR:
            return _Place.AUTHOR
        if names & _TIME:
            return _Place.TIME
        if _CONTENT in names:
            return _Place.CONTENT
        if around is _Place.CONTENT and names & _TEXT:
            return _Place.TEXT
        return around
