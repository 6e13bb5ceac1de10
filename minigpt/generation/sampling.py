"""From logits to a token: each step a pure function of logits."""

import torch
from torch import Tensor

_COLDEST = 1e-5  # below, dividing by the temperature overflows


def apply_temperature(logits: Tensor, temperature: float) -> Tensor:
    """Logits divided by `temperature`: below 1 sharpens their distribution, above 1 flattens it.

    Args:
        logits: ``(..., vocab_size)``.
        temperature: above 0.
    """
    return logits / temperature


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """The k largest logits of each row as they are, all others -inf; ties at the edge stay.

    Args:
        logits: ``(..., vocab_size)``.
        k: at least 1; more than vocab_size keeps all.
    """
    smallest_kept = logits.topk(min(k, logits.shape[-1])).values[..., -1:]  # (..., 1)
    return logits.masked_fill(logits < smallest_kept, -torch.inf)


def sample(
    logits: Tensor,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Draw a token from each row of logits.

    Args:
        logits: ``(b, vocab_size)``.
        temperature: see :func:`apply_temperature`; 0 (or next to it) takes the largest logit.
        top_k: see :func:`keep_top_k`; None keeps all.
        generator: source of randomness.

    Returns:
        Token ids, int64 ``(b,)``.
    """
    if temperature < _COLDEST:
        return logits.argmax(dim=-1)
    logits = apply_temperature(logits.float(), temperature)
    if top_k is not None:
        logits = keep_top_k(logits, top_k)
    return torch.multinomial(logits.softmax(dim=-1), 1, generator=generator).squeeze(-1)
