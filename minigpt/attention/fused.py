"""Fast forms of a few functions for training on a CPU, each with its gradient written out.

They pass over memory less often than torch does, and compute less. On other devices, and in
compiled code, the plain expression of each is used.
"""

import functools
import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

_LOGITS = 1 << 18  # computed at once: they stay in the cache
_ROWS = 64  # queries whose scores are computed at once: later keys are left out
_LONGEST = 256  # sequence whose attention weights are kept for the backward pass


def attention(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, dropout: float, causal: bool
) -> Tensor:
    """``softmax(Q Kᵀ / sqrt(d)) V``, all ``(b, heads, T, d)``; a mask is True where attended."""
    is_short = queries.shape == keys.shape and queries.shape[-2] <= _LONGEST
    if _is_fast(queries) and causal and not dropout and is_short:
        with torch.autocast("cpu", enabled=False):  # as fast with float32, and more exact
            wide = torch.promote_types(queries.dtype, torch.float32)
            parts = (x.flatten(0, 1).to(wide) for x in (queries, keys, values))  # (n, T, d)
            return _CausalAttention.apply(*parts).view(queries.shape).to(queries.dtype)
    shared = queries.shape[1] != keys.shape[1]  # keys, by several queries
    return F.scaled_dot_product_attention(
        queries, keys, values, mask, dropout, causal, enable_gqa=shared
    )


def linear_cross_entropy(x: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    """The mean cross-entropy of the logits ``x weightᵀ`` ``(n, V)`` with targets ``(n,)``."""
    if _is_fast(x):
        return _LinearCrossEntropy.apply(x, weight, targets)
    return F.cross_entropy(F.linear(x, weight).float(), targets)


def _is_fast(x: Tensor) -> bool:
    return x.device.type == "cpu" and not torch.compiler.is_compiling()


class _CausalAttention(torch.autograd.Function):
    """Queries, keys and values are ``(n, T, d)``, n heads of all sequences; so is the result."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        weights, context = [], []
        for start, end in _rows(queries):
            q, k, scale = queries[:, start:end], keys[:, :end], queries.shape[-1] ** -0.5
            scores = torch.baddbmm(_mask(start, end, q.dtype), q, k.mT, alpha=scale)
            weights.append(scores.softmax(dim=-1))  # (n, end - start, end)
            context.append(weights[-1] @ values[:, :end])  # (n, end - start, d)
        ctx.save_for_backward(queries, keys, values, *weights)
        return torch.cat(context, dim=1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, values, *weights = ctx.saved_tensors
        grads, grad_keys, grad_values = [], torch.zeros_like(keys), torch.zeros_like(values)
        for (start, end), w in zip(_rows(queries), weights, strict=True):
            q, of_context = queries[:, start:end], grad[:, start:end]
            of_weights = of_context @ values[:, :end].mT  # (n, end - start, end)
            of_scores = torch._softmax_backward_data(of_weights, w, -1, w.dtype)
            of_scores.mul_(queries.shape[-1] ** -0.5)
            grads.append(of_scores @ keys[:, :end])
            grad_keys[:, :end] += of_scores.mT @ q
            grad_values[:, :end] += w.mT @ of_context
        return torch.cat(grads, dim=1), grad_keys, grad_values


def _rows(queries: Tensor) -> list[tuple[int, int]]:
    T = queries.shape[-2]
    return [(start, min(start + _ROWS, T)) for start in range(0, T, _ROWS)]


@functools.lru_cache(maxsize=16)
def _mask(start: int, end: int, dtype: torch.dtype) -> Tensor:
    """What is added to the scores ``(end - start, end)`` of some rows of queries."""
    with torch.inference_mode(False):
        return torch.full((end - start, end), -math.inf, dtype=dtype).triu_(start + 1)


class _LinearCrossEntropy(torch.autograd.Function):
    """The gradients are computed with the loss, from the same few rows of logits."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
        narrow = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype
        rows = max(_LOGITS // len(weight), 1)
        x, weight = x.to(narrow), weight.to(narrow)
        wide = torch.promote_types(narrow, torch.float32)
        total, grad_weight = torch.zeros((), dtype=wide), torch.zeros_like(weight, dtype=wide)
        grads = []
        for xs, ts in zip(x.split(rows), targets.split(rows), strict=True):
            logits = (xs @ weight.mT).to(wide)  # (rows, V)
            right = logits.gather(1, ts.unsqueeze(1)).squeeze(1)
            highest = logits.amax(dim=1)
            p = torch.softmax(logits, 1, out=logits)
            total += (highest - p.amax(dim=1).log() - right).sum()  # the highest p is exp(0) / sum
            p.scatter_add_(1, ts.unsqueeze(1), p.new_full((len(ts), 1), -1.0))
            p = p.to(narrow)
            grads.append(p @ weight)
            if narrow == wide:
                grad_weight.addmm_(p.mT, xs)
            else:
                grad_weight += p.mT @ xs
        grad_x = torch.cat(grads)
        ctx.save_for_backward(grad_x, grad_weight)
        return total / len(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        grad_x, grad_weight = ctx.saved_tensors
        grad = grad / len(grad_x)
        return grad_x * grad, grad_weight * grad, None
