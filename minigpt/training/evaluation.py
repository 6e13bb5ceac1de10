"""How well a model predicts a text: nats a token, and bits a byte of the original text."""

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from ..data.batches import TokenSequence
from ..model import GPT
from .processes import ALONE, Processes
from .speed import autocast

# Tokens (length + 1,), and how many of them, at the end, are predicted.
Window = tuple[NDArray[np.integer], int]


@dataclass(frozen=True)
class Evaluation:
    """The cross-entropy of a text under a model."""

    loss: float  # nats a token
    bits_per_byte: float  # compares across tokenizers
    tokens: int  # predicted
    bytes: int  # that these stand for

    @property
    def perplexity(self) -> float:
        """Among how many equally likely tokens the model is as uncertain."""
        return math.exp(self.loss) if self.loss < 700 else math.inf


def evaluate(
    model: GPT,
    tokens: TokenSequence,
    byte_lengths: Tensor,
    *,
    max_tokens: int,
    precision: torch.dtype = torch.float32,
    batch_size: int = 16,
    processes: Processes = ALONE,
) -> Evaluation:
    """Predict every token but the first, once, in windows of the context length side by side.

    A text longer than `max_tokens` is judged by that many tokens, in windows spread evenly
    over it, always the same ones. Several processes share the windows.

    Args:
        model: switched to evaluation and back if it was training.
        tokens: ``(n,)``, n > 1.
        byte_lengths: ``(vocab_size,)``, the bytes of text each token stands for.
        max_tokens: predict about this many at most.
        precision: of the matrix products.
        batch_size: windows at a time.
        processes: that evaluate together.
    """
    T = min(model.config.context_length, len(tokens) - 1)
    starts = np.arange(0, len(tokens) - 1, T)  # of each window; the last one may be short
    if len(starts) * T > max_tokens:
        full = starts[: max(len(starts) - 1, 1)]
        starts = full[:: -(-len(full) * T // max_tokens)]
    read = (tokens[start : start + T + 1] for start in starts.tolist())
    return evaluate_windows(
        model,
        ((window, len(window) - 1) for window in read),
        byte_lengths,
        precision=precision,
        batch_size=batch_size,
        processes=processes,
    )


@torch.no_grad()
def evaluate_windows(
    model: GPT,
    chosen: Iterable[Window],
    byte_lengths: Tensor,
    *,
    precision: torch.dtype = torch.float32,
    batch_size: int = 16,
    processes: Processes = ALONE,
) -> Evaluation:
    """Predict the last tokens of each window from all that stand before them in it.

    The result is the same, to the last bit, on any number of processes.

    Args:
        model: switched to evaluation and back if it was training.
        chosen: the windows, at least one, and how many tokens of each to predict.
        byte_lengths: ``(vocab_size,)``, the bytes of text each token stands for.
        precision: of the matrix products.
        batch_size: windows at a time.
        processes: that evaluate together, each given all windows.
    """
    device = model.token_embedding.weight.device
    training = model.training
    totals: list[list[float]] = []  # nats, tokens and bytes of each group of windows
    model.eval()
    for (tokens, predicted), is_mine in processes.turns(_stacked(chosen, batch_size)):
        batch = tokens.to(device)  # (b, length + 1)
        with autocast(device, precision):
            logits = model(batch[:, :-1])[:, -predicted:]  # (b, predicted, vocab_size)
        targets = batch[:, -predicted:].flatten()  # (b * predicted,)
        losses = F.cross_entropy(logits.flatten(0, 1).float(), targets, reduction="none")
        figures = [[0.0, 0.0, 0.0] for _ in range(processes.size)]
        if is_mine:
            nats = losses.cpu().double().sum().item()
            stands_for = float(byte_lengths[targets.cpu()].sum())
            figures[processes.rank] = [nats, targets.numel(), stands_for]
        totals += figures
    model.train(training)
    processes.settle(model)
    table = processes.sum(torch.tensor(totals, dtype=torch.float64))  # (groups, 3)
    nats, count, size = (math.fsum(column) for column in table.T.tolist())
    return Evaluation(nats / count, nats / math.log(2) / max(size, 1), int(count), int(size))


def sliding_windows(
    pieces: Iterable[NDArray[np.integer]], context_length: int, stride: int
) -> Iterator[Window]:
    """Windows over a text of any length, each beginning `stride` tokens after the one before.

    Every token but the first is predicted once. In each window but the first only the last
    `stride` are, so that they see at least ``context_length - stride`` tokens before them.

    Args:
        pieces: the tokens of the text, one array after the other.
        context_length: the model's.
        stride: between 1 and context_length.
    """
    held = np.empty(0, np.int64)  # from the beginning of the next window on
    new = context_length  # tokens that the next window predicts, if it is full
    for piece in pieces:
        held = np.concatenate([held, piece])
        while len(held) > context_length:
            yield held[: context_length + 1], new
            held, new = held[stride:], stride
    left = len(held) - 1 - (context_length - new)
    if left > 0:
        yield held, left


def _stacked(chosen: Iterable[Window], batch_size: int) -> Iterator[tuple[Tensor, int]]:
    """Windows that are alike side by side, int64 ``(b, length + 1)``, and what each predicts."""
    for (_, predicted), alike in itertools.groupby(chosen, key=lambda w: (len(w[0]), w[1])):
        while group := [tokens for tokens, _ in itertools.islice(alike, batch_size)]:
            yield torch.from_numpy(np.stack(group).astype(np.int64)), predicted
