"""Who speaks in a text, and how a turn is written: what a run keeps of its conversations, and which
tokens are what one speaker says.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import UserError
from ..system.shown import plural
from ..tokenizer import Tokenizer
from .readers.chats.turns import clean_text
from .readers.document import Layout, Turn

MANNER = "it takes on a manner; it knows nothing"  # said wherever a model is to be talked with
_STRANGER = "Somebody"  # who asks, where all turns are one speaker's
_OTHER_ROLES = ("system", "developer", "tool", "function")
_MOST_SHOWN = 8  # speakers


@dataclass(frozen=True)
class Dialogue:
    """The speakers of a text, and how it writes their turns."""

    speakers: Mapping[str, int] = field(default_factory=dict)  # their turns; most frequent first
    layout: Layout = field(default_factory=Layout)

    @property
    def before_text(self) -> str:
        """What goes before the text of a turn, with {speaker} as the name."""
        return self.layout.template.partition("{text}")[0]

    def opening(self, speaker: str) -> str:
        """What goes before the text of a turn: the name, without the space that begins the text."""
        return self.before_text.replace("{speaker}", speaker).rstrip(" ")

    @property
    def end(self) -> str:
        """What goes after the text of a turn."""
        return self.layout.template.partition("{text}")[2]

    @property
    def stops(self) -> tuple[str, ...]:
        """The texts that end an answer: the end of a turn or, where only the next name ends a turn,
        this end with the opening of each speaker."""
        if not self.layout.ends_at_name:
            return (self.end,)
        return tuple(f"{self.end}{self.opening(speaker)}" for speaker in self.speakers)

    @property
    def between_lines(self) -> str:
        """What goes between two lines of what somebody says: a space, where a line end may end the
        turn."""
        return "\n" if "\n\n" in self.end else " "

    def write(self, turns: Iterable[Turn]) -> str:
        """Turns as the text that a model learns from."""
        parts = []
        for turn in turns:
            opening = self.before_text.replace("{speaker}", turn.speaker)
            text = clean_text(turn.text).replace("\n", self.between_lines)
            parts.append(f"{opening}{text}{self.end}")
        return "".join(parts)

    def most_frequent(self, but: Iterable[str] = ()) -> str:
        """Who has most turns, apart from some speakers; somebody if there is no other."""
        left_out = set(but)
        return next((name for name in self.speakers if name not in left_out), _STRANGER)

    def find(self, name: str) -> str:
        """The speaker of this name, or the only one whose name begins like this; UserError if there
        is none."""
        if name in self.speakers:
            return name
        wanted = name.casefold()
        same = [speaker for speaker in self.speakers if speaker.casefold() == wanted]
        alike = [speaker for speaker in self.speakers if speaker.casefold().startswith(wanted)]
        for found in (same, alike):
            if len(found) == 1 and wanted:
                return found[0]
        raise UserError(f"there is no speaker {name!r}; there are {self.listed()}", kind="setting")

    def roles(self, answerer: str | None = None) -> dict[str, str]:
        """The speaker of each role in a chat. The assistant is the answerer, by default the speaker
        called Assistant or else the most frequent one. The user is the speaker called User or else
        the most frequent other one. Other roles are given only if a speaker has their name, as in a
        data set of such messages."""
        by_name = {speaker.casefold(): speaker for speaker in self.speakers}
        found = {role: by_name[role] for role in _OTHER_ROLES if role in by_name}
        if answerer is not None:
            found["assistant"] = self.find(answerer)
        else:
            found["assistant"] = by_name.get("assistant") or self.most_frequent()

        user = by_name.get("user")
        if user is None or user == found["assistant"]:
            user = self.most_frequent(but=[found["assistant"]])
        found["user"] = user
        return found

    def listed(self, most: int = _MOST_SHOWN) -> str:
        """The speakers and their turns in a sentence, the most frequent first."""
        names = list(self.speakers.items())
        shown = [f"{name} ({plural(turns, 'turn')})" for name, turns in names[:most]]
        if len(names) > most:
            shown.append(f"{len(names) - most:,} more")
        return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + f" and {shown[-1]}"


def said_by(
    tokens: Any, tokenizer: Tokenizer, dialogue: Dialogue, speaker: str
) -> NDArray[np.bool_]:
    """Whether each token of conversations belongs to what one speaker says, up to the end of each
    turn: ``(n,)`` to ``(n,)``. No turn goes on in the next document. The name before the text does
    not belong to it: it is given when the model answers.

    Raises:
        UserError: if none does that could be predicted.
    """
    ids = np.asarray(tokens[0 : len(tokens)]).astype(np.int64)  # (n,)
    table = [tokenizer.token_bytes(i) for i in range(tokenizer.vocab_size)]
    text = b"".join([table[i] for i in ids.tolist()])
    sizes = np.array([len(token) for token in table], np.int64)[ids]  # (n,)
    ends = np.cumsum(sizes)  # of each token in the text, in bytes, (n,)
    starts = ends - sizes
    documents = starts[ids == tokenizer.end_of_text].tolist()  # where each but the first begins

    end_of_turn = re.escape(dialogue.end.encode())
    opening = re.escape(dialogue.opening(speaker).encode())
    begins = re.compile(rb"(?:\A|(?<=" + end_of_turn + rb"))" + opening)
    ends_turn = re.compile(end_of_turn)
    if dialogue.layout.ends_at_name:
        openings = (re.escape(dialogue.opening(name).encode()) for name in dialogue.speakers)
        ends_turn = re.compile(end_of_turn + rb"(?=" + rb"|".join(openings) + rb")")

    counted = np.zeros(len(ids), np.bool_)
    for place, next_place in pairwise([0, *documents, len(text)]):
        document = text[place:next_place]
        for match in begins.finditer(document):
            found = ends_turn.search(document, match.end())
            end = len(document) if found is None else found.end()
            first = int(np.searchsorted(ends, place + match.end(), side="right"))
            last = int(np.searchsorted(starts, place + end, side="left"))
            counted[first:last] = sizes[first:last] > 0

    if not counted[1:].any():  # nothing predicts the first token
        raise UserError(
            f"{speaker} says too little: there is nothing to train on, or nothing to validate on",
            kind="too_short",
        )
    return counted
