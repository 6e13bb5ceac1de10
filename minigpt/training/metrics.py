"""What is written down of a training: a row for each evaluation in metrics.jsonl, and the loss of
single steps in steps.jsonl.
"""

import contextlib
import time
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..runs.folder import (
    COUNTING,
    FIGURES_OF_A_STEP,
    INTERPOLATION,
    METRICS,
    STEPS,
    read_metrics,
    read_steps,
)
from ..runs.json_lines import lines_of
from ..system.atomic import write_text

if TYPE_CHECKING:
    from .trainer import Trainer

_MOST_STEPS = 20_000  # in steps.jsonl: of a longer training every second, every fourth, ...
SECONDS = 1.0  # at least, from one writing of steps.jsonl to the next
_OF_A_STEP = (*FIGURES_OF_A_STEP, "done", "tokens_per_second")
_OF_AN_EVALUATION = (
    "step", "seconds", "train_loss", "train_bits_per_byte", "val_loss", "val_bits_per_byte",
    "val_right", COUNTING, INTERPOLATION, "tokens_per_second", "done",
)  # fmt: skip


class Metrics:
    """A callback that writes both files into the run's folder.

    The rows of steps wait in memory for a second, or until the next evaluation or checkpoint.
    """

    def __init__(self) -> None:
        self._steps: list[dict[str, Any]] = []
        self._written = 0  # of these, to the file
        self._interval = 1  # steps from one row to the next
        self._next = 0.0  # when they are written, by time.monotonic

    def on_start(self, trainer: "Trainer", figures: dict[str, Any]) -> None:
        """In a resumed training, forget the rows of steps that it takes again."""
        if trainer.out is None or trainer.state.step == 0:
            return
        rows = read_steps(trainer.out / STEPS)
        self._steps = [row for row in rows if row["step"] <= trainer.state.step]
        steps = [row["step"] for row in self._steps]
        self._interval = min((b - a for a, b in pairwise(steps)), default=1)

    def on_step(self, trainer: "Trainer", figures: dict[str, Any]) -> None:
        assert trainer.out is not None
        if figures["step"] % self._interval == 0:
            self._steps.append({name: figures[name] for name in _OF_A_STEP})
        if time.monotonic() >= self._next:
            with contextlib.suppress(OSError):  # which the next evaluation tells of
                self._write_steps(trainer.out / STEPS)

    def on_evaluation(self, trainer: "Trainer", figures: dict[str, Any]) -> None:
        """Add a row to metrics.jsonl. Rows of this step and later ones are dropped: they are there
        if the training has gone back to a checkpoint."""
        assert trainer.out is not None
        new = {name: figures[name] for name in _OF_AN_EVALUATION if name in figures}
        path = trainer.out / METRICS
        rows = [row for row in read_metrics(path) if row["step"] < new["step"]]
        trainer.disk.write("the figures", partial(write_text, lines_of([*rows, new]), path))
        self.on_save(trainer, figures)

    def on_save(self, trainer: "Trainer", figures: dict[str, Any]) -> None:
        assert trainer.out is not None
        write = partial(self._write_steps, trainer.out / STEPS)
        trainer.disk.write("the losses of steps", write)

    def _write_steps(self, path: Path) -> None:
        """Add the rows that are not in the file yet. The file is written anew when it becomes too
        long, and the first time, since the end of an earlier file may be half a row."""
        while len(self._steps) > _MOST_STEPS:
            self._interval *= 2
            self._steps = [row for row in self._steps if row["step"] % self._interval == 0]
            self._written = 0

        self._next = time.monotonic() + SECONDS
        is_new = self._written == 0
        lines = lines_of(self._steps[self._written :])
        self._written = 0  # until all is written
        if is_new:
            write_text(lines, path)
        elif lines:
            with open(path, "a", encoding="utf-8") as file:
                file.write(lines)
        self._written = len(self._steps)
