"""What a Writer returns: tokens with their probabilities, samples, scores."""

import math
from dataclasses import dataclass
from typing import Literal

_MARKS = str.maketrans({" ": "␣", "\n": "↵", "\t": "⇥"})

StopReason = Literal["length", "end_of_text", "stop", "banned"]


@dataclass(frozen=True)
class Token:
    """A token in its place in a text.

    Attributes:
        id: its number in the vocabulary.
        bytes: the UTF-8 bytes that it stands for: perhaps a part of a character only, and none
            for a special token.
        log_probability: of this token after those before it, in nats.
    """

    id: int
    bytes: bytes
    log_probability: float

    @property
    def text(self) -> str:
        """What it stands for; bytes that are no whole character become U+FFFD."""
        return self.bytes.decode(errors="replace")

    @property
    def probability(self) -> float:
        """Between 0 and 1."""
        return math.exp(self.log_probability)


@dataclass(frozen=True)
class Step:
    """One token of one sample.

    Attributes:
        sample: which one, from 0.
        token_id: what was drawn; None if nothing was left to draw ("banned").
        log_probability: of that token under the model, in nats: at temperature 1, before any
            filter; None if it was not asked for.
        text: what became fit to be shown with it; often empty.
        stop_reason: why the sample ends here; None if it goes on.
        alternatives: the likeliest tokens in its place, likeliest first, if asked for.
    """

    sample: int
    token_id: int | None
    log_probability: float | None
    text: str
    stop_reason: StopReason | None
    alternatives: tuple[Token, ...] = ()


@dataclass(frozen=True)
class Sample:
    """A continuation of a prompt.

    Attributes:
        prompt: how the text begins.
        text: the continuation.
        token_ids: all that were drawn, those that ended it included: the end of the text, or the
            tokens of a stop string, which `text` does not show.
        log_probabilities: of those tokens under the model, in nats: at temperature 1, before any
            filter; None if they were not asked for.
        stop_reason: "length" (max_new_tokens were written), "end_of_text" (the model ended it),
            "stop" (a stop string came up) or "banned" (all that could follow is banned).
        seconds: from the start of the batch to the last token of this sample.
    """

    prompt: str
    text: str
    token_ids: tuple[int, ...]
    log_probabilities: tuple[float, ...] | None
    stop_reason: StopReason
    seconds: float

    @property
    def tokens_per_second(self) -> float:
        """How fast it was written, the reading of the prompt included."""
        return len(self.token_ids) / max(self.seconds, 1e-9)


@dataclass(frozen=True)
class Score:
    """How likely a text is under a model.

    Attributes:
        tokens: the text's, each with its log-probability.
    """

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


def visible(token: bytes) -> str:
    r"""A token to look at: ␣ for a space, ↵ a new line, ⇥ a tab, \xe2 a byte of a character."""
    text = token.decode("utf-8", errors="backslashreplace").translate(_MARKS)
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
