"""What every training tells of itself, by callbacks: a bar, and a line for each evaluation; a row
for each evaluation in metrics.jsonl, and the loss of single steps in steps.jsonl; and the loss over
time as a picture, loss.png, if matplotlib is installed.
"""

import contextlib
import math
import time
import warnings
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from .. import UserError
from ..config import EARLY_UNTIL, TrainConfig, check_log
from ..runs.folder import (
    COUNTING_BITS,
    EXPECTED,
    FIGURES_OF_A_STEP,
    INTERPOLATION,
    METRICS,
    PICTURE,
    STEPS,
    kept_row,
    read_metrics,
    read_steps,
)
from ..system.atomic import replace, write_text
from ..system.json_objects import lines_of
from ..system.shown import in_utf8
from .callbacks import Figures, Training
from .folder import RunFolder
from .kept import KeptWeights
from .loggers import LOGGERS
from .messages import bar, clock, say

_MOST_STEPS = 20_000  # in steps.jsonl: of a longer training every second, every fourth, ...
SECONDS = 1.0  # at least, from one writing of steps.jsonl to the next
_OF_A_STEP = (*FIGURES_OF_A_STEP, "done", "tokens_per_second")
_OF_AN_EVALUATION = (
    "step", "seconds", "train_loss", "train_bits_per_byte", "val_loss", "val_bits_per_byte",
    "val_right", COUNTING_BITS, INTERPOLATION, "tokens_per_second", "done",
)  # fmt: skip
_BETWEEN = 10.0  # seconds from one picture to the next; drawing one takes 0.1
_CAPTION = (
    "Bits per byte: what it takes to store a letter of the text with the model's help. What counts "
    "is the validation text,\nfrom which it learns nothing. Up to the dotted line training may be "
    "harder (tokens split, fewer at a time), and its loss higher."
)


def usual_callbacks(config: TrainConfig, folder: RunFolder) -> list[object]:
    """The callbacks of every training, and those that its config asks for; UserError if one of them
    lacks a folder or a package."""
    callbacks: list[object] = [Progress()]
    if folder.path is not None:
        callbacks += [Metrics(), Picture()]

    if config.keep is not None:
        if folder.path is None:
            raise UserError("keep is for a training in a folder: give out=")
        callbacks.append(KeptWeights(config.keep))

    if config.log is not None:
        check_log(config.log)
        if config.log == "tensorboard" and folder.path is None:
            raise UserError("tensorboard writes into the run's folder: give out=")
        callbacks.append(LOGGERS[config.log]())
    return callbacks


class Progress:
    """A callback that prints on standard error."""

    only_reports = True
    hears_late = True
    _bar: tqdm | None = None

    def on_start(self, trainer: Training, figures: Figures) -> None:
        self._bar = bar(total=100, bar_format="{percentage:3.0f}%|{bar}| {desc}")

    def on_step(self, trainer: Training, figures: Figures) -> None:
        if self._bar is None or self._bar.disable:
            return
        done = figures["done"]
        left = clock(figures["seconds_left"])
        loss = f"{figures['train_bits_per_byte']:.2f} bits/byte"
        speed = f"{figures['tokens_per_second']:,.0f} tokens/s"
        line = f"{left} left, loss {loss}, {speed}"
        self._bar.set_description_str(line if done > 0.001 else "", refresh=False)
        self._bar.update(100 * done - self._bar.n)

    def on_evaluation(self, trainer: Training, figures: Figures) -> None:
        training = figures["train_bits_per_byte"]
        validation = figures["val_bits_per_byte"]
        losses = f"training {training:.3f}, validation {validation:.3f} bits/byte"
        best = ""
        if figures["is_kept"]:
            best = " (kept)" if INTERPOLATION in figures else " (best so far)"
        say(f"step {figures['step']:,} at {clock(figures['seconds'])}: {losses}{best}")

    def on_end(self, trainer: Training, figures: Figures) -> None:
        if self._bar is not None:
            self._bar.close()


class Metrics:
    """A callback that writes both files into the run's folder.

    The rows of steps wait in memory for a second, or until the next evaluation or checkpoint.
    """

    hears_late = True

    def __init__(self) -> None:
        self._steps: list[dict[str, Any]] = []
        self._written = 0  # of these, to the file
        self._interval = 1  # steps from one row to the next
        self._next = 0.0  # when they are written, by time.monotonic

    def on_start(self, trainer: Training, figures: Figures) -> None:
        """In a resumed training, forget the rows of steps that it takes again."""
        if trainer.folder.path is None or trainer.state.step == 0:
            return
        rows = read_steps(trainer.folder.path / STEPS)
        self._steps = [row for row in rows if row["step"] <= trainer.state.step]
        steps = [row["step"] for row in self._steps]
        self._interval = min((b - a for a, b in pairwise(steps)), default=1)

    def on_step(self, trainer: Training, figures: Figures) -> None:
        if figures["step"] % self._interval == 0:
            self._steps.append({name: figures[name] for name in _OF_A_STEP})
        if trainer.folder.path is not None and time.monotonic() >= self._next:
            with contextlib.suppress(OSError):  # which the next evaluation tells of
                self._write_steps(trainer.folder.path)

    def on_evaluation(self, trainer: Training, figures: Figures) -> None:
        """Add a row to metrics.jsonl. Rows of this step and later ones are dropped: they are there
        if the training has gone back to a checkpoint."""
        row = {name: figures[name] for name in _OF_AN_EVALUATION if name in figures}
        trainer.folder.write("the figures", partial(_add_evaluation, row))
        self.on_save(trainer, figures)

    def on_save(self, trainer: Training, figures: Figures) -> None:
        trainer.folder.write("the losses of steps", self._write_steps)

    def _write_steps(self, folder: Path) -> None:
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
            write_text(lines, folder / STEPS)
        elif lines:
            with open(folder / STEPS, "a", encoding="utf-8") as file:
                file.write(lines)
        self._written = len(self._steps)


def _add_evaluation(new: dict[str, Any], folder: Path) -> None:
    """Add a row to metrics.jsonl, in the place of rows of its step and later ones."""
    rows = [row for row in read_metrics(folder / METRICS) if row["step"] < new["step"]]
    write_text(lines_of([*rows, new]), folder / METRICS)


class Picture:
    """A callback that draws what the files of the run say, now and then and at the end."""

    only_reports = True
    _drawn = -math.inf  # when, in time.monotonic's seconds

    def on_evaluation(self, trainer: Training, figures: Figures) -> None:
        is_last = figures["done"] >= 1.0
        if not is_last and time.monotonic() - self._drawn < _BETWEEN:
            return
        self._drawn = time.monotonic()
        marks = {"expected": figures.get(EXPECTED), "counting": figures.get(COUNTING_BITS)}
        trainer.folder.write("the picture", partial(draw_losses, marks=marks))


def draw_losses(folder: Path, marks: dict[str, float | None]) -> None:
    """Draw the losses of a run's steps and of its evaluations, and a line for each mark to compare
    them with, all in bits per byte."""
    try:
        import matplotlib
    except ImportError:
        return
    evaluations = read_metrics(folder / METRICS)
    if not evaluations:
        return

    # The name of a run may hold $, which matplotlib would take for mathematics.
    plain = matplotlib.rc_context({"text.parse_math": False, "text.usetex": False})
    with plain, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that its font does not have
        _draw(folder, evaluations, marks)


def _draw(folder: Path, evaluations: list[dict[str, Any]], marks: dict[str, float | None]) -> None:
    from matplotlib.figure import Figure

    steps = read_steps(folder / STEPS)

    is_long = evaluations[-1]["seconds"] >= 180
    unit = "minutes" if is_long else "seconds"
    size = 60 if is_long else 1  # of the unit, in seconds
    figure = Figure(figsize=(7, 5))
    axes: Any = figure.add_axes((0.11, 0.23, 0.86, 0.69))  # laying it out would take 0.1 s

    if steps:
        times = np.array([row["seconds"] for row in steps]) / size
        losses = np.array([row["bits_per_byte"] for row in steps])
        axes.plot(times, losses, color="C0", alpha=0.25, linewidth=0.8)
        axes.plot(times, _smooth(losses), color="C0", label="training")

    times = np.array([row["seconds"] for row in evaluations]) / size
    losses = np.array([row["val_bits_per_byte"] for row in evaluations])
    axes.plot(times, losses, ".-", color="C1", label="validation")
    kept = evaluations.index(kept_row(evaluations))
    label = f"kept: {losses[kept]:.3f}"
    axes.plot(times[kept], losses[kept], "o", color="C2", label=label)

    for name, mark in marks.items():
        if mark is not None:
            axes.axhline(mark, color="grey", linewidth=0.8, linestyle="--")
            axes.text(0.0, mark, f" {name}: {mark:.2f}", fontsize=8, va="bottom")

    late = [row["seconds"] for row in evaluations if row["done"] > EARLY_UNTIL]
    if late and len(late) < len(evaluations):
        axes.axvline(times[-len(late) - 1], color="grey", linestyle=":")

    title = in_utf8(folder.name)
    axes.set(xlabel=unit, ylabel="bits per byte of text", title=title, xlim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend(loc="upper right")
    figure.text(0.03, 0.03, _CAPTION, fontsize=7.5, color="dimgrey")
    replace(folder / PICTURE, partial(figure.savefig, format="png", dpi=120))


def _smooth(losses: np.ndarray) -> np.ndarray:
    """The mean of each loss and those around it, a fiftieth of all; fewer at both ends."""
    sums = np.concatenate([[0.0], np.cumsum(losses)])
    reach = max(len(losses) // 100, 1)
    first = np.maximum(np.arange(len(losses)) - reach, 0)
    last = np.minimum(np.arange(len(losses)) + reach + 1, len(losses))
    return (sums[last] - sums[first]) / (last - first)
