"""From logits to tokens: filters, which are pure functions of logits, then a draw; and to the
log-probabilities of tokens, at temperature 1 and before any filter. All in numpy.

`TokenSampler` does what a SampleConfig asks for, in the order of transformers: a bias,
repetition penalty, presence and frequency penalties, temperature, top k, top p, min p. The penalty
on repeated passages, which transformers does not have, comes before the temperature.
"""

import math
import secrets
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..config import SampleConfig
from .repetition import Boundaries, Passages
from .window import Array, TokenIds

_COLDEST = 1e-5  # below, dividing by the temperature overflows


class TokenSampler:
    """Draws the next token of each continuation, and remembers what the penalties depend on: the
    tokens of prompt and text for repetition, of the text alone for presence and frequency."""

    def __init__(
        self,
        config: SampleConfig,
        bias: Array,
        prompt: Sequence[int],
        first: int = 0,
        boundaries: Boundaries | None = None,
    ):
        """`bias` ``(vocab_size,)`` is added to the logits; samples count from `first`. `boundaries`
        are those of passages that are repeated; None: there are none."""
        self._config = config
        self._bias = bias
        seed = secrets.randbits(63) if config.seed is None else config.seed
        self._noise = exponentials(seed, config.samples, len(bias), first=first)

        # What is remembered, (samples, vocab_size): only what a penalty of the config needs.
        self._seen: NDArray[np.bool_] | None = None
        if config.repetition_penalty != 1.0:
            self._seen = np.zeros((config.samples, len(bias)), bool)
            self._seen[:, list(prompt)] = True
        self._counts: NDArray[np.float32] | None = None
        if config.presence_penalty or config.frequency_penalty:
            self._counts = np.zeros((config.samples, len(bias)), np.float32)
        self._passages: Passages | None = None
        if config.dry_multiplier > 0.0:
            boundaries = boundaries or Boundaries.none(len(bias))
            self._passages = Passages(prompt, config.samples, boundaries)

    def __call__(self, logits: Array) -> TokenIds:
        """Map logits ``(samples, vocab_size)`` to token ids ``(samples,)``."""
        tokens = draw(
            self.adjusted(logits),
            self._noise,
            temperature=self._config.temperature,
            top_k=self._config.top_k,
            top_p=self._config.top_p,
            min_p=self._config.min_p,
        )

        rows = np.arange(len(tokens))
        if self._seen is not None:
            self._seen[rows, tokens] = True
        if self._counts is not None:
            self._counts[rows, tokens] += 1
        if self._passages is not None:
            self._passages.append(tokens)
        return tokens

    def adjusted(self, logits: Array) -> Array:
        """Logits ``(samples, vocab_size)`` with bias and penalties."""
        config = self._config
        logits = logits + self._bias
        if self._seen is not None:
            logits = penalise_repetition(logits, self._seen, config.repetition_penalty)
        if self._counts is not None:
            logits = penalise_counts(
                logits,
                self._counts,
                presence=config.presence_penalty,
                frequency=config.frequency_penalty,
            )
        if self._passages is not None:
            logits = self._passages.penalised(
                logits,
                multiplier=config.dry_multiplier,
                base=config.dry_base,
                allowed_length=config.dry_allowed_length,
            )
        return logits


# Log-probabilities


def log_softmax(logits: Array) -> Array:
    """``x - log(sum(exp(x)))`` over the last axis: log-probabilities, in nats."""
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def nats_of(logits: Array, tokens: TokenIds) -> Array:
    """The log-probabilities of tokens ``(n,)`` under logits ``(n, vocab_size)``, in nats."""
    return log_softmax(logits)[np.arange(len(tokens)), tokens]


def likeliest(logits: Array, k: int) -> Iterator[tuple[list[int], list[float]]]:
    """For each row of logits ``(n, vocab_size)`` the ids of its k likeliest tokens, likeliest
    first, of equals the smallest id first, and their log-probabilities."""
    k = min(k, logits.shape[-1])
    for row, nats in zip(logits, log_softmax(logits), strict=True):
        least = np.partition(row, -k)[-k]  # only what is wanted is sorted
        kept = np.flatnonzero(row >= least)  # k, or more with equals
        ids = kept[np.argsort(-row[kept], kind="stable")[:k]]
        yield ids.tolist(), nats[ids].tolist()


# Filters: logits (..., vocab_size) to logits of the same shape, -inf for tokens that are left out.


def penalise_repetition(logits: Array, seen: NDArray[np.bool_], penalty: float) -> Array:
    """Positive logits of the tokens seen are divided by `penalty`, negative ones multiplied
    ("CTRL: A Conditional Transformer Language Model", Keskar et al. 2019, section 4.1)."""
    penalised = np.where(logits < 0, logits * penalty, logits / penalty)
    return np.where(seen, penalised, logits)


def penalise_counts(logits: Array, counts: Array, presence: float, frequency: float) -> Array:
    """As in OpenAI's API; `counts` is how often each token was written."""
    return logits - frequency * counts - presence * (counts > 0)


def keep_top_k(logits: Array, k: int) -> Array:
    """The k largest logits; ties at the edge stay."""
    k = min(k, logits.shape[-1])
    smallest_kept = np.partition(logits, -k)[..., -k, None]  # (..., 1)
    return np.where(logits < smallest_kept, -np.inf, logits)


def keep_top_p(logits: Array, p: float) -> Array:
    """The fewest tokens whose probabilities together reach p ("The Curious Case of Neural Text
    Degeneration", Holtzman et al. 2020, section 3.1); among equal ones the first."""
    if p >= 1.0:
        return logits

    largest = np.sort(logits)[..., ::-1]  # (..., vocab_size)
    probabilities = np.exp(largest - largest[..., :1])
    probabilities /= probabilities.sum(axis=-1, keepdims=True, dtype=np.float64)  # as in the page
    before = probabilities.cumsum(axis=-1, dtype=np.float64) - probabilities  # of all likelier ones
    count = (before < p).sum(axis=-1, keepdims=True)  # (..., 1), how many to keep
    smallest_kept = np.take_along_axis(largest, count - 1, axis=-1)  # (..., 1)

    # Of the logits that equal the smallest kept one, keep as many as are still wanted.
    is_larger = logits > smallest_kept
    is_equal = logits == smallest_kept
    equals_kept = count - is_larger.sum(axis=-1, keepdims=True)  # (..., 1)
    is_kept = is_larger | (is_equal & (is_equal.cumsum(axis=-1) <= equals_kept))
    return np.where(is_kept, logits, -np.inf)


def keep_min_p(logits: Array, p: float) -> Array:
    """Tokens at least p times as likely as the likeliest ("Turning Up the Heat: Min-p Sampling",
    Nguyen et al. 2024)."""
    if p == 0.0:
        return logits
    smallest_kept = logits.max(axis=-1, keepdims=True) + math.log(p)  # (..., 1)
    return np.where(logits < smallest_kept, -np.inf, logits)


def filtered(
    logits: Array,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
) -> Array:
    """Logits divided by the temperature, then through the filters that are not None."""
    logits = logits / temperature
    if top_k is not None:
        logits = keep_top_k(logits, top_k)
    if top_p is not None:
        logits = keep_top_p(logits, top_p)
    if min_p is not None:
        logits = keep_min_p(logits, min_p)
    return logits


def draw(
    logits: Array, noise: Iterator[Array], *, temperature: float = 1.0, **filters: Any
) -> TokenIds:
    """A token id for each row of logits ``(b, vocab_size)``, drawn by the softmax of the filtered
    logits; at temperature 0, or nearly, the largest.

    If every token i gets a time E_i / p_i with exponentially distributed E_i, the smallest time is
    token i's with probability p_i (the Gumbel-max trick; "A* Sampling", Maddison et al. 2014).
    Drawn like this, a token hardly ever changes with the last bit of a logit. `noise` yields E_i
    ``(b, vocab_size)``."""
    if temperature < _COLDEST:
        return logits.argmax(axis=-1)

    logits = filtered(logits, temperature, **filters)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))  # p_i times a constant
    return (weights / next(noise)).argmax(axis=-1)


def exponentials(seed: int, rows: int, columns: int, first: int = 0) -> Iterator[Array]:
    """Exponentially distributed numbers above 0, float64 ``(rows, columns)``, again and again; each
    array overwrites the last one. A row depends on the seed and its index, counted from `first`."""
    generators = []
    for index in range(first, first + rows):
        seed_of_row = np.random.SeedSequence(seed, spawn_key=(index,))
        generators.append(np.random.Generator(np.random.SFC64(seed_of_row)))

    numbers = np.empty((rows, columns))
    while True:
        for row, generator in zip(numbers, generators, strict=True):
            generator.standard_exponential(out=row)
        numbers += np.finfo(np.float64).tiny  # one in 2^53 is 0
        yield numbers
