"""The weights that a training keeps at single steps, for whoever studies how a model learns.

The steps are spread evenly on a logarithmic scale, since a model learns most in its first steps.
They begin with step 0, before training, and end with the last one, as those of Pythia do ("Pythia:
A Suite for Analyzing Large Language Models Across Training and Scaling", Biderman et al. 2023).
"""

import contextlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from torch import nn

from .. import UserError
from ..config import TrainConfig
from ..runs.folder import KEPT
from ..runs.kept import kept_file, kept_steps
from ..runs.weights import save_weights
from . import distributed
from .disk import Disk
from .divergence import check_weights


def next_step(kept: Sequence[int], keep: int, steps: float) -> int | None:
    """The next step whose weights are to be kept, after those of `kept`, which is not empty.

    There are to be `keep` of them in all, the last one after `steps`. From the last kept step on,
    they are spread evenly over the logarithm of the step plus 1. None: only the last is left.
    """
    left = keep - len(kept)
    if left <= 1:
        return None
    here = kept[-1] + 1
    ratio = ((steps + 1) / here) ** (1 / left)
    return max(here, round(here * ratio) - 1)


class KeptWeights:
    """Writes the weights of single steps when they are due; none without a folder, or where the
    config keeps none.

    Attributes:
        steps: whose weights are kept, or could not be written.
    """

    def __init__(self, model: nn.Module, disk: Disk, config: TrainConfig):
        if config.keep is not None and disk.folder is None:
            raise UserError("keep is for a training in a folder: give out=")
        self._model = model
        self._folder = disk.folder
        self._disk = disk
        self._keep = config.keep
        self._steps_of_training = config.steps
        self.steps: list[int] = []

    def go_back_to(self, step: int) -> None:
        """Forget the weights of later steps, to which the training has yet to come again."""
        assert self._folder is not None
        self.steps = distributed.on_main(_forget_after, self._folder, step)

    def are_due(self, step: int, done: float) -> bool:
        """Whether to keep those of this step, before which a share of the training was `done`; the
        last ones are always kept."""
        if self._keep is None or self._folder is None:
            return False
        if not self.steps:
            return True
        if step <= self.steps[-1]:
            return False
        steps = self._steps_of_training or step / done  # of a training by time they are an estimate
        due = next_step(self.steps, self._keep, steps)
        return due is not None and step >= due

    def save(self, step: int) -> None:
        """Write the weights that the model has now; if that fails, training goes on without."""
        if self._keep is None or self._folder is None:
            return
        check_weights(self._model)
        distributed.on_main(
            self._disk.write,
            f"the weights of step {step}",
            partial(_write, self._model, self._folder, step),
            "training goes on without them",
            is_tried_again=False,
        )
        if step not in self.steps:
            self.steps.append(step)


def _write(model: nn.Module, folder: Path, step: int) -> None:
    (folder / KEPT).mkdir(exist_ok=True)
    save_weights(model, kept_file(folder, step), step=step)


def _forget_after(folder: Path, step: int) -> list[int]:
    """Remove the weights of later steps; the steps that are left."""
    steps = kept_steps(folder)
    for later in (found for found in steps if found > step):
        with contextlib.suppress(OSError):  # it will be written again
            kept_file(folder, later).unlink()
    return [found for found in steps if found <= step]
