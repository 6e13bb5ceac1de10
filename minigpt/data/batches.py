"""What a model learns from: the tokens of a text, and the windows that are drawn from them.

A window is inputs and, for each of them, the token that follows: its target. Training draws batches
of windows, an evaluation reads them one after another. A target that does not count is IGNORED, and
nobody who gets windows asks why: somebody else says it than the speaker to learn (`only`), or an
earlier window of an evaluation has predicted it. A window without a target that counts is neither
drawn nor evaluated on.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .. import UserError
from ..config import EARLY_UNTIL, TrainConfig
from ..tokenizer import Tokenizer
from .origin import Origin
from .token_splitting import TokenSplitter

_SHARE_OF_MEMORY = 1 / 50  # of a GPU's, that the tokens of a text may take
_TOKEN = 4  # bytes of it
_AT_ONCE = 1 << 22  # tokens that are copied there

IGNORED = -100  # a target that does not count, as in torch's cross-entropy

TokenIds = NDArray[np.integer]
Counted = NDArray[np.bool_]  # which tokens of a text count when they are targets, (n,)
Window = tuple[NDArray[np.int64], NDArray[np.int64]]  # inputs and targets, each (T,)
Batch = tuple[Tensor, Tensor]  # inputs and targets, each (b, T), int64


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
    # Which tokens the loss counts, if not all: with `only` those that one speaker says.
    counted_train: Counted | None = None
    counted_validation: Counted | None = None


class Batches(Protocol):
    """The windows that a training reads. What is drawn depends on the arguments alone.

    Attributes:
        all_count: whether every target of every batch counts.
    """

    all_count: bool

    def starts(self, step: int) -> NDArray[np.int64]:
        """Where in the tokens the windows of a step's batch begin, ``(batch_size,)``."""
        ...

    def batch(self, step: int, done: float, rows: slice = slice(None)) -> Batch:
        """Inputs and targets ``(b, T)`` of some rows of a step's batch. `done` is the share of the
        training that lies before the step, `rows` are the windows of one process."""
        ...

    def validation(self, max_tokens: int) -> Iterator[Window]:
        """Windows to evaluate on, with about `max_tokens` tokens at most, always the same ones."""
        ...


def make_batches(dataset: Dataset, config: TrainConfig, context_length: int) -> Batches:
    """The batches that a config asks for. On a GPU of NVIDIA they are made there, where the tokens
    fit and all of them count.

    Raises:
        UserError: if tokens were to be split of which only some count.
    """
    gpu = _gpu_for(dataset, config)
    batches: Batches = WindowBatches(
        dataset,
        batch_size=config.batch_size,
        context_length=context_length,
        seed=config.seed,
        device=gpu,
    )
    if config.token_split_prob > 0.0:
        if dataset.counted_train is not None:
            raise UserError("tokens of which only some count cannot be split: token_split_prob")
        batches = SplitTokens(batches, dataset.tokenizer, config, gpu or torch.device("cpu"))
    if config.warmup_context is not None:
        batches = ShortContext(batches, config.warmup_context)
    return batches


def _gpu_for(dataset: Dataset, config: TrainConfig) -> torch.device | None:
    """The GPU on which batches are made; None if they are made in main memory, and sent."""
    if not config.device.startswith("cuda") or dataset.counted_train is not None:
        return None
    device = torch.device(config.device)
    memory = torch.cuda.get_device_properties(device).total_memory
    return device if _TOKEN * len(dataset.train) <= _SHARE_OF_MEMORY * memory else None


class WindowBatches:
    """Windows of a text, drawn in random order.

    The text is cut into windows side by side. Each is drawn once before the next epoch cuts the
    text elsewhere. In the place of windows in which no target counts, the others are drawn again.

    With a `device` the tokens of a text that all count are copied there, and so are the batches.
    """

    def __init__(
        self,
        dataset: Dataset,
        *,
        batch_size: int,
        context_length: int,
        seed: int,
        device: torch.device | None = None,
    ):
        self._dataset = dataset
        self._batch_size = batch_size
        self._context_length = context_length
        self._seed = seed
        self.all_count = dataset.counted_train is None

        self._places = len(dataset.train) - context_length  # where a window can begin
        self._in_epoch = max(self._places // context_length, 1)  # windows
        # Remembered: the next batch is most likely of the same epoch.
        self._starts_of_epoch = lru_cache(maxsize=1)(self._draw_epoch)
        self._copy = None if device is None else _copied(dataset.train, device)  # (n,)

    def starts(self, step: int) -> NDArray[np.int64]:
        """See :class:`Batches`."""
        drawn_before = step * self._batch_size
        starts: list[int] = []
        while len(starts) < self._batch_size:
            missing = self._batch_size - len(starts)
            epoch, turn = divmod(drawn_before + len(starts), self._in_epoch)
            turns = np.arange(turn, min(turn + missing, self._in_epoch))
            of_epoch = self._starts_of_epoch(epoch)
            starts += of_epoch[turns % len(of_epoch)].tolist()
        return np.array(starts, np.int64)

    def batch(self, step: int, done: float, rows: slice = slice(None)) -> Batch:
        """See :class:`Batches`."""
        tokens = self._dataset.train
        counted = self._dataset.counted_train
        starts = self.starts(step)[rows]
        if self._copy is not None:
            return windows_at(torch.from_numpy(starts), self._copy, self._context_length)
        windows = [window(tokens, s, self._context_length, counted) for s in starts.tolist()]
        return batch_of(windows)

    def validation(self, max_tokens: int) -> Iterator[Window]:
        """See :class:`Batches`."""
        return windows_side_by_side(
            self._dataset.validation,
            self._context_length,
            max_tokens,
            counted=self._dataset.counted_validation,
        )

    def _draw_epoch(self, epoch: int) -> NDArray[np.int64]:
        """Where the windows of an epoch begin, in the order in which they are drawn."""
        T = self._context_length
        draw = _random(self._seed, epoch)
        # Windows seldom fill a text exactly, which leaves room to begin each epoch elsewhere.
        offset = draw.integers(self._places - T * (self._in_epoch - 1))
        order = draw.permutation(self._in_epoch)

        counted = self._dataset.counted_train
        if counted is None:
            return offset + T * order
        targets = counted[offset + 1 : offset + 1 + T * self._in_epoch]
        has_target = np.any(targets.reshape(self._in_epoch, T), axis=1)
        if has_target.any():
            return offset + T * order[has_target[order]]

        # What counts lies before the first window or after the last.
        first_target = 1 + int(counted[1:].argmax())
        return np.array([min(first_target - 1, self._places - 1)])


class SplitTokens:
    """Batches in which some tokens are split in two, until near the end of the training."""

    def __init__(
        self, batches: Batches, tokenizer: Tokenizer, config: TrainConfig, device: torch.device
    ):
        self.all_count = batches.all_count
        self.starts = batches.starts
        self.validation = batches.validation
        self._batches = batches
        self._splitter = TokenSplitter(tokenizer, device)
        self._config = config

    def batch(self, step: int, done: float, rows: slice = slice(None)) -> Batch:
        """See :class:`Batches`."""
        inputs, targets = self._batches.batch(step, done, rows)
        if done >= EARLY_UNTIL:
            return inputs, targets

        ids = torch.cat((inputs, targets[:, -1:]), dim=1)  # (b, T + 1)
        # Drawn for all rows, so that a row is split alike whichever process it falls to.
        shape = (2, self._config.batch_size, ids.shape[1])
        random = _random(self._config.seed, step, counter=1 << 255).random(shape)
        of_rows = sent(torch.from_numpy(random[:, rows]), ids.device)  # (2, b, T + 1)
        ids = self._splitter(ids, self._config.token_split_prob, of_rows)
        return _inputs_and_targets(ids)


class ShortContext:
    """Batches whose windows are cut into pieces, until near the end of the training."""

    def __init__(self, batches: Batches, length: int):
        self.all_count = batches.all_count
        self.starts = batches.starts
        self.validation = batches.validation
        self._batches = batches
        self._length = length

    def batch(self, step: int, done: float, rows: slice = slice(None)) -> Batch:
        """See :class:`Batches`. Of ``b`` windows there are ``b k`` pieces ``(b k, T // k)``; the
        last tokens of a window are left out where k does not divide T."""
        inputs, targets = self._batches.batch(step, done, rows)
        if done >= EARLY_UNTIL:
            return inputs, targets

        b, T = inputs.shape
        k = math.ceil(T / self._length)
        used = T - T % k
        shape = (b * k, T // k)
        return inputs[:, :used].reshape(shape), targets[:, :used].reshape(shape)


# Windows


def window(
    tokens: TokenSequence, start: int, length: int, counted: Counted | None = None
) -> Window:
    """The window that begins at a token; at the end of the tokens it is shorter than `length`."""
    ids = tokens[start : start + length + 1].astype(np.int64)  # the last one is a target only
    targets = ids[1:]
    if counted is not None:
        targets = np.where(counted[start + 1 : start + length + 1], targets, IGNORED)
    return ids[:-1], targets


def batch_of(windows: Sequence[Window]) -> Batch:
    """Windows of the same length one below the other."""
    inputs, targets = zip(*windows, strict=True)
    return torch.from_numpy(np.stack(inputs)), torch.from_numpy(np.stack(targets))


def windows_at(starts: Tensor, tokens: Tensor, length: int) -> Batch:
    """The windows of tokens ``(n,)`` that begin at starts ``(b,)``, on the device of the tokens.
    Nothing waits for it."""
    device = tokens.device
    reach = torch.arange(length + 1, device=device)  # the last one is a target only
    ids = tokens[sent(starts, device)[:, None] + reach].long()  # (b, length + 1)
    return _inputs_and_targets(ids)


def _inputs_and_targets(ids: Tensor) -> Batch:
    """Of ids ``(b, T + 1)``. Code that is compiled for a batch fits the next one only if both lie
    in memory in the same way, so these lie as those that are made of windows."""
    return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()


def _copied(tokens: TokenSequence, device: torch.device) -> Tensor:
    """All tokens ``(n,)`` in the memory of a device."""
    copy = torch.empty(len(tokens), dtype=torch.int32, device=device)
    for start in range(0, len(tokens), _AT_ONCE):
        part = torch.from_numpy(tokens[start : start + _AT_ONCE].astype(np.int32))
        copy[start : start + len(part)].copy_(part)
    return copy


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor of a batch on a device. To a GPU of NVIDIA it is on its way when this returns."""
    if device.type != "cuda" or tensor.is_cuda:
        return tensor.to(device)
    return tensor.contiguous().pin_memory().to(device, non_blocking=True)


def windows_side_by_side(
    tokens: TokenSequence,
    context_length: int,
    max_tokens: int,
    *,
    counted: Counted | None = None,
) -> Iterator[Window]:
    """Windows of a text in which every token but the first is a target once. Windows without a
    target that counts are left out. If the others have more than `max_tokens` tokens, only some of
    them are returned, spread evenly and always the same."""
    T = min(context_length, len(tokens) - 1)
    starts = np.arange(0, len(tokens) - 1, T)  # of each window; the last one may be short
    if counted is not None:
        starts = starts[np.logical_or.reduceat(counted[1:], starts)]
    if len(starts) * T > max_tokens:
        full = starts[: max(len(starts) - 1, 1)]
        starts = full[:: math.ceil(len(full) * T / max_tokens)]

    for start in starts.tolist():
        yield window(tokens, start, T, counted)


def windows_of_stream(
    chunks: Iterable[NDArray[np.integer]], context_length: int, stride: int | None = None
) -> Iterator[Window]:
    """Windows over a text in chunks, each `stride` tokens after the one before, or side by side.

    Every token but the first is a target that counts in the first window that has it. The last
    window may be short.
    """
    stride = context_length if stride is None else stride
    held = np.empty(0, np.int64)  # the tokens from the beginning of the next window
    predicted = 0  # how many of these, after the first one, earlier windows predict
    for chunk in chunks:
        held = np.concatenate([held, chunk])
        while len(held) > context_length:
            yield _window_of(held[: context_length + 1], predicted)
            held = held[stride:]
            predicted = context_length - stride
    if len(held) > predicted + 1:
        yield _window_of(held, predicted)


def _window_of(ids: NDArray[np.int64], predicted: int) -> Window:
    """The window of ids ``(T + 1,)`` whose first targets, so many, another one has predicted."""
    targets = ids[1:].copy()
    targets[:predicted] = IGNORED
    return ids[:-1], targets


def _random(seed: int, number: int, counter: int = 0) -> np.random.Generator:
    """Random numbers for a seed and a number, independent of all others (Salmon et al. 2011)."""
    bits = np.random.Philox(key=[seed, number], counter=counter)
    return np.random.Generator(bits)
