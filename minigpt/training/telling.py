"""Keeps the figures of a training up to date, and tells them to its callbacks and its journal."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import distributed
from .callbacks import CallbackList
from .evaluation import Evaluation
from .gradients import BatchResult
from .limits import Speedometer, TrainingLimits
from .picture import EXPECTED

if TYPE_CHECKING:
    from .trainer import Trainer


class Telling:
    """Tells callbacks how a training goes, from its beginning to its end; the journal is told that
    it begins."""

    def __init__(self, trainer: "Trainer", callbacks: Sequence[object], limits: TrainingLimits):
        self.callbacks = CallbackList(callbacks, distributed.is_main())
        self._trainer = trainer
        self._limits = limits
        self._speedometer = Speedometer(trainer.tokens_per_step)

    def begin(self) -> None:
        """Training begins: the journal is told when the minutes will be over, and how good the
        model is expected to become."""
        trainer = self._trainer
        if trainer.journal is None:
            return

        ends = None
        if trainer.config.steps is None:
            left = trainer.started + 60 * trainer.config.minutes - time.monotonic()
            ends = round(time.time() + left, 3)
        expected = trainer.figures.get(EXPECTED)
        trainer.journal.tell("training", ends=ends, expected_bits_per_byte=expected)

    def start(self, done: float) -> None:
        """The first step comes next; a training that is resumed has done a share already."""
        trainer = self._trainer
        state = trainer.state
        if state.step > 0:
            trainer.figures |= {
                "loss": state.train_loss,
                "bits_per_byte": state.train_bits_per_byte,
            }
        self._call("on_start", done)

    def step(self, result: BatchResult) -> None:
        """A step has been taken."""
        trainer = self._trainer
        state = trainer.state
        self._speedometer.note(state.step)
        seconds = self._limits.seconds()
        done = self._limits.done(state.step, seconds)
        trainer.figures |= {
            "loss": result.loss,
            "bits_per_byte": result.bits_per_byte,
            "train_loss": state.train_loss,
            "train_bits_per_byte": state.train_bits_per_byte,
            "learning_rate": trainer.optimizers[0].param_groups[0]["lr"],
            "gradient_norm": result.gradient_norm,
            "tokens_per_second": round(self._speedometer.speed, 1),
            "seconds_left": seconds * (1.0 - done) / max(done, 1e-9),
        }
        self._call("on_step", done)

    def evaluation(self, result: Evaluation, is_kept: bool, done: float) -> None:
        """The weights that are in the model have been evaluated."""
        trainer = self._trainer
        state = trainer.state
        trainer.figures |= {
            "train_loss": state.train_loss,
            "train_bits_per_byte": state.train_bits_per_byte,
            "tokens_per_second": round(self._speedometer.speed, 1),
            "val_loss": result.loss,
            "val_bits_per_byte": result.bits_per_byte,
            "val_right": result.right,
            "is_kept": is_kept,
        }
        self._call("on_evaluation", done)
        self._speedometer.pause()

    def save(self) -> None:
        """A checkpoint has been written."""
        self.callbacks.call("on_save", self._trainer, self._trainer.figures)

    def end(self) -> None:
        """The training has ended, however it did."""
        self.callbacks.call("on_end", self._trainer, self._trainer.figures)

    def _call(self, event: str, done: float) -> None:
        trainer = self._trainer
        trainer.figures["step"] = trainer.state.step
        trainer.figures["seconds"] = round(time.monotonic() - trainer.started, 3)
        trainer.figures["done"] = done if done in (0.0, 1.0) else round(done, 4)
        self.callbacks.call(event, trainer, trainer.figures)
