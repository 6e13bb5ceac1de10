"""Voices: each file or folder of a text may have one, named after it.

What a model reads in training begins with the mark of its voice: the name, in a line of its own, in
the tokens that there are. The loss does not count marks, and they are no bytes of the text. A model
that is given a mark goes on in that voice.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import UserError
from ..config import ReadingConfig
from ..tokenizer import Tokenizer
from .dialogue.names import named
from .dialogue.turns import clean_name
from .files import Say, find_files, identity, is_folder
from .readers import title

_PACKED = (".gz", ".zst")  # endings that stand after another one
_MOST_SHOWN = 20  # names in a message

Ids = NDArray[np.unsignedinteger[Any]]


def mark_of(voice: str) -> str:
    """What a model reads before a text in a voice."""
    return f"{voice}:\n"


def find_voice(voices: Sequence[str], name: str) -> str:
    """The voice of this name, or the only one whose name begins like this; UserError if there is
    none."""
    if not voices:
        raise UserError(f"there is no voice {name!r}: the model was trained without --voices")
    found = named(name, voices)
    if found is None:
        raise UserError(f"there is no voice {name!r}; there are {list_names(voices)}")
    return found


def list_names(voices: Sequence[str]) -> str:
    """The names in a sentence."""
    shown = list(voices[:_MOST_SHOWN])
    if len(voices) > _MOST_SHOWN:
        shown.append(f"{len(voices) - _MOST_SHOWN:,} more")
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + f" and {shown[-1]}"


# Which file has which voice


def find_voiced_files(
    names: Iterable[str], say: Say, reading: ReadingConfig
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """The files that `names` mean, each once, and the voice of each: that of the folder that was
    named, or else its own."""
    owners: dict[Path, str] = {}  # the file or the folder that a file has its voice from
    seen = set()
    for name in names:
        for file in find_files((name,), say, reading):
            if title(file) != str(file):
                raise UserError(
                    f"--voices: {title(file)} has no name that a voice could have; write it to a "
                    "file first"
                )
            if identity(file) not in seen:
                seen.add(identity(file))
                owners[file] = name if is_folder(name) else str(file)

    voices = voice_names(list(dict.fromkeys(owners.values())))
    return tuple(owners), tuple(voices[owner] for owner in owners.values())


def voice_names(paths: Sequence[str]) -> Mapping[str, str]:
    """What the voices of files and folders are called: as these, without an ending. Where several
    have the same name, as many of the folders around it as tell them apart stand before it."""
    parts = {path: _parts(path) for path in paths}
    names = {}
    for path, own in parts.items():
        depth = 1
        while depth < len(own) and _sharing(own[-depth:], parts.values()) > 1:
            depth += 1
        is_told_apart = _sharing(own[-depth:], parts.values()) == 1
        name = "/".join(own[-depth:]) if is_told_apart else Path(path).name
        names[path] = clean_name(name)

    for path, name in names.items():
        others = [other for other in names if names[other] == name and other != path]
        if others:
            raise UserError(f"--voices: {path} and {others[0]} would both be called {name!r}")
    return names


def _parts(path: str) -> tuple[str, ...]:
    """The folders of a path and its name, without the ending of a file."""
    whole = Path(os.path.abspath(path))
    name = whole.name
    if not whole.is_dir():
        for ending in _PACKED:
            name = name.removesuffix(ending)
        name = Path(name).stem
    return (*whole.parts[1:-1], name)


def _sharing(end: tuple[str, ...], paths: Iterable[tuple[str, ...]]) -> int:
    """How many paths end like this."""
    return sum(path[-len(end) :] == end for path in paths)


# Tokens with voices


@dataclass(frozen=True)
class Stretch:
    """Some tokens of many, from `begin` on and before `end`."""

    tokens: Any  # a TokenSequence
    begin: int
    end: int

    def __len__(self) -> int:
        return self.end - self.begin

    def __getitem__(self, part: slice) -> Ids:
        start, stop, _ = part.indices(len(self))
        return self.tokens[self.begin + start : self.begin + max(stop, start)]


@dataclass(frozen=True)
class Voices:
    """The voices of a dataset, whose tokens stand one after another in it.

    Attributes:
        names: of the voices, in this order.
        marks: the token ids of each one's mark.
        train: how many of the tokens to train on each voice has.
        validation: how many of the tokens to validate on; some may have none.
    """

    names: tuple[str, ...]
    marks: tuple[tuple[int, ...], ...]
    train: tuple[int, ...]
    validation: tuple[int, ...]

    @property
    def longest_mark(self) -> int:
        """Tokens of the longest mark."""
        return max(map(len, self.marks))

    def numbers(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of the voice of each token to train on, by its place: ``(n,)`` to ``(n,)``."""
        return np.searchsorted(np.cumsum(self.train), starts, side="right")

    def within(self, starts: NDArray[np.int64], length: int) -> NDArray[np.int64]:
        """Windows of so many tokens, moved so that each lies in one voice: in the one that has more
        of it. One in a voice that is shorter begins where the voice does. ``(n,)`` to ``(n,)``."""
        sizes = np.array(self.train)
        ends = np.cumsum(sizes)
        number = self.numbers(starts)  # of the voice of the first token
        is_mostly_next = starts + length - ends[number] > length / 2
        number = np.minimum(number + is_mostly_next, len(sizes) - 1)

        begin = ends[number] - sizes[number]
        latest = np.maximum(ends[number] - length, begin)
        return np.clip(starts, begin, latest)

    def window(self, tokens: Any, start: int, length: int) -> Ids:
        """So many tokens from a place on, all of one voice; a voice with fewer is repeated."""
        (number,) = self.numbers(np.array([start]))
        end = int(np.cumsum(self.train)[number])
        text = tokens[start : min(start + length, end)]
        return np.resize(text, length)  # which repeats it

    def validation_texts(self, tokens: Any) -> Iterator[tuple[str, tuple[int, ...], Stretch]]:
        """Name, mark and tokens to validate on of each voice that has two of these or more."""
        begin = 0
        for name, mark, count in zip(self.names, self.marks, self.validation, strict=True):
            if count >= 2:
                yield name, mark, Stretch(tokens, begin, begin + count)
            begin += count


def voices_of(
    tokenizer: Tokenizer, train: Mapping[str, int], validation: Mapping[str, int]
) -> Voices:
    """The voices of tokens, of which each voice has so many.

    Raises:
        UserError: if a voice has too little text, or its name cannot be written in the tokens.
    """
    for name, count in train.items():
        if count < 2:
            raise UserError(
                f"the voice {name!r} has too little text; leave it out or give it more",
                kind="too_short",
            )
    return Voices(
        names=tuple(train),
        marks=tuple(tuple(mark_ids(tokenizer, name)) for name in train),
        train=tuple(train.values()),
        validation=tuple(validation.get(name, 0) for name in train),
    )


def mark_ids(tokenizer: Tokenizer, voice: str) -> list[int]:
    """The token ids of a mark; UserError if the tokenizer cannot write it."""
    try:
        return tokenizer.encode(mark_of(voice))
    except UserError as error:
        raise UserError(f"the voice {voice!r} cannot be written: {error}; rename it") from None


def voiced(
    windows: Iterable[NDArray[np.integer[Any]]], mark: Sequence[int]
) -> Iterator[NDArray[np.int64]]:
    """Windows ``(n,)`` with a mark of m tokens before each, ``(m + n,)``: it is marked, as ``~id``,
    since nothing predicts it, and so is the first token of the text."""
    before = ~np.array(mark, np.int64)
    for window in windows:
        ids = window.astype(np.int64)
        yield np.concatenate([before, ~ids[:1], ids[1:]])
