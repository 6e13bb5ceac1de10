"""One step of a training: it draws a batch, sets the gradients of its loss, and has the optimizers
change the weights.
"""

import contextlib
import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from .. import UserError
from ..config import TrainConfig
from ..data.batches import Batch, Batches
from . import distributed, workers
from .checkpoint import Learner, TrainingState
from .compilation import compile_for_training
from .loss import Loss, LossFunction, check_finite, check_growth, check_minimised
from .optimizer import PEAK
from .precision import STEPS_TO_DOUBLE, autocast, dtype_of
from .schedule import Schedule, rise_and_fall, smoothed


@dataclass(frozen=True)
class BatchResult:
    """What a forward and a backward pass over a batch told."""

    minimised: float  # the loss whose gradients these are
    loss: float  # the cross-entropy in nats a token
    bits_per_byte: float  # the same in bits for each byte that the targets stand for
    gradient_norm: float  # before clipping


class GradientDescent:
    """Takes the steps of a training, and counts them in its state.

    Args:
        learner: the model, its optimizers and the average of its weights.
        batches: what it learns from.
        config: how to train, with nothing left "auto".
        loss: what to minimise, see `Trainer`; None: the cross-entropy.
        schedule: of the learning rates, see `Trainer`; None: the one of the config.
        byte_lengths: how many bytes of text each token stands for, ``(vocab_size,)``.
    """

    def __init__(
        self,
        learner: Learner,
        batches: Batches,
        config: TrainConfig,
        *,
        loss: LossFunction | None,
        schedule: Schedule | None = None,
        byte_lengths: Tensor,
    ):
        self._model = learner.model
        self._average = learner.average
        self._optimizers = learner.optimizers
        self._batches = batches
        self._config = config
        self._schedule: Schedule = schedule or partial(
            rise_and_fall,
            warmup_ratio=config.warmup_ratio,
            min_lr_ratio=config.min_lr_ratio,
        )
        self._byte_lengths = byte_lengths
        self._plain_loss = Loss(learner.model, loss)
        self._loss: nn.Module = self._plain_loss  # which is compiled, or DDP's, while under way

    @contextlib.contextmanager
    def under_way(self) -> Iterator[None]:
        """Within, steps can be taken: the model is in training mode, and compiled if the config
        says so. Afterwards every learning rate is the highest of its group."""
        self._model.zero_grad()  # gradients that the caller has left would add to the first step's
        if not self._model.training:  # else some parts may be in evaluation mode, and are to stay
            self._model.train()

        with self._plain_loss.watching():
            try:
                self._loss = distributed.synchronised(self._plain_loss)
                is_on_gpu = next(self._model.parameters()).is_cuda
                if is_on_gpu or self._config.compile == "on":
                    # All shapes that there will be: code is compiled for each of them.
                    parts = [self.parts(step=0, done=done)[0] for done in (0.0, 1.0)]
                    compile_for_training(self._plain_loss, self._loss, parts, self._config)
                yield
            finally:
                self._loss = self._plain_loss  # DDP's would keep its threads until Python ends
                _set_rates(self._optimizers, share=1.0)

    def step(self, state: TrainingState, done: float) -> BatchResult:
        """Take one step; `done` is the share of the training that lies before it, 0 to 1.

        Raises:
            UserError: if the schedule or the loss returns what it must not.
            Diverged: if its loss or a gradient is not finite, or the loss has grown.
        """
        share = self._schedule(done)
        if not isinstance(share, int | float):
            raise UserError(f"schedule must return a number, got {type(share).__name__}")
        _set_rates(self._optimizers, share)
        result = self._gradients(state, self.parts(state.step, done))
        check_finite("loss", result.minimised)
        check_finite("loss", result.loss)
        check_finite("gradient", result.gradient_norm)

        for optimizer in self._optimizers:
            optimizer.step()
        self._model.zero_grad()
        self._average.update(state.step)

        step = state.step
        if step == 0:
            state.first_loss = result.loss
        state.train_loss = smoothed(state.train_loss, result.loss, step)
        state.train_bits_per_byte = smoothed(state.train_bits_per_byte, result.bits_per_byte, step)
        state.step = step + 1
        check_growth(state.train_loss, state.first_loss, vocab_size=len(self._byte_lengths))
        return result

    def parts(self, step: int, done: float) -> list[Batch]:
        """This process's rows of the batch, in parts that are computed in turn or by workers."""
        rows = distributed.share(self._config.batch_size)
        inputs, targets = self._batches.batch(step, done, rows)

        windows = rows.stop - rows.start
        at_once = min(self._config.micro_batch_size or windows, windows)
        at_once = math.ceil(at_once / workers.count())
        at_once *= len(inputs) // windows  # each window may have been cut into several
        return list(zip(inputs.split(at_once), targets.split(at_once), strict=True))

    def _gradients(self, state: TrainingState, parts: list[Batch]) -> BatchResult:
        """Set the clipped gradients of a step. In float16 the loss is scaled, and the scale is
        halved until all gradients are finite, or it is 1."""
        is_scaled = self._config.precision == "float16"
        if is_scaled and state.step - state.scaled_since >= STEPS_TO_DOUBLE:
            state.rescale(2.0)

        # The parameters that the optimizers change, in the model's order.
        groups = [group for optimizer in self._optimizers for group in optimizer.param_groups]
        held = {parameter for group in groups for parameter in group["params"]}
        trained = [parameter for parameter in self._model.parameters() if parameter in held]

        # Dropout is seeded by the step and the process. A training that is resumed draws the same
        # numbers, so that no random state has to be kept.
        place = f"{self._config.seed} {state.step} {distributed.rank()}"
        digest = hashlib.sha256(place.encode()).digest()
        seed = int.from_bytes(digest[:8], "little")
        while True:
            if self._config.device == "cpu":
                torch.default_generator.manual_seed(seed)
            else:  # this notes a stack trace for each kind of absent device, which takes long
                torch.manual_seed(seed)
            result = set_gradients(
                self._loss,
                trained,
                parts,
                self._byte_lengths,
                grad_clip=self._config.grad_clip,
                precision=dtype_of(self._config),
                scale=state.loss_scale if is_scaled else 1.0,
            )
            is_too_large = is_scaled and not math.isfinite(result.gradient_norm)
            if not is_too_large or state.loss_scale <= 1.0:
                return result
            state.rescale(0.5)
            self._model.zero_grad()


def _set_rates(optimizers: Sequence[Optimizer], share: float) -> None:
    """Give each group a share of its highest rate."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group[PEAK] * share


def set_gradients(
    loss: nn.Module,
    parameters: list[nn.Parameter],
    parts: list[Batch],
    byte_lengths: Tensor,
    *,
    grad_clip: float,
    precision: torch.dtype,
    scale: float = 1.0,
) -> BatchResult:
    """Set the clipped gradients of the mean loss over all targets that count, of all processes.

    Args:
        loss: a :class:`Loss`, or what DDP makes of one.
        parameters: those to train.
        parts: of this process's rows, which are as many as those of each other process.
        byte_lengths: how many bytes of text each token stands for, ``(vocab_size,)``.
        grad_clip: the largest norm that the gradients are left with.
        precision: of the matrix products.
        scale: that losses are multiplied by while their gradients are computed.
    """
    counted = torch.cat([targets[targets >= 0] for _, targets in parts])  # (n,)
    processes = distributed.world_size()
    # How many targets count in all processes is not known yet. Each divides by the same number.
    divisor = len(counted) if processes == 1 else sum(targets.numel() for _, targets in parts)
    divisor = max(divisor, 1)
    totals = _add_gradients(loss, parameters, parts, divisor, precision=precision, scale=scale)

    counts = torch.tensor([len(counted), int(byte_lengths[counted].sum())])
    sums = torch.cat([totals, counts.to(totals)])  # (4,)
    distributed.add_up(sums)
    # Exactly 1 for a single process. (A number divided by a tensor would be rounded twice.)
    correction = sums.new_full((), divisor) / sums[2].clamp(min=1.0)

    if processes > 1 or scale != 1.0:  # DDP has divided the gradients by the processes
        gradients = [p.grad for p in parameters if p.grad is not None]
        torch._foreach_mul_(gradients, correction * processes / scale)
    norm = nn.utils.clip_grad_norm_(parameters, grad_clip)

    losses = sums[:2] * correction  # the one that is minimised, which is scaled; cross-entropy
    figures = torch.cat([losses, sums[2:], norm[None]])
    minimised, cross_entropy, count, size, gradient_norm = figures.tolist()  # one wait for a GPU
    bytes_per_token = max(size, 1.0) / max(count, 1.0)
    return BatchResult(
        minimised=minimised / scale,
        loss=cross_entropy,
        bits_per_byte=cross_entropy / math.log(2) / bytes_per_token,
        gradient_norm=gradient_norm,
    )


def _add_gradients(
    loss: nn.Module,
    parameters: list[nn.Parameter],
    parts: list[Batch],
    divisor: int,
    *,
    precision: torch.dtype,
    scale: float,
) -> Tensor:
    """Set the gradients of the sum of the parts' losses, each of a target divided by `divisor`.
    Returns that sum and the one of cross-entropies, of this process's parts, ``(2,)``."""
    device = parameters[0].device

    def losses_of(part: Batch) -> tuple[Tensor, Tensor]:
        inputs, targets = (ids.to(device) for ids in part)  # each (b, T)
        share = int((part[1] >= 0).sum()) / divisor
        with autocast(device, precision):
            minimised, cross_entropy = loss(inputs, targets)
            check_minimised(minimised)
            return minimised * (share * scale), cross_entropy * share

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
