"""One step of a training: it draws a batch, sets the gradients of its loss (gradients.py), and has
the optimizers change the weights. It waits for nothing on the device. So on a GPU of NVIDIA it can
be recorded as a graph (captured.py), and its figures are fetched while the next one is computed.
"""

import contextlib
import hashlib
import math
from collections.abc import Iterator, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from .. import UserError
from ..config import GPT_NAME, TrainConfig
from ..data.batches import Batch, Batches, sent
from ..runs.weights import saved_name
from . import distributed, workers
from .captured import CapturedStep, say_not_captured, why_not_captured
from .checkpoint import Learner, TrainingState
from .compilation import compile_for_training
from .gradients import BatchResult, set_gradients
from .loss import Diverged, Loss, LossFunction, check_growth, smoothed
from .optimizer import PEAK
from .precision import STEPS_TO_DOUBLE, dtype_of
from .schedule import Schedule, rise_and_fall


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
        # Code of somebody else that runs between steps: a network also in evaluations and samples.
        self._has_own_code = schedule is not None or saved_name(learner.model) != GPT_NAME
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

    def step(self, state: TrainingState, done: float, *, is_unchanged: bool = False) -> StartedStep:
        """Start a step; `done` is the share of the training that lies before it, 0 to 1. It counts
        as taken at once; then :meth:`finish` tells how it went.

        With `is_unchanged` no callback has run since the last step that could have changed the
        model, its loss or an optimizer.

        Raises:
            UserError: if the schedule or the loss returns what it must not.
            Diverged: if the loss or a gradient is not finite, where that is known at once: on all
                devices but GPUs of NVIDIA. Then the step has not been taken.
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
        if self._captured is not None:
            figures = self._captured(parts, is_unchanged and not self._has_own_code)
        else:
            figures = self._gradients_of(state, parts)
            if not figures.is_cuda:  # they are there: weights that are fine stay so
                BatchResult.of(figures).check()
            self._change_weights()

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
            result.check()
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

    def _gradients_of(self, state: TrainingState, parts: list[Batch]) -> Tensor:
        """Set the gradients of a step; its figures. In float16 the loss is scaled, and the scale is
        halved until all gradients are finite, or it is 1."""
        if self._config.precision != "float16":
            return self._set_gradients(parts)
        if state.step - state.scaled_since >= STEPS_TO_DOUBLE:
            state.rescale(2.0)

        figures = self._set_gradients(parts, scale=state.loss_scale)
        while state.loss_scale > 1.0 and not math.isfinite(BatchResult.of(figures).gradient_norm):
            state.rescale(0.5)
            self._model.zero_grad()
            seed_step(self._config, state.step)
            figures = self._set_gradients(parts, scale=state.loss_scale)
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
