"""What a model learns from: the tokens of a text, and the batches of windows drawn from them."""

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..tokenizer import Tokenizer, TokenSplitter
from .dialogue.counted import IGNORED, MarkedTokens
from .origin import Origin

TokenIds = NDArray[np.unsignedinteger]


class TokenSequence(Protocol):
    """Token ids one after the other: an array, or the `Tokens` of a file."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> TokenIds: ...


@dataclass(frozen=True)
class Dataset:
    """Tokens to train on, tokens to validate on, and the tokenizer that made them."""

    tokenizer: Tokenizer
    train: TokenSequence
    validation: TokenSequence
    # The text that the tokens come from, as far as it is known.
    origin: Origin = field(default_factory=Origin)
    # If the loss is to count only some tokens: the same tokens, with all others marked.
    marked_train: TokenSequence | None = None
    marked_validation: TokenSequence | None = None

    @cached_property
    def token_splitter(self) -> TokenSplitter:
        """Other ways to write the text in the tokenizer's tokens."""
        return TokenSplitter(self.tokenizer)


def sample_batch(
    tokens: TokenSequence,
    batch_size: int,
    context_length: int,
    *,
    seed: int,
    step: int,
    rows: slice = slice(None),
    splitter: TokenSplitter | None = None,
    split_prob: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Windows of the text, and the same windows one token later: two int64 tensors ``(b, T)``.

    The text is cut into windows side by side. Each is drawn once, in random order, before the next
    epoch cuts the text elsewhere. A batch does not depend on the steps before it. `rows` are the
    windows of one rank; `splitter` splits the share `split_prob` of the tokens. Marked tokens
    are IGNORED as targets; a window whose targets are all marked is replaced by another.
    """
    places = len(tokens) - context_length  # where a window can begin
    in_epoch = _windows_of_an_epoch(places, context_length)
    drawn_before = step * batch_size

    starts: list[int] = []
    while len(starts) < batch_size:
        epoch, turn = divmod(drawn_before + len(starts), in_epoch)
        epoch_starts = _starts_of_epoch(places, context_length, seed=seed, epoch=epoch)
        epoch_starts = _that_count(tokens, epoch_starts, context_length)
        turns = np.arange(turn, min(turn + batch_size - len(starts), in_epoch))
        starts += epoch_starts[turns % len(epoch_starts)].tolist()

    length = context_length + 1  # the last token is a target only
    windows = [tokens[start : start + length] for start in starts[rows]]
    batch = np.stack(windows).astype(np.int64)  # (b, T + 1)

    if splitter is not None and split_prob > 0.0:
        # Drawn for all rows, so that a row is split alike whichever rank it falls to.
        random = _random(seed, step, counter=1 << 255).random((2, batch_size, length))
        batch = splitter(batch, split_prob, random[:, rows])

    return unmarked(torch.from_numpy(batch[:, :-1])), to_predict(torch.from_numpy(batch[:, 1:]))


def unmarked(token_ids: Tensor) -> Tensor:
    """Token ids without the marks that some of them have; the shape stays."""
    is_marked = token_ids < 0
    return torch.where(is_marked, ~token_ids, token_ids) if is_marked.any() else token_ids


def to_predict(token_ids: Tensor) -> Tensor:
    """The targets of a loss: IGNORED where an id is marked; the shape stays."""
    is_marked = token_ids < 0
    return token_ids.masked_fill(is_marked, IGNORED) if is_marked.any() else token_ids


def _windows_of_an_epoch(places: int, context_length: int) -> int:
    return max(places // context_length, 1)


@lru_cache(maxsize=1)  # the next window is most likely of the same epoch
def _starts_of_epoch(
    places: int, context_length: int, *, seed: int, epoch: int
) -> NDArray[np.int64]:
    """Where the windows of an epoch begin, in the order in which they are drawn."""
    count = _windows_of_an_epoch(places, context_length)
    draw = _random(seed, epoch)
    # Windows seldom fill a text exactly, which leaves room to begin each epoch elsewhere.
    offset = draw.integers(places - context_length * (count - 1))
    return offset + context_length * draw.permutation(count)


def _that_count(
    tokens: TokenSequence, starts: NDArray[np.int64], context_length: int
) -> NDArray[np.int64]:
    """Where windows with a target that counts begin: those of `starts` or, if none has such a
    target, another place."""
    if not isinstance(tokens, MarkedTokens):
        return starts
    found = tokens.windows_that_count(starts, context_length)
    if len(found) == 0:  # what counts lies before the first window, or after the last
        last = len(tokens) - context_length - 1
        return np.array([min(tokens.first_target - 1, last)])
    return found


def _random(seed: int, number: int, counter: int = 0) -> np.random.Generator:
    """Random numbers for a seed and a number, independent of all others (Salmon et al. 2011)."""
    bits = np.random.Philox(key=[seed, number], counter=counter)
    return np.random.Generator(bits)
