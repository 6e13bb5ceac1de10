"""Who speaks in a text: what they are called in it, and how many turns each of them has. corpus.py
tells it document by document.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from ..config import ReadingConfig
from .dialogue import Dialogue
from .readers.chats.plays import is_a_name, name_pattern
from .readers.chats.turns import clean_name, digits_of, is_phone_number
from .readers.document import Document, Layout, Turn

_MOST_HELD = 1 << 10  # characters of a line that does not end in its piece


@dataclass(frozen=True)
class Talking:
    """What one reading tells of the conversations in a text, and of plays and interviews."""

    speakers: Mapping[str, int]  # the turns of each, by the name in the text; most frequent first
    files_speakers: tuple[str, ...]  # as the files name them, in the order of their appearance
    not_found: Sequence[str]  # who was renamed, but does not appear
    conversations: int  # that were made into turns; a play or an interview stays as it is
    characters: int  # of all of these
    layout: Layout  # of most of these characters


class Names:
    """Names by speaker, in the order in which the speakers first appear.

    `known` are speakers who have appeared before. Somebody who is known by a telephone number only
    becomes Speaker 1, Speaker 2 and so on.
    """

    def __init__(self, reading: ReadingConfig, known: Iterable[str] = ()):
        self._anonymous = reading.anonymous
        self._renamed = {}
        for words in reading.rename:
            old, _, new = words.partition("=")
            self._renamed[_key(old)] = clean_name(new)

        self._names: dict[str, str] = {}  # by key
        self._numbered = 0  # speakers that were given a letter or a number
        for speaker in known:
            self.name_of(speaker)

    @property
    def speakers(self) -> tuple[str, ...]:
        """Who has appeared."""
        return tuple(self._names)

    @property
    def not_found(self) -> list[str]:
        """Who was renamed but has not appeared."""
        return [old for old in self._renamed if old not in self._names]

    def name_of(self, speaker: str) -> str:
        """What a speaker is called."""
        key = _key(speaker)
        if key not in self._names:
            self._names[key] = self._chosen(speaker, key)
        return self._names[key]

    def text_of(self, turns: Iterable[Turn]) -> str:
        """The text of a conversation whose speakers are called by these names."""
        return Dialogue().write(Turn(self.name_of(speaker), text) for speaker, text in turns)

    def _chosen(self, speaker: str, key: str) -> str:
        if key in self._renamed:
            return self._renamed[key]
        if not self._anonymous and not is_phone_number(speaker):
            return clean_name(speaker)

        taken = {*self._names.values(), *self._renamed.values()}
        name = ""
        while not name or name in taken:
            self._numbered += 1
            name = _letter(self._numbered) if self._anonymous else f"Speaker {self._numbered}"
        return name


def _key(speaker: str) -> str:
    """What all ways to write a speaker's name or number have in common."""
    return digits_of(speaker) if is_phone_number(speaker) else clean_name(speaker)


def _letter(number: int) -> str:
    """A, B, ... Z, AA, AB, ... for 1, 2, ..."""
    letters = ""
    while number > 0:
        number, rest = divmod(number - 1, len(ascii_uppercase))
        letters = ascii_uppercase[rest] + letters
    return letters


class TalkCounter:
    """Counts the turns of each speaker in documents that come one after the other, or piece by
    piece: those of conversations, and those of plays and interviews, which stay as they are."""

    def __init__(self, names: Names):
        self.names = names
        self._turns: Counter[str] = Counter()  # of conversations, by speaker
        self._conversations = 0
        self._characters: Counter[Layout] = Counter()
        self._in_plays: Counter[str] = Counter()  # turns by speaker
        self._last_line = ""  # of the play so far
        self._opening: re.Pattern[str] | None = None  # of its turns

    def add(self, document: Document) -> str:
        """Count what is said in a document, or a piece of one; its text."""
        text = document.text
        if document.turns:
            text = self.names.text_of(document.turns)
            self._conversations += 1
            self._characters[Layout()] += len(text)
            self._turns.update(self.names.name_of(speaker) for speaker, _ in document.turns)
        elif document.layout is not None:
            self._characters[document.layout] += len(text)
            self._add_play(text, document.layout, is_first=document.is_first)
        return text

    def _add_play(self, text: str, layout: Layout, *, is_first: bool) -> None:
        if is_first:
            self._in_plays += self._turns_in(self._last_line)
            self._last_line = ""

        self._opening = _opening(layout)
        text = self._last_line + text
        end = text.rfind("\n") + 1
        self._in_plays += self._turns_in(text[:end])
        self._last_line = text[end:][:_MOST_HELD]

    def _turns_in(self, text: str) -> Counter[str]:
        if self._opening is None:
            return Counter()
        names = (match["name"] for match in self._opening.finditer(text))
        return Counter(name for name in names if is_a_name(name))

    def result(self) -> Talking | None:
        """What was told of all documents; None if nobody speaks in them. Names that occur once in
        plays may be any words with a colon: they are left out."""
        in_plays = self._in_plays + self._turns_in(self._last_line)
        often = Counter({name: count for name, count in in_plays.items() if count > 1})
        turns = self._turns + often
        if not turns:
            return None

        ((layout, _),) = self._characters.most_common(1)
        return Talking(
            speakers=dict(turns.most_common()),
            files_speakers=self.names.speakers,
            not_found=self.names.not_found,
            conversations=self._conversations,
            characters=self._characters.total(),
            layout=layout,
        )


def _opening(layout: Layout) -> re.Pattern[str]:
    """What the first line of a turn begins with."""
    before, _, after = layout.template.partition("{text}")[0].partition("{speaker}")
    mark = after.rstrip(" ")
    end = rf"{re.escape(mark)}(?=\s)" if mark != after else re.escape(mark)
    name = name_pattern(in_capitals=mark.startswith("."))
    return re.compile(rf"^{re.escape(before)}(?P<name>{name}){end}", re.MULTILINE)
