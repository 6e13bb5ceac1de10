"""A callback that keeps the weights of single steps, for whoever studies how a model learns.

The steps are spread evenly on a logarithmic scale, since a model learns most in its first steps.
They begin with step 0, before training, and end with the last one, as those of Pythia do ("Pythia:
A Suite for Analyzing Large Language Models Across Training and Scaling", Biderman et al. 2023).
"""

import contextlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from torch import nn

from ..runs.folder import KEPT, kept_file, kept_steps
from ..runs.weights import save_weights
from .callbacks import Figures, Training
from .loss import Diverged, check_weights


class KeptWeights:
    """Writes weights into the run's folder, `keep` times in all: those that an evaluation after the
    step would be of.

    Attributes:
        steps: the steps whose weights are kept, or could not be written.
    """

    def __init__(self, keep: int):
        self.steps: list[int] = []
        self._keep = keep

    def on_start(self, trainer: Training, figures: Figures) -> None:
        """Keep step 0; of a training that is resumed, forget the steps that it takes again."""
        assert trainer.folder.path is not None
        self.steps = _forget_after(trainer.folder.path, trainer.state.step)
        if not self.steps:
            self._save_average(trainer)

    def on_step(self, trainer: Training, figures: Figures) -> None:
        if figures["done"] >= 1.0:  # an evaluation comes next
            return
        step = trainer.state.step
        last = trainer.config.steps or step / max(figures["done"], 1e-9)  # an estimate, by time
        due = next_step(self.steps, self._keep, last)
        if due is not None and step >= due:
            self._save_average(trainer)

    def on_evaluation(self, trainer: Training, figures: Figures) -> None:
        """Always keep the weights of the last evaluation."""
        if trainer.state.finished:
            self._save(trainer)

    def _save_average(self, trainer: Training) -> None:
        with trainer.averaged():
            self._save(trainer)

    def _save(self, trainer: Training) -> None:
        """Write the weights that the model has now; if that fails, training goes on without."""
        try:
            check_weights(trainer.model)
        except Diverged:  # the next loss says so, and ends the training
            return

        step = trainer.state.step
        trainer.folder.write(
            f"the weights of step {step}",
            partial(_write, trainer.model, step),
            "training goes on without them",
            is_tried_again=False,
        )
        if step not in self.steps:
            self.steps.append(step)


def next_step(kept: Sequence[int], keep: int, last: float) -> int | None:
    """The next step whose weights are to be kept, after those of `kept`, which is not empty.

    There are to be `keep` of them in all, the last one after step `last`. From the newest kept step
    on, they are spread evenly over the logarithm of the step plus 1. None if only the last is left.
    """
    left = keep - len(kept)
    if left <= 1:
        return None
    here = kept[-1] + 1
    ratio = ((last + 1) / here) ** (1 / left)
    return max(here, round(here * ratio) - 1)


def _write(model: nn.Module, step: int, folder: Path) -> None:
    (folder / KEPT).mkdir(exist_ok=True)
    save_weights(model, kept_file(folder, step), step=step)


def _forget_after(folder: Path, step: int) -> list[int]:
    """Remove the weights of later steps; the steps that are left."""
    kept = kept_steps(folder)
    for later in (found for found in kept if found > step):
        with contextlib.suppress(OSError):  # it will be written again
            kept_file(folder, later).unlink()
    return [found for found in kept if found <= step]
