"""What a model learns from: the tokens of a text, and the batches of windows drawn from them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..tokenizer import Tokenizer, TokenSplitter
from .dialogue.counted import IGNORED
from .origin import Origin
from .voices import Voices

TokenIds = NDArray[np.unsignedinteger]

WITHOUT_MARK = 0.1  # of the windows of a text with voices (docs/decisions.md)


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
    # The same tokens, those marked that the loss does not count, if it is to count only some.
    marked_train: TokenSequence | None = None
    marked_validation: TokenSequence | None = None
    voices: Voices | None = None  # of the tokens, if the text has some

    @property
    def has_ignored(self) -> bool:
        """Whether the loss does not count all tokens of a window."""
        return self.marked_train is not None or self.voices is not None

    @property
    def longest_mark(self) -> int:
        """Tokens of the longest mark of a voice; 0 if there are none."""
        return 0 if self.voices is None else self.voices.longest_mark

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
    voices: Voices | None = None,
) -> tuple[Tensor, Tensor]:
    """Windows of the text, and the same windows one token later: two int64 tensors ``(b, T)``.

    The text is cut into windows side by side. Each is drawn once, in random order, before the next
    epoch cuts the text elsewhere. A batch does not depend on the steps before it. `rows` are the
    windows of one rank; `splitter` splits the share `split_prob` of the tokens. Tokens that are
    marked are IGNORED as targets. With `voices` each window lies in one of them; they overlap by
    the longest mark, which takes the place of a window's last tokens (:func:`with_marks`).
    """
    starts = _starts(len(tokens), batch_size, context_length, seed=seed, step=step, voices=voices)
    length = context_length + 1  # the last token is a target only
    if voices is None:
        windows = [tokens[start : start + length] for start in starts[rows].tolist()]
    else:
        windows = [voices.window(tokens, start, length) for start in starts[rows].tolist()]
    batch = np.stack(windows).astype(np.int64)  # (b, T + 1)

    if splitter is not None and split_prob > 0.0:
        # Drawn for all rows, so that a row is split alike whichever rank it falls to.
        random = _random(seed, step, counter=1 << 255).random((2, batch_size, length))
        batch = splitter(batch, split_prob, random[:, rows])

    return unmarked(torch.from_numpy(batch[:, :-1])), to_predict(torch.from_numpy(batch[:, 1:]))


def marks_of_batch(
    dataset: Dataset,
    batch_size: int,
    context_length: int,
    *,
    seed: int,
    step: int,
    rows: slice = slice(None),
) -> list[tuple[int, ...]]:
    """The mark of the voice of each window that :func:`sample_batch` draws. A tenth of them have
    none, so that the model also learns to write without a voice."""
    voices = dataset.voices
    if voices is None:
        return []
    starts = _starts(
        len(dataset.train), batch_size, context_length, seed=seed, step=step, voices=voices
    )
    is_plain = _random(seed, step, counter=1 << 254).random(batch_size) < WITHOUT_MARK
    marks = [
        () if plain else voices.marks[number]
        for number, plain in zip(voices.numbers(starts).tolist(), is_plain, strict=True)
    ]
    return marks[rows]


def with_marks(
    inputs: Tensor, targets: Tensor, marks: Sequence[tuple[int, ...]]
) -> tuple[Tensor, Tensor]:
    """Windows with a mark before each, cut to their old length: ``(b, T)`` each, with b marks. The
    targets that follow the tokens of a mark are IGNORED."""
    T = inputs.shape[1]
    inputs, targets = inputs.clone(), targets.clone()
    for i, mark in enumerate(marks):
        ids = torch.tensor(mark, dtype=inputs.dtype)
        ignored = torch.full_like(ids, IGNORED)
        inputs[i] = torch.cat([ids, inputs[i]])[:T]
        targets[i] = torch.cat([ignored, targets[i]])[:T]
    return inputs, targets


def unmarked(token_ids: Tensor) -> Tensor:
    """The ids where some are marked; the shape stays."""
    is_marked = token_ids < 0
    return torch.where(is_marked, ~token_ids, token_ids) if is_marked.any() else token_ids


def to_predict(token_ids: Tensor) -> Tensor:
    """The targets of a loss: IGNORED where an id is marked; the shape stays."""
    is_marked = token_ids < 0
    return token_ids.masked_fill(is_marked, IGNORED) if is_marked.any() else token_ids


def _starts(
    length: int,
    batch_size: int,
    context_length: int,
    *,
    seed: int,
    step: int,
    voices: Voices | None,
) -> NDArray[np.int64]:
    """Where the windows of a batch begin in a text of so many tokens, ``(batch_size,)``."""
    places = length - context_length  # where a window can begin
    stride = context_length
    if voices is not None:
        stride = max(context_length - voices.longest_mark, 1)
    in_epoch = _windows_of_an_epoch(places, stride)
    drawn_before = step * batch_size

    starts = []
    for number in range(drawn_before, drawn_before + batch_size):
        epoch, turn = divmod(number, in_epoch)
        epoch_starts = _starts_of_epoch(places, stride, seed=seed, epoch=epoch)
        starts.append(epoch_starts[turn])

    found = np.array(starts)
    return found if voices is None else voices.within(found, context_length + 1)


def _windows_of_an_epoch(places: int, stride: int) -> int:
    return max(places // stride, 1)


@lru_cache(maxsize=1)  # the next window is most likely of the same epoch
def _starts_of_epoch(places: int, stride: int, *, seed: int, epoch: int) -> NDArray[np.int64]:
    """Where the windows of an epoch begin, in the order in which they are drawn."""
    count = _windows_of_an_epoch(places, stride)
    draw = _random(seed, epoch)
    # Windows seldom fill a text exactly, which leaves room to begin each epoch elsewhere.
    offset = draw.integers(places - stride * (count - 1))
    return offset + stride * draw.permutation(count)


def _random(seed: int, number: int, counter: int = 0) -> np.random.Generator:
    """Random numbers for one number of a seed, independent of all others (Salmon et al. 2011)."""
    bits = np.random.Philox(key=[seed, number], counter=counter)
    return np.random.Generator(bits)
