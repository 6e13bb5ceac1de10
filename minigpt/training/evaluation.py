"""How well a model predicts a text: nats a token, and bits a byte of the original text.

The trainer evaluates on its validation tokens, `measure/evaluate.py` on text files of any size.
"""

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..config import EvaluationConfig
from ..data.batches import TokenSequence, to_predict, unmarked
from ..data.dialogue.counted import IGNORED, MarkedTokens
from ..networks import evaluating
from . import distributed, workers
from .loss import token_cross_entropy
from .precision import autocast

Window = NDArray[np.integer]  # tokens (length + 1,)
# Windows ``(b, length + 1)``, and how many tokens after the first are not predicted in them.
Group = tuple[Tensor, int]


class Totals(NamedTuple):
    """Sums over some predicted tokens."""

    nats: float  # their losses
    tokens: int  # how many there are
    bytes: int  # of text that they stand for
    right: float  # how many of them the model found likeliest; NaN if that was not counted


class Predictions(NamedTuple):
    """What a model made of some windows of the same length."""

    tokens: Tensor  # the windows, (b, length + 1); marked where the loss does not count a token
    known: int  # how many tokens after the first are not predicted
    nats: Tensor  # the loss of each predicted token, (b, length - known); 0 if it does not count
    are_right: Tensor  # whether the likeliest token was the right one, (b, length - known)

    def totals(self, byte_lengths: Tensor) -> Totals:
        """Their sums."""
        targets = to_predict(self.tokens[:, self.known + 1 :])
        counted = targets[targets != IGNORED]  # (n,)
        return Totals(
            nats=self.nats.sum().item(),
            tokens=len(counted),
            bytes=int(byte_lengths[counted].sum()),
            right=int(self.are_right.sum()),
        )


@dataclass(frozen=True)
class Evaluation:
    """The cross-entropy of a text under a model."""

    loss: float  # nats a token
    bits_per_byte: float  # compares across tokenizers
    tokens: int  # predicted
    bytes: int  # that these stand for
    context_length: int  # tokens in a window
    stride: int  # tokens from one window to the next
    right: float | None = None  # share of the tokens that were the likeliest one; None: not counted
    counting_bits_per_byte: float | None = None  # that counting gives on the same text, if known
    # The files of the text that the model is known to have learned from
    learned_from: list[str] = field(default_factory=list)

    @property
    def perplexity(self) -> float:
        """``exp(loss)``: a choice among this many equally likely tokens has the same loss."""
        return math.exp(self.loss) if self.loss < 700 else math.inf


def evaluate_tokens(
    model: nn.Module,
    tokens: TokenSequence,
    byte_lengths: Tensor,
    *,
    context_length: int,
    max_tokens: int,
    at_once: int = EvaluationConfig.batch_size,
    precision: torch.dtype = torch.float32,
) -> Evaluation:
    """Predict every token but the first, once, in windows of the context length side by side.

    Of a text longer than `max_tokens` only some windows are read, see :func:`spread_windows`.
    The other arguments are those of :func:`evaluate_windows`.
    """
    return evaluate_windows(
        model,
        spread_windows(tokens, context_length, max_tokens),
        byte_lengths,
        context_length=context_length,
        at_once=at_once,
        precision=precision,
    )


def spread_windows(tokens: TokenSequence, context_length: int, max_tokens: int) -> Iterator[Window]:
    """Windows of a text side by side, in which every token but the first is predicted once. Windows
    without a token that counts are left out. If the others have more than `max_tokens` tokens, only
    some of them are returned, spread evenly and always the same."""
    T = min(context_length, len(tokens) - 1)
    starts = np.arange(0, len(tokens) - 1, T)  # of each window; the last one may be short
    if isinstance(tokens, MarkedTokens):
        starts = tokens.windows_that_count(starts, T)
    if len(starts) * T > max_tokens:
        full = starts[: max(len(starts) - 1, 1)]
        starts = full[:: math.ceil(len(full) * T / max_tokens)]

    for start in starts.tolist():
        yield tokens[start : start + T + 1]


def evaluate_windows(
    model: nn.Module,
    windows: Iterable[Window],
    byte_lengths: Tensor,
    *,
    context_length: int,
    stride: int | None = None,
    at_once: int = EvaluationConfig.batch_size,
    precision: torch.dtype = torch.float32,
) -> Evaluation:
    """Predict each token of a window but the first from all tokens before it in the window.

    Several processes, each given all windows, share the work; or workers do.

    Args:
        model: any network from ids ``(b, T)`` to logits ``(b, T, vocab_size)``. It keeps its mode,
            training or not; dropout is off meanwhile.
        windows: tokens ``(length + 1,)`` each.
        byte_lengths: how many bytes of text each token stands for, ``(vocab_size,)``.
        context_length: the most tokens that the model sees.
        stride: tokens from one window to the next, the context length if unset. Of windows that
            overlap, each predicts what the one before it has not predicted.
        at_once: windows that a process computes at once, shared among its workers; each worker
            computes at least one.
        precision: of the matrix products.
    """
    stride = context_length if stride is None else stride
    predicted = predictions(
        model,
        windows,
        overlap=context_length - stride,
        at_once=at_once,
        precision=precision,
    )
    totals = [group.totals(byte_lengths) for group in predicted]
    return evaluation_of(totals, context_length=context_length, stride=stride)


def predictions(
    model: nn.Module,
    windows: Iterable[Window],
    *,
    overlap: int = 0,
    at_once: int = EvaluationConfig.batch_size,
    precision: torch.dtype = torch.float32,
) -> Iterator[Predictions]:
    """The loss of every token that :func:`evaluate_windows` predicts, in the order of the text; of
    several processes each has its share. Windows have `overlap` tokens in common."""
    device = next(model.parameters()).device

    def predict(group: Group) -> Predictions:
        tokens, known = group
        inputs = unmarked(tokens[:, :-1])  # (b, length)
        targets = to_predict(tokens[:, known + 1 :])  # (b, length - known)
        with autocast(device, precision):
            losses, are_right = token_cross_entropy(model, inputs.to(device), targets.to(device))
        return Predictions(tokens, known, losses.cpu().double(), are_right.cpu())

    groups = _groups(windows, max(at_once // workers.count(), 1), overlap)
    ranks = distributed.world_size()
    in_a_turn = ranks * workers.count()  # a group for each worker of each process
    with evaluating(model):
        while turn := list(itertools.islice(groups, in_a_turn)):
            own = turn[distributed.rank() :: ranks]
            yield from workers.compute(predict, own)


def evaluation_of(totals: list[Totals], *, context_length: int, stride: int) -> Evaluation:
    """The evaluation from the totals that all processes have; its losses are NaN if no token
    counts."""
    none = Totals(0.0, 0, 0, 0.0)  # from a process without windows
    of_all = itertools.chain.from_iterable(distributed.gather([none, *totals]))
    nats, count, size, right = map(math.fsum, zip(*of_all, strict=True))  # exact in any order

    if count == 0:
        nats = math.nan  # 0 would be the best of all
    loss = nats / max(count, 1)
    bits = nats / math.log(2) / max(size, 1)
    return Evaluation(
        loss=loss,
        bits_per_byte=bits,
        tokens=int(count),
        bytes=int(size),
        context_length=context_length,
        stride=stride,
        right=None if math.isnan(right) else right / max(count, 1),
    )


def windows_of(
    chunks: Iterable[NDArray[np.integer]], context_length: int, stride: int | None = None
) -> Iterator[Window]:
    """Windows over a text in chunks, each `stride` tokens after the one before, or side by side.

    The last token of a window is predicted in it, and read in the next one. The last window may be
    short; it holds a token at least that none before it has predicted.
    """
    stride = context_length if stride is None else stride
    overlap = context_length - stride
    held = np.empty(0, np.int64)  # the tokens from the beginning of the next window
    predicted = 0  # how many of these, after the first one, earlier windows predict
    for chunk in chunks:
        held = np.concatenate([held, chunk])
        while len(held) > context_length:
            yield held[: context_length + 1]
            held = held[stride:]
            predicted = overlap
    if len(held) > predicted + 1:
        yield held


def _groups(windows: Iterable[Window], size: int, overlap: int) -> Iterator[Group]:
    """Windows of the same length side by side, `size` of them at most."""
    windows = iter(windows)
    if overlap > 0:  # the first one predicts all its tokens
        for first in itertools.islice(windows, 1):
            yield _stacked([first]), 0

    for _, alike in itertools.groupby(windows, key=len):
        while group := list(itertools.islice(alike, size)):
            yield _stacked(group), overlap


def _stacked(windows: list[Window]) -> Tensor:
    return torch.from_numpy(np.stack(windows).astype(np.int64))
