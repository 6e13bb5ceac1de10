"""What a Writer returns: tokens with their probabilities, samples, scores."""

import math
from dataclasses import dataclass
from typing import Literal

# max_new_tokens were written, the model ended the text, or a stop string was written.
StopReason = Literal["length", "end_of_text", "stop"]


@dataclass(frozen=True)
class Token:
    """A token at its place in a text."""

    id: int
    bytes: bytes  # UTF-8: perhaps only a part of a character; none for a special token
    log_probability: float  # given the tokens before it, in nats

    @property
    def text(self) -> str:
        """Its text; bytes that are not a whole character become U+FFFD."""
        return self.bytes.decode(errors="replace")

    @property
    def probability(self) -> float:
        """Between 0 and 1."""
        return math.exp(self.log_probability)


@dataclass(frozen=True)
class Step:
    """One token of one sample. Its log-probability is at temperature 1, before any filter."""

    sample: int  # which one, from 0
    token_id: int
    log_probability: float | None  # in nats; None if it was not asked for
    text: str  # what can be shown now; often empty
    stop_reason: StopReason | None  # why the sample ends here; None if it goes on
    alternatives: tuple[Token, ...] = ()  # the likeliest in its place, if asked for


@dataclass(frozen=True)
class Sample:
    """A continuation of a prompt."""

    prompt: str
    text: str  # what follows the prompt
    token_ids: tuple[int, ...]  # all that were drawn, also the end of the text or a stop string
    log_probabilities: tuple[float, ...] | None  # as in a Step; None if not asked for
    stop_reason: StopReason
    seconds: float  # from the start of the batch to the last token of this sample

    @property
    def tokens_per_second(self) -> float:
        """How fast it was written, including the reading of the prompt."""
        return len(self.token_ids) / max(self.seconds, 1e-9)


@dataclass(frozen=True)
class Score:
    """How likely a text is under a model: its tokens with their log-probabilities."""

    tokens: tuple[Token, ...]

    @property
    def log_probability(self) -> float:
        """Of the whole text, in nats."""
        return math.fsum(token.log_probability for token in self.tokens)

    @property
    def bits_per_byte(self) -> float:
        """Compares across tokenizers; 0 for an empty text."""
        size = sum(len(token.bytes) for token in self.tokens)
        return -self.log_probability / math.log(2) / max(size, 1)
