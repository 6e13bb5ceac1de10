"""The batch of a training step, and the gradients of its loss."""

import hashlib
import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..config import TrainConfig
from ..data.batches import Dataset, sample_batch
from . import distributed, workers
from .loss import check_minimised
from .precision import autocast
from .schedule import EARLY

Part = tuple[Tensor, Tensor]  # inputs and targets, each (b, T)


def training_batch(
    dataset: Dataset,
    config: TrainConfig,
    context_length: int,
    *,
    step: int,
    done: float,
    rows: slice = slice(None),
) -> list[Part]:
    """Inputs and targets ``(b, T)`` of some rows of a training step's batch, in parts that are
    computed in turn or by workers. Near the end, tokens are not split and windows not cut.
    """
    is_early = done < EARLY
    split_prob = config.token_split_prob if is_early else 0.0
    tokens = dataset.train if dataset.marked_train is None else dataset.marked_train
    inputs, targets = sample_batch(
        tokens,
        config.batch_size,
        context_length,
        seed=config.seed,
        step=step,
        rows=rows,
        splitter=dataset.token_splitter if split_prob else None,
        split_prob=split_prob,
    )

    at_once = min(config.micro_batch_size or len(inputs), len(inputs))
    at_once = math.ceil(at_once / workers.count())
    length = context_length
    if is_early and config.warmup_context:
        length = config.warmup_context
    parts = zip(inputs.split(at_once), targets.split(at_once), strict=True)
    return [(_cut(x, length), _cut(y, length)) for x, y in parts]


def _cut(batch: Tensor, length: int) -> Tensor:
    """Windows ``(b, T)`` cut into k pieces of `length` at most: ``(b k, T // k)``. The last tokens
    of a window are left out where k does not divide T."""
    b, T = batch.shape
    k = math.ceil(T / length)
    return batch[:, : T - T % k].reshape(b * k, T // k)


def seed_step(seed: int, step: int, device: str) -> None:
    """Seed dropout by the step and the process. A training that is resumed draws the same numbers,
    so that no random state has to be kept."""
    place = f"{seed} {step} {distributed.rank()}"
    digest = hashlib.sha256(place.encode()).digest()
    number = int.from_bytes(digest[:8], "little")
    if device == "cpu":  # torch.manual_seed notes a stack trace for each kind of absent device
        torch.default_generator.manual_seed(number)
    else:
        torch.manual_seed(number)


@dataclass(frozen=True)
class BatchResult:
    """What a forward and a backward pass over a batch told."""

    minimised: float  # the loss whose gradients these are
    loss: float  # the cross-entropy in nats a token
    gradient_norm: float  # before clipping
    bytes_per_token: float  # of text, on average over the targets

    @property
    def bits_per_byte(self) -> float:
        """The cross-entropy in bits for each byte that the tokens stand for."""
        return self.loss / math.log(2) / self.bytes_per_token


def set_gradients(
    loss: nn.Module,
    parameters: list[nn.Parameter],
    parts: list[Part],
    byte_lengths: Tensor,
    *,
    grad_clip: float,
    precision: torch.dtype,
    scale: float = 1.0,
) -> BatchResult:
    """Set the clipped gradients of the mean loss over the batch of all ranks.

    Args:
        loss: a :class:`Loss`, or what DDP makes of one.
        parameters: those to train.
        parts: of this rank's batch; each is weighted by its number of targets that are not IGNORED.
        byte_lengths: how many bytes of text each token stands for, ``(vocab_size,)``.
        grad_clip: the largest norm that the gradients are left with.
        precision: of the matrix products.
        scale: that losses are multiplied by while their gradients are computed.
    """
    device = parameters[0].device
    counted = torch.cat([targets[targets >= 0] for _, targets in parts])  # those of the loss, (n,)
    (mean_count,) = distributed.mean(len(counted))  # over ranks, as gradients are averaged
    count = max(mean_count, 1 / distributed.world_size())

    def losses_of(part: Part) -> tuple[Tensor, Tensor]:
        inputs, targets = (ids.to(device) for ids in part)  # each (b, T)
        share = int((part[1] >= 0).sum()) / count
        with autocast(device, precision):
            minimised, cross_entropy = loss(inputs, targets)
            check_minimised(minimised)
            return minimised * (share * scale), cross_entropy * share

    if workers.count() > 1:
        totals = workers.backward(losses_of, parameters, parts)  # (2,)
    else:
        totals = torch.zeros(2, device=device)
        for part in parts:
            minimised, cross_entropy = losses_of(part)
            minimised.backward()
            totals += torch.stack([minimised.detach(), cross_entropy])

    if scale != 1.0:
        gradients = [p.grad for p in parameters if p.grad is not None]
        torch._foreach_mul_(gradients, 1 / scale)
    norm = nn.utils.clip_grad_norm_(parameters, grad_clip)
    found = torch.cat([totals, norm[None]]).tolist()  # one wait for the device

    size = max(int(byte_lengths[counted].sum()), 1)
    minimised, cross_entropy, gradient_norm = found
    means = distributed.mean(minimised / scale, cross_entropy, size / count)
    return BatchResult(means[0], means[1], gradient_norm, means[2])
