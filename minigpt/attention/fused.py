"""Fast forms of attention, cross-entropy and dropout for training on a CPU.

They pass over memory less often than torch does, and compute less; attention and cross-entropy have
their gradients written out. The plain expression of each is used on other devices, in compiled code
and under the transforms of torch.func. It is used for the gradient of a gradient, too, of which the
fast form would give only a part.
"""

import math
import threading
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional as F

from .functional import attention_weights, causal_mask

_LOGITS = 1 << 18  # computed at once: they stay in the cache
_LEAST_ROWS = 128  # of logits at once: with fewer, adding up the weight's gradient takes longer
_ROWS = 64  # queries whose scores are computed at once: later keys are left out
_LONGEST = 256  # sequence whose attention weights are kept for the backward pass

# Devices on which torch's fused kernel is not used. The kernel for MPS has given wrong results
# without an error in several versions of torch: for tensors that are not contiguous (issues 163597
# and 181133 of pytorch), for keys whose number is no multiple of 32 (pull request 169222), for
# grouped queries (issue 174861) and for causal attention in half precision (issue 195910). In
# training it is not used there anyway.
_EXPLICIT_ON = ("mps",)

_IGNORED = -100  # a target that does not count, as in torch's cross_entropy

randomness = threading.local()  # a thread's dropout is drawn by its `generator`, or by torch's


def attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    mask: Tensor | None = None,
    dropout: float = 0.0,
    causal: bool = False,
) -> Tensor:
    """``softmax(Q Kᵀ / sqrt(d)) V``, all ``(b, heads, T, d)``. A mask is True where attention is
    forbidden; `causal` stands for the causal mask of whole sequences."""
    # Torch's fused kernels know neither forward mode nor second derivatives.
    if is_transformed() or queries.device.type in _EXPLICIT_ON:
        if causal:
            mask = causal_mask(queries.shape[-2], queries.device)
        return explicit_attention(queries, keys, values, mask=mask, dropout=dropout)[0]

    is_short = queries.shape == keys.shape and queries.shape[-2] <= _LONGEST
    if _is_fast(queries, keys, values) and causal and not dropout and is_short:
        with torch.autocast("cpu", enabled=False):  # as fast with float32, and more exact
            wide = torch.promote_types(queries.dtype, torch.float32)
            parts = (x.flatten(0, 1).to(wide) for x in (queries, keys, values))  # (n, T, d)
            return _CausalAttention.apply(*parts).view(queries.shape).to(queries.dtype)

    shared = queries.shape[1] != keys.shape[1]  # a key head, by several query heads
    return F.scaled_dot_product_attention(
        queries,
        keys,
        values,
        attn_mask=None if mask is None else ~mask,
        dropout_p=dropout,
        is_causal=causal,
        enable_gqa=shared,
    )


def explicit_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    mask: Tensor | None,
    dropout: float,
) -> tuple[Tensor, Tensor]:
    """The same as :func:`attention`, step by step; also returns the weights before dropout."""
    group_size = queries.shape[1] // keys.shape[1]
    keys = keys.repeat_interleave(group_size, dim=1)  # (b, heads, S, d)
    values = values.repeat_interleave(group_size, dim=1)  # (b, heads, S, d)

    weights = attention_weights(queries, keys, mask=mask)  # (b, heads, T, S)
    return F.dropout(weights, dropout) @ values, weights


def linear_cross_entropy(x: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    """The mean cross-entropy of the logits ``x weightᵀ`` ``(n, V)`` with targets ``(n,)``, as
    :func:`cross_entropy`."""
    if not _is_fast(x, weight, targets) or is_transformed():
        return cross_entropy(F.linear(x, weight), targets)

    is_counted = targets != _IGNORED  # (n,)
    if not is_counted.any():
        return cross_entropy(F.linear(x, weight), targets)
    if not is_counted.all():
        x = x[is_counted]
        targets = targets[is_counted]
    return _LinearCrossEntropy.apply(x, weight, targets)


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """The mean cross-entropy of logits ``(n, V)`` with targets ``(n,)``, in float32 or wider. A
    target of -100 does not count; the mean is 0 if none does."""
    wide = torch.promote_types(logits.dtype, torch.float32)
    total = F.cross_entropy(logits.to(wide), targets, reduction="sum", ignore_index=_IGNORED)
    return total / (targets != _IGNORED).sum().clamp(min=1)


class Dropout(nn.Dropout):
    """Zeroes activations with probability p and scales up the rest (Srivastava et al. 2014).

    On a CPU most of the cost is drawing random numbers. So there one random byte decides about
    each activation, and p is rounded to a multiple of 1/256.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Map any shape to itself."""
        if x.device.type != "cpu" or not self.training or is_transformed():
            return super().forward(x)

        dropped = min(round(256 * self.p), 255)
        if dropped == 0:
            return x

        count = -(-x.numel() // 8)
        generator = getattr(randomness, "generator", None)
        own = {} if generator is None else {"generator": generator}
        words = torch.randint(-(2**63), 2**63 - 1, (count,), **own)
        kept = words.view(torch.uint8)[: x.numel()].view(x.shape) >= dropped
        return x * kept * (256 / (256 - dropped))


def is_transformed() -> bool:
    """Whether a transform of torch.func, such as vmap or grad, or forward-mode differentiation is
    at work. False in compiled code, where the compiler takes care of these."""
    if torch.compiler.is_compiling():
        return False
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def _is_fast(*tensors: Tensor) -> bool:
    """Whether these are ordinary tensors on a CPU, and the code that runs is not being compiled."""
    if torch.compiler.is_compiling():
        return False
    return all(x.device.type == "cpu" and type(x) in (Tensor, nn.Parameter) for x in tensors)


def _must_be_differentiable() -> bool:
    """Whether a backward pass that runs now will itself be differentiated (``create_graph=True``),
    or is given many gradients at once (``is_grads_batched=True``)."""
    return torch.is_grad_enabled() or is_transformed()


class _CausalAttention(torch.autograd.Function):
    """Queries, keys and values are ``(n, T, d)``, n heads of all sequences; so is the result."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        T = queries.shape[1]
        scale = queries.shape[-1] ** -0.5
        weights = []
        context = []
        for start in range(0, T, _ROWS):
            end = min(start + _ROWS, T)
            q = queries[:, start:end]  # (n, rows, d)
            k = keys[:, :end]  # (n, end, d)

            # Minus infinity for a later key, else 0: it is added to the scores.
            mask = q.new_full((end - start, end), -math.inf).triu_(start + 1)
            scores = torch.baddbmm(mask, q, k.mT, alpha=scale)  # (n, rows, end)
            weights.append(scores.softmax(dim=-1))  # (n, rows, end)
            context.append(weights[-1] @ values[:, :end])  # (n, rows, d)

        ctx.save_for_backward(queries, keys, values, *weights)
        return torch.cat(context, dim=1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, values, *weights = ctx.saved_tensors
        if _must_be_differentiable():
            with torch.autocast("cpu", enabled=False):
                return _gradients_of_attention(queries, keys, values, grad)

        scale = queries.shape[-1] ** -0.5
        grad_queries = []
        grad_keys = torch.zeros_like(keys)
        grad_values = torch.zeros_like(values)
        with torch.autocast("cpu", enabled=False):
            for start, w in zip(range(0, queries.shape[1], _ROWS), weights, strict=True):
                end = w.shape[-1]
                of_context = grad[:, start:end]  # (n, rows, d)
                of_weights = of_context @ values[:, :end].mT  # (n, rows, end)
                of_scores = torch._softmax_backward_data(of_weights, w, -1, w.dtype)
                of_scores.mul_(scale)

                grad_queries.append(of_scores @ keys[:, :end])  # (n, rows, d)
                grad_keys[:, :end] += of_scores.mT @ queries[:, start:end]
                grad_values[:, :end] += w.mT @ of_context

        return torch.cat(grad_queries, dim=1), grad_keys, grad_values


def _gradients_of_attention(
    queries: Tensor, keys: Tensor, values: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of causal attention from that of its context vectors, all ``(n, T, d)``, by
    functions that torch can differentiate."""
    weights = attention_weights(queries, keys, mask=causal_mask(queries.shape[-2]))  # (n, T, T)
    of_weights = grad @ values.mT  # (n, T, T)
    mean = (weights * of_weights).sum(dim=-1, keepdim=True)  # (n, T, 1)
    of_scores = weights * (of_weights - mean) / math.sqrt(queries.shape[-1])  # (n, T, T)
    return of_scores @ keys, of_scores.mT @ queries, weights.mT @ grad


class _LinearCrossEntropy(torch.autograd.Function):
    """The gradients are computed with the loss, from the same few rows of logits."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
        narrow = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype
        wide = torch.promote_types(narrow, torch.float32)
        given = (x, weight, targets)
        x = x.to(narrow)
        weight = weight.to(narrow)

        total = torch.zeros((), dtype=wide)
        grads = []  # of x
        grad_weight = torch.zeros_like(weight, dtype=wide)
        rows = max(_LOGITS // len(weight), _LEAST_ROWS)
        for xs, ts in zip(x.split(rows), targets.split(rows), strict=True):
            logits = (xs @ weight.mT).to(wide)  # (rows, V)
            right = logits.gather(1, ts.unsqueeze(1)).squeeze(1)
            highest = logits.amax(dim=1)
            p = torch.softmax(logits, 1, out=logits)
            total += (highest - p.amax(dim=1).log() - right).sum()  # the highest p is exp(0) / sum

            p.scatter_add_(1, ts.unsqueeze(1), p.new_full((len(ts), 1), -1.0))
            p = p.to(narrow)  # (rows, V): the gradient of the logits
            grads.append(p @ weight)
            if narrow == wide:
                grad_weight.addmm_(p.mT, xs)
            else:
                grad_weight += p.mT @ xs

        ctx.narrow = narrow
        ctx.save_for_backward(*given, torch.cat(grads), grad_weight)
        return total / len(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        x, weight, targets, grad_x, grad_weight = ctx.saved_tensors
        grad = grad / len(x)
        if not _must_be_differentiable():
            return grad_x * grad, grad_weight * grad, None

        narrow = ctx.narrow
        with torch.autocast("cpu", enabled=False):
            of_x, of_weight = _gradients_of_logits(x.to(narrow), weight.to(narrow), targets, grad)
        return of_x, of_weight, None


def _gradients_of_logits(
    x: Tensor, weight: Tensor, targets: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of the sum of cross-entropies, times `grad`, with respect to x ``(n, d)`` and
    weight ``(V, d)``, by functions that torch can differentiate."""
    logits = x @ weight.mT  # (n, V)
    p = logits.to(torch.promote_types(x.dtype, torch.float32)).softmax(dim=1)  # (n, V)
    ones = p.new_ones(len(targets), 1)
    of_logits = p.scatter_add(1, targets.unsqueeze(1), -ones) * grad  # (n, V)
    of_logits = of_logits.to(x.dtype)
    return of_logits @ weight, of_logits.mT @ x
