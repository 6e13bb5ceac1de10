"""What may be shown of a text while it is written: whole characters, and no stop string."""

import codecs
from collections.abc import Sequence


class StreamDecoder:
    """A text that comes in bytes, token by token, and leaves in pieces that may be shown.

    It holds back the first bytes of a character until the character is whole, and an end that could
    begin a stop string until that is decided. The text stops at the first character that completes
    a stop string, wherever the tokens are cut. The longest string completed there is cut off.

    Args:
        stop: the stop strings, none of them empty.

    Attributes:
        stopped: whether a stop string has been found; nothing may be added then.
    """

    def __init__(self, stop: Sequence[str] = ()):
        self.stopped = False
        self._stop = stop
        self._held = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def add(self, token: bytes, *, last: bool = False) -> str:
        """What may be shown once the bytes of another token are there.

        Args:
            token: its bytes.
            last: whether this is the last token, after which nothing is held back.
        """
        text = self._held + self._decoder.decode(token, last)
        ends = [(text.index(stop) + len(stop), -len(stop)) for stop in self._stop if stop in text]
        if ends:
            self.stopped = True
            return text[: sum(min(ends))]
        cut = len(text) if last else len(text) - self._undecided(text)
        self._held = text[cut:]
        return text[:cut]

    def _undecided(self, text: str) -> int:
        """Length of the longest end of `text` that is the beginning of a stop string."""
        begun = (n for stop in self._stop for n in range(1, len(stop)) if text.endswith(stop[:n]))
        return max(begun, default=0)
