"""What a batch teaches: the gradients of its loss, clipped, for the optimizers to follow, and a few
figures. Nothing here waits for the device but :meth:`BatchResult.of`, so that a step (step.py) can
be recorded on a GPU.
"""

import contextlib
import math
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from ..data.batches import Batch
from . import distributed, workers
from .loss import check_finite, check_minimised
from .precision import autocast


@dataclass(frozen=True)
class BatchResult:
    """What a forward and a backward pass over a batch told."""

    minimised: float  # the loss whose gradients these are
    loss: float  # the cross-entropy in nats a token
    bits_per_byte: float  # the same in bits for each byte that the targets stand for
    gradient_norm: float  # before clipping

    @classmethod
    def of(cls, figures: Tensor) -> Self:
        """What :func:`set_gradients` told, ``(5,)``. Waits until the device has computed it."""
        minimised, cross_entropy, count, size, gradient_norm = figures.tolist()
        bytes_per_token = max(size, 1.0) / max(count, 1.0)
        return cls(
            minimised=minimised,
            loss=cross_entropy,
            bits_per_byte=cross_entropy / math.log(2) / bytes_per_token,
            gradient_norm=gradient_norm,
        )

    def check(self) -> None:
        """Raise Diverged if a loss or the gradient is not finite."""
        check_finite("loss", self.minimised)
        check_finite("loss", self.loss)
        check_finite("gradient", self.gradient_norm)


def set_gradients(
    loss: nn.Module,
    parameters: list[nn.Parameter],
    parts: list[Batch],
    byte_lengths: Tensor,
    *,
    grad_clip: float,
    precision: torch.dtype,
    scale: float = 1.0,
) -> Tensor:
    """Set the clipped gradients of the mean loss over all targets that count, of all processes.

    Args:
        loss: a :class:`Loss`, or what DDP makes of one.
        parameters: those to train.
        parts: of this process's rows, which are as many as those of each other process.
        byte_lengths: how many bytes of text each token stands for, ``(vocab_size,)``.
        grad_clip: the largest norm that the gradients are left with.
        precision: of the matrix products.
        scale: that losses are multiplied by while their gradients are computed.

    Returns:
        Five numbers ``(5,)`` on the device, from which :meth:`BatchResult.of` is made: the loss
        that is minimised, the cross-entropy, how many targets count and for how many bytes of text
        they stand, and the norm of the gradients before clipping. Nothing here waits for them.
    """
    targets = torch.cat([targets.flatten() for _, targets in parts])  # (n,)
    is_counted = targets >= 0  # (n,)
    count = is_counted.sum()
    size = (byte_lengths[targets.clamp(min=0)] * is_counted).sum()

    processes = distributed.world_size()
    # How many targets count in all processes is not known yet. Each divides by the same number.
    divisor = count if processes == 1 else torch.full_like(count, len(targets))
    divisor = divisor.clamp(min=1)
    totals = _add_gradients(loss, parameters, parts, divisor, precision=precision, scale=scale)

    sums = torch.cat([totals, torch.stack([count, size]).to(totals)])  # (4,)
    distributed.add_up(sums)
    # Exactly 1 for a single process. (A number divided by a tensor would be rounded twice.)
    correction = divisor.to(sums) / sums[2].clamp(min=1.0)

    if processes > 1 or scale != 1.0:  # DDP has divided the gradients by the processes
        gradients = [p.grad for p in parameters if p.grad is not None]
        torch._foreach_mul_(gradients, correction * processes / scale)
    norm = nn.utils.clip_grad_norm_(parameters, grad_clip)

    minimised, cross_entropy = sums[:2] * correction
    losses = torch.stack([minimised / scale, cross_entropy])
    return torch.cat([losses, sums[2:], norm[None]])


def _add_gradients(
    loss: nn.Module,
    parameters: list[nn.Parameter],
    parts: list[Batch],
    divisor: Tensor,
    *,
    precision: torch.dtype,
    scale: float,
) -> Tensor:
    """Set the gradients of the sum of the parts' losses, each of a target divided by `divisor`.
    Returns that sum and the one of cross-entropies, of this process's parts, ``(2,)``."""
    device = parameters[0].device

    def losses_of(part: Batch) -> tuple[Tensor, Tensor]:
        inputs, targets = part  # each (b, T)
        with autocast(device, precision):
            minimised, cross_entropy = loss(inputs, targets)
            check_minimised(minimised)

            count = (targets >= 0).sum()
            return (
                _weighted(minimised, count, divisor, scale=scale),
                _weighted(cross_entropy, count, divisor),
            )

    if workers.count() > 1:
        return workers.backward(losses_of, parameters, parts)

    totals = torch.zeros(2, device=device)
    for number, part in enumerate(parts, start=1):
        is_last = number == len(parts)  # then other processes add the gradients of all parts
        with contextlib.nullcontext() if is_last else distributed.not_yet_reduced(loss):
            minimised, cross_entropy = losses_of(part)
            minimised.backward()
        totals += torch.stack([minimised.detach(), cross_entropy])
    return totals


def _weighted(loss: Tensor, count: Tensor, divisor: Tensor, *, scale: float = 1.0) -> Tensor:
    """A loss times `scale` x `count` / `divisor`, rounded as if that were a number in Python."""
    wide = torch.promote_types(loss.dtype, torch.float32)
    share = count.to(wide) / divisor
    return (loss * (share * scale)).to(loss.dtype)
