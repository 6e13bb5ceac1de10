"""From logits to a token: each filter a pure function of logits, then a draw.

Penalties come before temperature, top k, top p, min p, in this order, which is that of
transformers; `choosing.py` puts it all together.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

_COLDEST = 1e-5  # below, dividing by the temperature overflows


def penalise_repetition(logits: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """Positive logits of the tokens seen divided by `penalty`, negative ones multiplied by it
    ("CTRL: A Conditional Transformer Language Model", Keskar et al. 2019, section 4.1).

    Args:
        logits: ``(..., vocab_size)``.
        seen: boolean ``(..., vocab_size)``, the tokens of the text so far.
        penalty: above 1 avoids them, below 1 seeks them; above 0.
    """
    penalised = torch.where(logits < 0, logits * penalty, logits / penalty)
    return torch.where(seen, penalised, logits)


def penalise_counts(logits: Tensor, counts: Tensor, presence: float, frequency: float) -> Tensor:
    """``logits - frequency * counts - presence * (counts > 0)``, as OpenAI's API defines it.

    Args:
        logits: ``(..., vocab_size)``.
        counts: ``(..., vocab_size)``, how often each token has been written.
        presence: what a token loses once it has been written.
        frequency: what it loses each time.
    """
    return logits - frequency * counts - presence * (counts > 0)


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


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    """The fewest tokens whose probabilities together reach p as they are, all others -inf ("The
    Curious Case of Neural Text Degeneration", Holtzman et al. 2020, section 3.1).

    Args:
        logits: ``(..., vocab_size)``.
        p: above 0; from 1 on, all are kept.
    """
    if p >= 1.0:
        return logits
    largest, order = logits.sort(dim=-1, descending=True, stable=True)  # (..., vocab_size)
    probabilities = largest.softmax(dim=-1)
    before = probabilities.cumsum(dim=-1) - probabilities  # of all that are likelier
    return logits.scatter(-1, order, largest.masked_fill(before >= p, -torch.inf))


def keep_min_p(logits: Tensor, p: float) -> Tensor:
    """Tokens at least p times as likely as the likeliest as they are, all others -inf ("Turning Up
    the Heat: Min-p Sampling", Nguyen et al. 2024).

    Args:
        logits: ``(..., vocab_size)``.
        p: between 0, which keeps all, and 1.
    """
    if p == 0.0:
        return logits
    smallest_kept = logits.amax(dim=-1, keepdim=True) + math.log(p)  # (..., 1)
    return logits.masked_fill(logits < smallest_kept, -torch.inf)


def filtered(
    logits: Tensor,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
) -> Tensor:
    """Logits after all filters, in the order of transformers.

    Args:
        logits: ``(..., vocab_size)``.
        temperature: see :func:`apply_temperature`.
        top_k: see :func:`keep_top_k`; None keeps all.
        top_p: see :func:`keep_top_p`; None keeps all.
        min_p: see :func:`keep_min_p`; None keeps all.
    """
    logits = apply_temperature(logits, temperature)
    if top_k is not None:
        logits = keep_top_k(logits, top_k)
    if top_p is not None:
        logits = keep_top_p(logits, top_p)
    if min_p is not None:
        logits = keep_min_p(logits, min_p)
    return logits


def exponentials(seed: int, rows: int, columns: int) -> Iterator[Tensor]:
    """Exponentially distributed numbers above 0 without end, float64 ``(rows, columns)``; each
    tensor overwrites the one before.

    Those of a row depend on the seed and its index alone, not on how many rows there are.
    """
    seeds = [np.random.SeedSequence(seed, spawn_key=(row,)) for row in range(rows)]
    generators = [np.random.Generator(np.random.SFC64(seed)) for seed in seeds]
    numbers = np.empty((rows, columns))
    while True:
        for row, generator in zip(numbers, generators, strict=True):
            generator.standard_exponential(out=row)
        numbers += np.finfo(np.float64).tiny  # one in 2^53 is 0
        yield torch.from_numpy(numbers)


def sample(
    logits: Tensor, noise: Iterator[Tensor], *, temperature: float = 1.0, **filters: Any
) -> Tensor:
    """Draw a token from each row of logits.

    Token i wins with its probability p_i if exponentially distributed times E_i / p_i race, the
    smallest being first (the Gumbel-max trick; "A* Sampling", Maddison et al. 2014). Logits that
    differ in the last bit nearly always have the same winner, however many tokens there are.

    Args:
        logits: ``(b, vocab_size)``.
        noise: from :func:`exponentials`, as many rows and columns.
        temperature: see :func:`apply_temperature`; 0 (or next to it) takes the largest logit.
        filters: see :func:`filtered`.

    Returns:
        Token ids, int64 ``(b,)``.
    """
    if temperature < _COLDEST:
        return logits.argmax(dim=-1)
    logits = filtered(logits.float(), temperature=temperature, **filters)
    return (logits.softmax(dim=-1) / next(noise)).argmax(dim=-1)
