"""What is told of a training while it goes on, and to whom.

A callback is an object with any of these methods, each of which gets the trainer and its figures:

    on_start        before the first step
    on_step         after each step
    on_evaluation   after each evaluation; the model is in evaluation mode and has the weights
                    that were evaluated
    on_save         after each checkpoint
    on_end          when the training ends, however it ends

The figures are a dict; its keys are those of metrics.jsonl and more, see `Trainer.figures`.

On a GPU a callback with ``hears_late = True`` may get a step's figures while the next step is
computed already, by which training is faster: it looks at the figures alone, not at the weights.

An error that a callback raises ends the training, once that is saved. If the callback has
``only_reports = True``, a line says what failed, and the training goes on without the callback.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from .. import UserError
from ..config import TrainConfig
from ..data.batches import Batches, Dataset
from .checkpoint import TrainingState
from .folder import RunFolder
from .messages import say

Figures = dict[str, Any]

_EVENTS = ("on_start", "on_step", "on_evaluation", "on_save", "on_end")


class Training(Protocol):
    """What a callback can see of a training: a `Trainer`.

    Attributes:
        model: the network that is trained.
        dataset: what it is trained and validated on.
        batches: the windows of it that are trained and evaluated on.
        config: how, with nothing left "auto".
        folder: writes into the run's folder what a callback has made.
        state: how far the training has come.
        figures: what is known of it, see `Trainer`.
        device: that the model is on.
        context_length: how many tokens the model sees.
        tokens_per_step: how many tokens are in a batch.
        vocab_size: how many tokens there are.
        byte_lengths: how many bytes of text each token stands for, ``(vocab_size,)``.
        started: when it began, in time.monotonic's seconds, as if there had been no interruption.
    """

    model: nn.Module
    dataset: Dataset
    batches: Batches
    config: TrainConfig
    folder: RunFolder
    state: TrainingState
    figures: Figures
    device: torch.device
    context_length: int
    tokens_per_step: int
    vocab_size: int
    byte_lengths: Tensor
    started: float

    def averaged(self) -> AbstractContextManager[None]:
        """Within, the model has the weights that an evaluation is of."""


class StopTraining(Exception):
    """Raised by a callback, it ends the training as if its time were over: with a last evaluation,
    saved and finished."""


def check_callbacks(callbacks: Sequence[object]) -> None:
    """Refuse what would never be called: an object with none of the methods, or a method whose name
    is mistyped."""
    events = ", ".join(_EVENTS)
    if not isinstance(callbacks, Iterable):
        raise UserError("callbacks is a list: put the callback in brackets")
    for callback in callbacks:
        methods = [name for name in dir(callback) if name.startswith("on_")]
        name = type(callback).__name__
        if not methods:
            raise UserError(f"callback {name} has none of the methods {events}")
        unknown = [method for method in methods if method not in _EVENTS]
        if unknown:
            raise UserError(f"callback {name} has the method {unknown[0]}; there are {events}")


class CallbackList:
    """Calls callbacks in their order, and keeps the first error that ends the training. A callback
    that has raised an error is called only once more, at the end.

    Rank 0 calls all callbacks. The other ranks call those that have ``all_ranks = True``: a
    callback that changes the model has to change it on every rank.

    Attributes:
        may_hear_late: whether no callback minds to be told of a step when the next has begun.
        may_have_changed_something: whether one was called, since this was last set to False, that
            may do more than look at figures.
        wants_stop: whether a callback has raised StopTraining.
        failure: the first error of a callback that does not only report.
        failed: the name of that callback and the event, such as "CSV.on_step".
    """

    def __init__(self, callbacks: Sequence[object], is_main: bool):
        self.may_have_changed_something = True
        self.wants_stop = False
        self.failure: Exception | None = None
        self.failed = ""
        self._callbacks = [c for c in callbacks if is_main or getattr(c, "all_ranks", False)]
        self._broken: list[object] = []
        # Of all callbacks, so that every rank goes on alike.
        of_steps = [c for c in callbacks if hasattr(c, "on_step")]
        self.may_hear_late = all(getattr(c, "hears_late", False) for c in of_steps)

    def call(self, event: str, trainer: Training) -> None:
        """Call the method of this name of every callback that has it."""
        for callback in self._callbacks:
            method = getattr(callback, event, None)
            is_broken = any(callback is broken for broken in self._broken)
            if method is None or (is_broken and event != "on_end"):
                continue

            if not getattr(callback, "hears_late", False):
                self.may_have_changed_something = True
            try:
                method(trainer, trainer.figures)
            except StopTraining:
                self.wants_stop = True
            except Exception as error:
                self._broken.append(callback)
                failed = f"{type(callback).__name__}.{event}"
                if getattr(callback, "only_reports", False):
                    say(f"{_described(failed, error)}; the training goes on without it")
                elif self.failure is None:
                    self.failure = error
                    self.failed = failed

    def told_failure(self, kept_in: Path | None, can_resume: bool) -> Exception:
        """The error to raise when a callback has failed, in this process or another. If it was in
        this one, a line first says which callback failed and, if the run is kept in a folder, where
        that is and whether the run can be resumed."""
        if self.failure is None:
            return UserError("a callback failed in another process")

        line = _described(self.failed, self.failure)
        if kept_in is not None:
            line += f"; the run is kept in {kept_in}"
            if can_resume:
                line += " and can be resumed"
        say(line)
        return self.failure


def _described(failed: str, error: Exception) -> str:
    return f"callback {failed} failed: {type(error).__name__}: {error}"
