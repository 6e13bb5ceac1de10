"""What a model learns from: the tokens of a text, and the batches drawn from them."""

import math
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .. import UserError
from ..tokenizer import Tokenizer, TokenSplitter
from .token_file import TokenIds


class TokenSequence(Protocol):
    """Token ids one after the other: an array, or the `Tokens` of a file."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> TokenIds: ...


@dataclass(frozen=True)
class Dataset:
    """Tokens to train on, tokens to validate on, and the tokenizer they came from.

    Attributes:
        tokenizer: what made the tokens.
        train: those to train on.
        validation: those to validate on.
        sources: which of `train` come from each source, if these are drawn from by weight.
        weights: of the sources.
    """

    tokenizer: Tokenizer
    train: TokenSequence
    validation: TokenSequence
    sources: tuple[range, ...] = ()
    weights: tuple[float, ...] = ()

    @cached_property
    def token_splitter(self) -> TokenSplitter:
        """Other ways to write the text in the tokenizer's tokens."""
        return TokenSplitter(self.tokenizer)


def check_length(tokens: Sized, context_length: int, name: str = "the training text") -> None:
    """Refuse a training text that does not hold a single window and its next token.

    Args:
        tokens: of the text.
        context_length: of the windows.
        name: what the text is called.

    Raises:
        UserError: with both lengths, and the largest context length that would do.
    """
    if len(tokens) <= context_length:
        raise UserError(
            f"{name} has {len(tokens):,} tokens, too few for context_length "
            f"{context_length:,}; use a longer text or --context-length {len(tokens) - 1}"
        )


def sample_batch(
    tokens: TokenSequence,
    batch_size: int,
    context_length: int,
    *,
    seed: int,
    step: int,
    sources: Sequence[range] = (),
    weights: Sequence[float] = (),
    rows: slice = slice(None),
    splitter: TokenSplitter | None = None,
    split_prob: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Windows of the text and, for each, the same window one token later.

    The text is cut into windows side by side, and all of them are drawn once, in random order,
    before the next pass cuts it elsewhere. With `weights`, a source is drawn by them and then a
    window anywhere in it. No step depends on what was drawn before it.

    Args:
        tokens: ``(n,)`` with n > context_length.
        batch_size: number of windows, b.
        context_length: tokens in each, T.
        seed: of the run.
        step: of the training.
        sources: the tokens of each source, each more than context_length.
        weights: of the sources.
        rows: only these of the windows, for one of several processes.
        splitter: of the windows' tokens.
        split_prob: share of the tokens that are split.

    Returns:
        Inputs and targets, both int64 ``(b, T)``, or as many as there are rows.
    """
    if weights:
        shares = np.array(weights) / sum(weights)
        starts = _weighted_starts(batch_size, context_length, seed, step, sources, shares)
    else:
        numbers = np.arange(step * batch_size, (step + 1) * batch_size)
        starts = _starts_in_turn(numbers, len(tokens), context_length, seed)
    batch = windows(tokens, starts[rows], context_length + 1)  # (b, T + 1)
    if splitter is not None and split_prob > 0.0:
        draw = np.random.Generator(np.random.Philox(key=[seed, step], counter=1 << 255))
        chance = draw.random((2, batch_size, context_length + 1))
        batch = splitter(batch, split_prob, chance[:, rows])
    return torch.from_numpy(batch[:, :-1]), torch.from_numpy(batch[:, 1:])


def _weighted_starts(
    count: int,
    context_length: int,
    seed: int,
    step: int,
    sources: Sequence[range],
    shares: NDArray[np.floating],
) -> NDArray[np.integer]:
    """Where the windows of a step begin, from a counter-based generator (Philox: "Parallel Random
    Numbers: As Easy as 1, 2, 3", Salmon et al. 2011)."""
    draw = np.random.Generator(np.random.Philox(key=[seed, step]))
    drawn = draw.choice(len(sources), size=count, p=shares)  # (b,)
    first, last = np.array([[source.start, source.stop] for source in sources])[drawn].T
    return draw.integers(first, last - context_length, size=count)


def _starts_in_turn(
    numbers: NDArray[np.integer], length: int, context_length: int, seed: int
) -> NDArray[np.integer]:
    """Where the windows with these numbers begin, counted from the first one of the training."""
    places = length - context_length  # where a window can begin
    in_a_pass = max(places // context_length, 1)
    starts = np.empty(len(numbers), np.int64)
    for turn in np.unique(numbers // in_a_pass).tolist():
        draw = np.random.Generator(np.random.Philox(key=[seed, turn]))
        offset = draw.integers(places - context_length * (in_a_pass - 1))
        here = numbers // in_a_pass == turn
        order = _shuffled(numbers[here] % in_a_pass, in_a_pass, draw)
        starts[here] = offset + context_length * order
    return starts


def _shuffled(
    numbers: NDArray[np.integer], count: int, draw: np.random.Generator
) -> NDArray[np.integer]:
    """Where a random permutation of ``range(count)`` takes these numbers, without a table of it.

    A Feistel network permutes the pairs of numbers below the root of the count, rounded up; what
    falls outside the range goes through it again ("Ciphers with Arbitrary Finite Domains", Black
    and Rogaway 2002).
    """
    side = np.uint64(math.isqrt(count - 1) + 1)
    keys = draw.integers(1 << 63, size=6, dtype=np.uint64)

    def permuted(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        left, right = values // side, values % side
        for key in keys:
            mixed = (right ^ key) * np.uint64(0x9E3779B97F4A7C15)
            mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
            left, right = right, (left + (mixed >> np.uint64(32))) % side
        return left * side + right

    values = permuted(numbers.astype(np.uint64))
    while (outside := values >= count).any():
        values[outside] = permuted(values[outside])
    return values.astype(np.int64)


def windows(tokens: TokenSequence, starts: NDArray[np.integer], length: int) -> NDArray[np.int64]:
    """The `length` tokens from each of `starts` on: ``(b, length)``."""
    return np.stack([tokens[start : start + length] for start in starts.tolist()]).astype(np.int64)
