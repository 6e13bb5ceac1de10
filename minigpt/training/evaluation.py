"""How well a model predicts a text: nats a token, and bits a byte of the original text."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ..dataset import TokenIds
from ..device import autocast
from ..model import GPT
from .processes import ALONE, Processes


@dataclass(frozen=True)
class Evaluation:
    """The cross-entropy of a text under a model."""

    loss: float  # nats a token
    bits_per_byte: float  # compares across tokenizers


@torch.no_grad()
def evaluate(
    model: GPT,
    tokens: TokenIds,
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
    device = model.token_embedding.weight.device
    starts = np.arange(0, len(tokens) - 1, T)  # of each window; the last one may be short
    if len(starts) * T > max_tokens:
        full = starts[: max(len(starts) - 1, 1)]
        starts = full[:: -(-len(full) * T // max_tokens)]
    groups = _same_length(starts, len(tokens) - 1, T, batch_size)
    totals = torch.zeros(len(groups), 3, dtype=torch.float64)  # nats, tokens, bytes of each group
    training = model.training
    model.eval()
    for i, counts in processes.turns(len(groups)):
        group = groups[i]
        length = min(T, len(tokens) - 1 - int(group[0]))
        windows = tokens[group[:, None] + np.arange(length + 1)].astype(np.int64)
        batch = torch.from_numpy(windows).to(device)  # (b, length + 1)
        with autocast(device, precision):
            logits = model(batch[:, :-1])  # (b, length, vocab_size)
        targets = batch[:, 1:].flatten()  # (b * length,)
        losses = F.cross_entropy(logits.flatten(0, 1).float(), targets, reduction="sum")
        if counts:
            size = int(byte_lengths[targets.cpu()].sum())
            totals[i] = torch.tensor([losses.item(), targets.numel(), size], dtype=totals.dtype)
    model.train(training)
    processes.settle(model)
    nats, count, size = processes.sum(totals).sum(dim=0).tolist()
    return Evaluation(nats / count, nats / math.log(2) / max(size, 1))


def _same_length(starts: np.ndarray, end: int, T: int, batch_size: int) -> list[np.ndarray]:
    """Groups of windows that can be stacked: a short last window stands alone."""
    full = starts[starts + T <= end]
    groups = [full[i : i + batch_size] for i in range(0, len(full), batch_size)]
    return groups + [starts[i : i + 1] for i in range(len(full), len(starts))]
