"""Gradient descent: one step draws a batch, sets the gradients of its loss, and has the optimizers
change the weights.
"""

import contextlib
import math
from collections.abc import Iterator

from torch import Tensor, nn

from .. import UserError
from ..config import TrainConfig
from ..data.batches import Dataset
from . import distributed
from .checkpoint import Learner, TrainingState
from .compilation import prepared
from .divergence import check_finite, check_growth
from .gradients import BatchResult, Part, seed_step, set_gradients, training_batch
from .loss import Loss, LossFunction
from .optimizer import optimized, set_rates
from .precision import STEPS_TO_DOUBLE, dtype_of
from .schedule import Schedule, learning_rate, smoothed


class GradientDescent:
    """Takes the steps of a training, and counts them in its state.

    Args:
        learner: the model, its optimizers and the average of its weights.
        dataset: the tokens to train on.
        config: how to train, with nothing left "auto".
        loss: what to minimise, see `Trainer`; None: the cross-entropy.
        schedule: of the learning rates, see `Trainer`; None: the one of the config.
        context_length: how many tokens the model sees.
        byte_lengths: how many bytes of text each token stands for, ``(vocab_size,)``.
    """

    def __init__(
        self,
        learner: Learner,
        dataset: Dataset,
        config: TrainConfig,
        *,
        loss: LossFunction | None,
        schedule: Schedule | None = None,
        context_length: int,
        byte_lengths: Tensor,
    ):
        self._model = learner.model
        self._average = learner.average
        self._optimizers = learner.optimizers.optimizers
        self._dataset = dataset
        self._config = config
        self._schedule = schedule or self._usual_schedule
        self._context_length = context_length
        self._byte_lengths = byte_lengths
        self._plain_loss = Loss(learner.model, loss)
        self._loss: nn.Module = self._plain_loss  # which is compiled, or DDP's, while under way

    def _usual_schedule(self, done: float) -> float:
        return learning_rate(done, 1.0, self._config.warmup_ratio, self._config.min_lr_ratio)

    @contextlib.contextmanager
    def under_way(self) -> Iterator[None]:
        """Within, steps can be taken: the model is in training mode, and compiled if the config
        says so. Afterwards every learning rate is the highest of its group."""
        self._model.zero_grad()  # gradients that the caller has left would add to the first step's
        if not self._model.training:  # else some parts may be in evaluation mode, and are to stay
            self._model.train()

        with self._plain_loss.watching():
            try:
                early = self._batch(step=0, done=0.0)[0]
                late = self._batch(step=0, done=1.0)[0]
                self._loss = prepared(self._plain_loss, [early, late], self._config)
                yield
            finally:
                self._loss = self._plain_loss  # DDP's would keep its threads until Python ends
                set_rates(self._optimizers, share=1.0)

    def step(self, state: TrainingState, done: float) -> BatchResult:
        """Take one step; `done` is the share of the training that lies before it, 0 to 1.

        Raises:
            UserError: if the schedule or the loss returns what it must not.
            Diverged: if its loss or a gradient is not finite, or the loss has grown.
        """
        share = self._schedule(done)
        if not isinstance(share, int | float):
            raise UserError(f"schedule must return a number, got {type(share).__name__}")
        set_rates(self._optimizers, share)

        if self._config.precision == "float16":
            result = self._scaled_gradients(state, done)
        else:
            result = self._gradients(state, done, scale=1.0)
        check_finite("loss", result.minimised)
        check_finite("loss", result.loss)
        check_finite("gradient", result.gradient_norm)

        for optimizer in self._optimizers:
            optimizer.step()
        self._model.zero_grad()
        self._average.update(state.step)

        _count(result, state)
        check_growth(state.train_loss, state.first_loss, self._dataset.tokenizer.vocab_size)
        return result

    def _scaled_gradients(self, state: TrainingState, done: float) -> BatchResult:
        """Set the gradients of this step's batch, computed in float16. The scale of the loss is
        halved until all gradients are finite, or it is 1."""
        if state.step - state.scaled_since >= STEPS_TO_DOUBLE:
            state.rescale(2.0)

        result = self._gradients(state, done, state.loss_scale)
        while not math.isfinite(result.gradient_norm) and state.loss_scale > 1.0:
            state.rescale(0.5)
            self._model.zero_grad()
            result = self._gradients(state, done, state.loss_scale)
        return result

    def _gradients(self, state: TrainingState, done: float, scale: float) -> BatchResult:
        """Set the gradients of this step's batch."""
        seed_step(self._config.seed, state.step, self._config.device)
        return set_gradients(
            self._loss,
            optimized(self._model, self._optimizers),
            self._batch(state.step, done),
            self._byte_lengths,
            grad_clip=self._config.grad_clip,
            precision=dtype_of(self._config),
            scale=scale,
        )

    def _batch(self, step: int, done: float) -> list[Part]:
        """This process's part of the batch."""
        return training_batch(
            self._dataset,
            self._config,
            self._context_length,
            step=step,
            done=done,
            rows=distributed.share(self._config.batch_size),
        )


def _count(result: BatchResult, state: TrainingState) -> None:
    """A step has been taken."""
    bits = result.bits_per_byte
    if state.step == 0:
        state.first_loss = result.loss
    state.train_loss = smoothed(state.train_loss, result.loss, state.step)
    state.train_bits_per_byte = smoothed(state.train_bits_per_byte, bits, state.step)
    state.step += 1
