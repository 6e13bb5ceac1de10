"""One step of a training: it draws a batch, sets the gradients of its loss, and has the optimizers
change the weights.

What it computes waits for nothing on the device. So on a GPU of NVIDIA captured.py can record it as
a graph, and the step's own figures are fetched while the next one is computed.
"""

import contextlib
import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from .. import UserError
from ..config import TrainConfig
from ..data.batches import Batch, Batches, sent
from . import distributed, workers
from .captured import CapturedStep, say_not_captured, why_not_captured
from .checkpoint import Learner, TrainingState
from .compilation import compile_for_training
from .loss import Diverged, Loss, LossFunction, check_finite, check_growth, check_minimised
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


class StartedStep:
    """A step that a GPU may still be computing: the figures that :func:`set_gradients` returned are
    on their way to the main memory.

    Attributes:
        number: of the step, from 1.
        learning_rate: of the first group of parameters.
        is_computed_later: whether the device goes on by itself while this process does other work.
    """

    def __init__(self, number: int, learning_rate: float, figures: Tensor):
        self.number = number
        self.learning_rate = learning_rate
        self.is_computed_later = figures.is_cuda
        self._figures = figures
        if self.is_computed_later:
            self._figures = figures.to("cpu", non_blocking=True)
            self._are_there = torch.cuda.current_stream(figures.device).record_event()

    def result(self) -> BatchResult:
        """Wait until it is computed."""
        if self.is_computed_later:
            self._are_there.synchronize()
        return BatchResult.of(self._figures)


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
        self._device = next(learner.model.parameters()).device
        self._byte_lengths = byte_lengths.to(self._device)
        self._plain_loss = Loss(learner.model, loss, all_count=batches.all_count)
        self._loss: nn.Module = self._plain_loss  # which is compiled, or DDP's, while under way
        self._captured: CapturedStep | None = None  # on a GPU of NVIDIA, while under way

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
                if self._device.type == "cuda" or self._config.compile == "on":
                    # All shapes that there will be: code is compiled for each of them.
                    parts = [self.parts(step=0, done=done)[0] for done in (0.0, 1.0)]
                    compile_for_training(self._plain_loss, self._loss, parts, self._config)
                if self._device.type == "cuda":
                    self._captured = self._to_be_captured()
                yield
            finally:
                self._captured = None  # a graph keeps its memory
                self._loss = self._plain_loss  # DDP's would keep its threads until Python ends
                _set_rates(self._optimizers, share=1.0)

    def _to_be_captured(self) -> CapturedStep | None:
        """The step, to be recorded on a GPU; None, and a line, if that cannot be."""
        problem = why_not_captured(self._config.precision)
        if problem is None:
            return CapturedStep(self.update, self._plain_loss, self._optimizers)
        say_not_captured(problem)
        return None

    def step(self, state: TrainingState, done: float) -> StartedStep:
        """Start a step; `done` is the share of the training that lies before it, 0 to 1. It counts
        as taken at once; then :meth:`finish` tells how it went.

        Raises:
            UserError: if the schedule or the loss returns what it must not.
        """
        share = self._schedule(done)
        if not isinstance(share, int | float):
            raise UserError(f"schedule must return a number, got {type(share).__name__}")
        _set_rates(self._optimizers, share)
        parts = [
            (sent(inputs, self._device), sent(targets, self._device))
            for inputs, targets in self.parts(state.step, done)
        ]

        seed_step(self._config, state.step)
        if self._config.precision == "float16":
            figures = self._update_in_float16(state, parts)
        elif self._captured is not None:
            figures = self._captured(parts)
        else:
            figures = self.update(parts)

        self._average.update(state.step)
        state.step += 1
        return StartedStep(state.step, self._optimizers[0].param_groups[0]["lr"], figures)

    def finish(self, state: TrainingState, started: StartedStep) -> BatchResult:
        """Wait for a step, and note in the state how it went.

        Raises:
            Diverged: if its loss or a gradient is not finite, or the loss has grown. For one that
                is not finite, the state then says that the step has not been taken.
        """
        result = started.result()
        before = started.number - 1
        try:
            check_finite("loss", result.minimised)
            check_finite("loss", result.loss)
            check_finite("gradient", result.gradient_norm)
        except Diverged:
            state.step = before
            raise

        if before == 0:
            state.first_loss = result.loss
        state.train_loss = smoothed(state.train_loss, result.loss, before)
        state.train_bits_per_byte = smoothed(
            state.train_bits_per_byte, result.bits_per_byte, before
        )
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

    def update(self, parts: list[Batch]) -> Tensor:
        """Learn from a batch in parts that lie on the device, at the rates that the optimizers have
        now. Returns the figures of :func:`set_gradients`, and waits for nothing."""
        figures = self._set_gradients(parts)
        self._change_weights()
        return figures

    def _update_in_float16(self, state: TrainingState, parts: list[Batch]) -> Tensor:
        """The same with a loss that is scaled: the scale is halved until all gradients are finite,
        or it is 1."""
        if state.step - state.scaled_since >= STEPS_TO_DOUBLE:
            state.rescale(2.0)

        figures = self._set_gradients(parts, scale=state.loss_scale)
        while state.loss_scale > 1.0 and not math.isfinite(BatchResult.of(figures).gradient_norm):
            state.rescale(0.5)
            self._model.zero_grad()
            seed_step(self._config, state.step)
            figures = self._set_gradients(parts, scale=state.loss_scale)

        self._change_weights()
        return figures

    def _set_gradients(self, parts: list[Batch], scale: float = 1.0) -> Tensor:
        # The parameters that the optimizers change, in the model's order.
        groups = [group for optimizer in self._optimizers for group in optimizer.param_groups]
        held = {parameter for group in groups for parameter in group["params"]}
        return set_gradients(
            self._loss,
            [parameter for parameter in self._model.parameters() if parameter in held],
            parts,
            self._byte_lengths,
            grad_clip=self._config.grad_clip,
            precision=dtype_of(self._config),
            scale=scale,
        )

    def _change_weights(self) -> None:
        for optimizer in self._optimizers:
            optimizer.step()
        self._model.zero_grad()


def seed_step(config: TrainConfig, step: int) -> None:
    """Seed what a step draws, dropout for example, by the step and the process. A training that is
    resumed draws the same numbers, so that no random state has to be kept."""
    place = f"{config.seed} {step} {distributed.rank()}"
    digest = hashlib.sha256(place.encode()).digest()
    seed = int.from_bytes(digest[:8], "little")

    # torch.manual_seed notes a stack trace for each kind of absent device, which takes long.
    if config.device == "cpu":
        torch.default_generator.manual_seed(seed)
    elif config.device.startswith("cuda"):
        torch.default_generator.manual_seed(seed)
        torch.cuda.manual_seed_all(seed)
    else:
        torch.manual_seed(seed)


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

            share = ((targets >= 0).sum() / divisor).to(minimised)
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
