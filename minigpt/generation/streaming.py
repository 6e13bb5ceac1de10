"""What may be shown of a text while it is written: whole characters, and no stop string."""

import codecs
from collections.abc import Sequence


class StreamDecoder:
    """A text that comes in bytes, token by token, and leaves in pieces that may be shown.

    It holds back the first bytes of a character until the character is whole, and an end that could
    begin a stop string until that is decided. The text stops at the first character that completes
    a stop string, wherever the tokens are cut. The longest string completed there is cut off."""

    def __init__(self, stop: Sequence[str] = ()):
        self._stop, self._held = stop, ""
        self.stopped = False  # whether a stop string was found; nothing may be added then
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def add(self, token: bytes, *, last: bool = False) -> str:
        """What may be shown after another token; nothing is held back after the last."""
        text = self._held + self._decoder.decode(token, last)
        ends = [(text.index(stop) + len(stop), -len(stop)) for stop in self._stop if stop in text]
        if ends:
            self.stopped = True
            return text[: sum(min(ends))]
        begun = (n for stop in self._stop for n in range(1, len(stop)) if text.endswith(stop[:n]))
        cut = len(text) - (0 if last else max(begun, default=0))
        self._held = text[cut:]
        return text[:cut]
