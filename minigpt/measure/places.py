"""The places of a text where two models differ most, found while it streams by: the memory for them
does not grow with the text."""

from collections import deque
from dataclasses import dataclass

from ..generation.window import TokenIds
from .common_pieces import CommonPiece, PredictedToken
from .comparison import Bits

PLACES = 20
_STRETCHES = 5 * PLACES  # each has one place at most
_SHORTEST = 40  # characters of a stretch
_BEFORE = 60  # characters shown before a place
_AFTER = 40
_LEAST = 0.5  # bits


@dataclass
class Found:
    """A place, and what each model saw before it."""

    piece: CommonPiece
    bits: Bits
    before: str
    contexts: tuple[TokenIds, TokenIds]  # (T,) each
    after: str = ""

    @property
    def difference(self) -> float:
        """By how many bits the two models differ."""
        return abs(self.bits[0] - self.bits[1])


class Places:
    """The text is cut into a hundred stretches, and of each the piece is kept in which the models
    differ most. So the places lie all over the text, however long it is."""

    def __init__(self, characters: int):
        self._stretch = max(-(-characters // _STRETCHES), _SHORTEST)
        self._best: dict[int, Found] = {}  # by the number of the stretch
        self._before: deque[str] = deque()  # the pieces before
        self._length = 0  # of these, in characters
        self._waiting: list[Found] = []  # for the text after them

    def add(self, piece: CommonPiece, bits: Bits | None) -> None:
        """Look at the next piece of the text."""
        for found in self._waiting:
            found.after += piece.text
        self._waiting = [found for found in self._waiting if len(found.after) < _AFTER]

        if bits is not None:
            number = piece.start // self._stretch
            best = self._best.get(number)
            least = _LEAST if best is None else best.difference
            if abs(bits[0] - bits[1]) > least:
                first, second = map(_context, piece.tokens)
                found = Found(piece, bits, "".join(self._before)[-_BEFORE:], (first, second))
                self._best[number] = found
                self._waiting.append(found)

        self._before.append(piece.text)
        self._length += len(piece.text)
        while self._length - len(self._before[0]) >= _BEFORE:
            self._length -= len(self._before.popleft())

    def largest(self) -> list[Found]:
        """The places with the largest differences, none near a larger one."""
        chosen: list[Found] = []
        for found in sorted(self._best.values(), key=lambda found: -found.difference):
            distances = [abs(found.piece.start - other.piece.start) for other in chosen]
            if all(distance >= self._stretch / 2 for distance in distances):
                chosen.append(found)
        return chosen[:PLACES]


def _context(tokens: list[PredictedToken]) -> TokenIds:
    """What a model saw before the text of a piece, also the mark of a speaker before the name:
    ``(T,)``, a copy, so that no whole window is kept."""
    first = next((token for token in tokens if token.bytes), tokens[0])
    return first.context.copy()
