"""What may be shown of a text while it is written: whole characters, and no stop string."""

import codecs
from collections.abc import Sequence


class StreamDecoder:
    """A text that comes in bytes, token by token, and leaves in pieces that may be shown.

    It holds back the first bytes of a character until the character is whole, and an end that could
    begin a stop string until that is decided. The text stops at the first character that completes
    a stop string, wherever the tokens are cut. The longest string completed there is cut off."""

    def __init__(self, stop: Sequence[str] = ()):
        self.stopped = False  # whether a stop string was found; nothing may be added then
        self._stop = stop
        self._held = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def add(self, token: bytes, *, last: bool = False) -> str:
        """What may be shown after another token; nothing is held back after the last."""
        text = self._held + self._decoder.decode(token, last)
        start = self._start_of_stop(text)
        if start is not None:
            self.stopped = True
            return text[:start]

        shown = len(text)
        if not last:
            shown -= self._begun_stop(text)
        self._held = text[shown:]
        return text[:shown]

    def _start_of_stop(self, text: str) -> int | None:
        """Where the stop string begins that is complete first, the longest of several; or None."""
        places = []  # of each, where it ends and where it begins
        for stop in self._stop:
            start = text.find(stop)
            if start >= 0:
                places.append((start + len(stop), start))
        return min(places)[1] if places else None

    def _begun_stop(self, text: str) -> int:
        """How many characters at the end of a text could begin a stop string."""
        most = 0
        for stop in self._stop:
            for count in range(1, len(stop)):
                if text.endswith(stop[:count]):
                    most = max(most, count)
        return most
