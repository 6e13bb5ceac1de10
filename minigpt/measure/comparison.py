"""What `minigpt.compare` returns: how well two models predict the same text, and where they differ.

Whatever belongs to each model comes as a pair: the first model's, then the second's.
"""

from dataclasses import dataclass
from typing import NamedTuple

Bits = tuple[float, float]


class Guess(NamedTuple):
    """A token that a model found likely at some place."""

    text: str  # to look at: ␣ is a space
    probability: float


@dataclass(frozen=True)
class Place:
    """A place at which the two differ much."""

    start: int  # characters of the text before it
    before: str  # the text before it
    text: str  # none where a document ends
    after: str
    bits: Bits
    instead: tuple[tuple[Guess, ...], tuple[Guess, ...]]  # each model's likeliest others

    @property
    def probabilities(self) -> tuple[float, float]:
        """The probability of the piece of text under each model."""
        return 2.0 ** -self.bits[0], 2.0 ** -self.bits[1]


@dataclass(frozen=True)
class Side:
    """One of the two, and what `evaluate` measures of it on the text."""

    name: str  # "counting", or as it was named
    parameters: int  # 0 for counting
    context_length: int  # the most tokens that it sees
    tokens: int  # predicted: all of the text but the first
    bytes: int  # that these stand for
    loss: float  # nats a token
    bits_per_byte: float
    has_read_it: bool | None  # whether it learned from this text; None if that is not known

    def title(self) -> str:
        """Its name, and how large it is."""
        if self.parameters == 0:
            return self.name
        return f"{self.name} ({self.parameters / 1e6:.2f} M parameters)"


@dataclass(frozen=True)
class Comparison:
    """Two models on the same text: see :func:`minigpt.compare`."""

    text: str  # which text it is
    characters: int
    sides: tuple[Side, Side]

    # On the pieces that both had to predict:
    bytes: int
    bits: Bits  # the sum
    pieces: int
    likelier: tuple[int, int]  # how many each found at least twice as likely as the other did

    places: tuple[Place, ...]  # where they differ most, the largest difference first

    @property
    def bits_per_byte(self) -> Bits:
        """The bits per byte of each model, on the same bytes."""
        return self.bits[0] / self.bytes, self.bits[1] / self.bytes

    def verdict(self) -> str:
        """Which predicts the text better, and by how much, in two sentences."""
        bits = self.bits_per_byte
        best = int(bits[1] < bits[0])
        winner, other = self.sides[best], self.sides[1 - best]
        gain = bits[1 - best] - bits[best]

        if gain < 0.00005:
            result = f"{winner.name} and {other.name} predict it equally well."
        else:
            share = gain / bits[1 - best]
            fewer = f"{gain:.4f} bits/byte fewer than {other.name}, {share:.1%}"
            result = f"{winner.name} needs {fewer}."
        return (
            f"{result} Of {self.pieces:,} pieces of the text {winner.name} found "
            f"{self.likelier[best]:,} at least twice as likely as {other.name} did; for "
            f"{self.likelier[1 - best]:,} it was the other way round."
        )

    def warnings(self) -> list[str]:
        """What a reader must know of the text."""
        return [
            f"{side.name} has learned from this text, so its figure says what it remembers."
            for side in self.sides
            if side.has_read_it
        ]
