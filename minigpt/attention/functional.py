"""The equations of attention on plain tensors: scores, mask, weights, context vectors.

Nothing here has parameters or state; every class of this package is built from these functions.
They accept any leading batch shape: ``(T, d)``, ``(b, T, d)``, ``(b, num_heads, T, head_dim)``.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F


def attention_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Dot product of every query with every key: ``S = Q Kᵀ``, unscaled.

    Args:
        queries: ``(..., T_q, d_k)``.
        keys: ``(..., T_k, d_k)``.

    Returns:
        The attention scores, ``(..., T_q, T_k)``.

    Raises:
        ValueError: if queries and keys differ in their last dimension.
    """
    if queries.shape[-1] != keys.shape[-1]:
        both = f"{tuple(queries.shape)} and {tuple(keys.shape)}"
        raise ValueError(f"queries and keys need the same last dimension, got {both}")
    return queries @ keys.transpose(-2, -1)  # (..., T_q, T_k)


def causal_mask(T: int, device: torch.device | str | None = None) -> Tensor:
    """True where a query would attend to a later key: strictly above the diagonal.

    Args:
        T: number of tokens.
        device: where the mask lives.

    Returns:
        A boolean tensor ``(T, T)``; entry ``[i, j]`` is True when key j lies after query i.
    """
    return later_keys(0, T, device)


def later_keys(start: int, end: int, device: torch.device | str | None = None) -> Tensor:
    """The rows from `start` to `end` of a causal mask, ``(end - start, end)``."""
    mask = torch.ones(end - start, end, dtype=torch.bool, device=device)
    return mask.triu(diagonal=start + 1)


def attention_weights(queries: Tensor, keys: Tensor, *, mask: Tensor | None = None) -> Tensor:
    """How much each query attends to each key: ``softmax(Q Kᵀ / sqrt(d_k))``.

    The scores are scaled by ``1 / sqrt(d_k)`` because the dot product of two vectors of d_k
    independent unit-variance components has variance d_k, which would saturate the softmax
    ("Attention Is All You Need", Vaswani et al. 2017, equation 1).

    Args:
        queries: ``(..., T_q, d_k)``.
        keys: ``(..., T_k, d_k)``.
        mask: boolean, broadcastable to ``(..., T_q, T_k)``, True where attention is forbidden.
            Every query must keep at least one key, or its row is NaN.

    Returns:
        The attention weights ``(..., T_q, T_k)``: non-negative rows that sum to 1.

    Raises:
        ValueError: if queries and keys differ in d_k, or the mask does not fit.
    """
    scores = attention_scores(queries, keys) / math.sqrt(keys.shape[-1])  # (..., T_q, T_k)
    if mask is not None:
        scores = scores.masked_fill(_fitting(mask, scores), -torch.inf)
    return scores.softmax(dim=-1)


def scaled_dot_product_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    mask: Tensor | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """``softmax(Q Kᵀ / sqrt(d_k)) V`` (Vaswani et al. 2017, equation 1).

    Queries may come from one sequence and keys and values from another (cross-attention).

    Args:
        queries: ``(..., T_q, d_k)``.
        keys: ``(..., T_k, d_k)``.
        values: ``(..., T_k, d_v)``.
        mask: boolean, True where attention is forbidden, as in :func:`attention_weights`.
        dropout: probability with which each attention weight is dropped (and the rest scaled
            by ``1 / (1 - dropout)``). A function has no training mode: pass 0 to evaluate.

    Returns:
        The context vectors ``(..., T_q, d_v)``.

    Raises:
        ValueError: if queries and keys differ in d_k, keys and values in T_k, the mask does
            not fit, or dropout is outside [0, 1).
    """
    if keys.shape[-2] != values.shape[-2]:
        both = f"keys {tuple(keys.shape)} and values {tuple(values.shape)}"
        raise ValueError(f"there must be one value for each key, got {both}")
    weights = attention_weights(queries, keys, mask=mask)  # (..., T_q, T_k)
    weights = F.dropout(weights, check_dropout(dropout))
    return weights @ values  # (..., T_q, d_v)


def simple_self_attention(x: Tensor) -> Tensor:
    """Attention with no trainable weights and no scaling: ``softmax(x xᵀ) x``.

    Args:
        x: ``(..., T, d)``, each row at once query, key and value.

    Returns:
        The context vectors ``(..., T, d)``.
    """
    return attention_scores(x, x).softmax(dim=-1) @ x


def causal_average(x: Tensor) -> Tensor:
    """Each position becomes the mean of itself and all positions before it.

    This is causal attention whose scores are all equal, so that every weight of row t
    is ``1 / t``; it is computed here as a cumulative sum.

    Args:
        x: ``(..., T, d)``.

    Returns:
        ``(..., T, d)``.
    """
    counts = torch.arange(1, x.shape[-2] + 1, device=x.device, dtype=x.dtype)  # (T,)
    return x.cumsum(dim=-2) / counts.unsqueeze(-1)


def check_dropout(dropout: float) -> float:
    """Return `dropout` if it is a probability below 1, else raise ValueError naming it."""
    if not 0.0 <= dropout < 1.0:
        raise ValueError(f"dropout must be at least 0 and below 1, got {dropout}")
    return dropout


def check_sizes(**sizes: int) -> None:
    """Raise ValueError naming a size that is below 1."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}")


def _fitting(mask: Tensor, scores: Tensor) -> Tensor:
    if mask.dtype != torch.bool:
        raise ValueError(f"mask must be boolean (True = forbidden), got {mask.dtype}")
    try:
        return mask.expand(scores.shape)
    except RuntimeError:
        raise ValueError(
            f"mask {tuple(mask.shape)} does not fit attention scores {tuple(scores.shape)}"
        ) from None
