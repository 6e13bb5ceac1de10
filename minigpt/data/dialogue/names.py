"""What the speakers of a text are called in it: as in the files, renamed, or anonymous."""

from collections.abc import Iterable
from string import ascii_uppercase

from ...config import ReadingConfig
from .turns import Turn, clean_name, digits_of, is_phone_number


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

    def turns(self, turns: Iterable[Turn]) -> list[Turn]:
        """Turns whose speakers are called by these names."""
        return [Turn(self.name_of(speaker), text) for speaker, text in turns]

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
