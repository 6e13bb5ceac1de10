"""How likely tokens are under a model, at temperature 1, no filter applied."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from ..model import GPT


def log_probabilities(logits: Tensor, tokens: Tensor) -> Tensor:
    """Those of the given tokens, in nats.

    Args:
        logits: ``(n, vocab_size)``.
        tokens: ids ``(n,)``.

    Returns:
        float32 ``(n,)``.
    """
    return -F.cross_entropy(logits.float(), tokens.to(logits.device), reduction="none")


def likeliest(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k likeliest tokens of each row, likeliest first; of fewer tokens all.

    Args:
        logits: ``(n, vocab_size)``.
        k: at least 1.

    Returns:
        Their ids ``(n, k)`` and their log-probabilities in nats, float32 ``(n, k)``.
    """
    top = logits.float().log_softmax(dim=-1).topk(min(k, logits.shape[-1]))
    return top.indices, top.values


def next_logits(model: GPT, ids: Sequence[int]) -> Tensor:
    """Logits ``(1, vocab_size)`` of the token after `ids`, of which the end is read."""
    window = list(ids[-model.config.context_length :])
    with torch.inference_mode():
        return model(torch.tensor([window], device=model.token_embedding.weight.device))[:, -1]


def score(model: GPT, ids: Sequence[int]) -> list[float]:
    """The log-probability of each token but the first after those before it, in nats.

    What is longer than the context is read in windows that overlap by half: the first predicts as
    many tokens as it holds, every other one those of its later half, so that they see at least
    half a context.
    """
    context_length = model.config.context_length
    device = model.token_embedding.weight.device
    found: list[float] = []  # found[i] is that of ids[i + 1]
    while len(found) < len(ids) - 1:
        new = context_length - context_length // 2 if found else context_length
        end = min(len(found) + new, len(ids) - 1)
        start = max(end - context_length, 0)
        window = torch.tensor([ids[start:end]], device=device)  # (1, T)
        with torch.inference_mode():
            logits = model(window)[0, len(found) - start :]  # (new, vocab_size)
        targets = torch.tensor(ids[len(found) + 1 : end + 1])  # (new,)
        found += log_probabilities(logits, targets).tolist()
    return found
