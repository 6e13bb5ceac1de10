"""Where a stop string or a turn ends a text, wherever the pieces are cut that it comes in."""

from collections.abc import Sequence


class StopStrings:
    """A text that comes in pieces, and ends at the first character that completes a stop string,
    wherever the pieces are cut. The longest string completed there is cut off.

    It holds back an end that could begin a stop string until that is decided."""

    def __init__(self, stop: Sequence[str]):
        self.reached = False  # whether a stop string was found; nothing may be added then
        self._stop = stop
        self._held = ""

    def add(self, text: str, *, last: bool = False) -> str:
        """What may be shown after another piece; nothing is held back after the last."""
        text = self._held + text
        start = self._start_of_stop(text)
        if start is not None:
            self.reached = True
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


class TurnEnd:
    """A text of turns that comes in pieces, and is to end with a whole turn once it is long enough.
    A turn that has ended just then is not the last."""

    def __init__(self, stops: Sequence[str]):
        self.reached = False  # whether the text has ended; nothing may be added then
        self._stops = StopStrings(stops)

    def add(self, text: str, *, is_long_enough: bool, last: bool = False) -> str:
        """What may be shown after another piece; nothing is held back after the last."""
        if not is_long_enough:
            return text
        shown = self._stops.add(text, last=last)
        self.reached = self._stops.reached
        return shown
