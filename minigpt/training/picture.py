"""The loss over time as a picture, loss.png, if matplotlib is installed."""

import math
import time
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..runs.folder import COUNTING, METRICS, PICTURE, STEPS, kept_row, read_metrics, read_steps
from ..system.atomic import replace
from ..system.shown import in_utf8
from .schedule import EARLY

if TYPE_CHECKING:
    from .trainer import Trainer

_BETWEEN = 10.0  # seconds from one picture to the next; drawing one takes 0.1
_CAPTION = (
    "Bits per byte: what it takes to store a letter of the text with the model's help. What counts "
    "is the validation text,\nfrom which it learns nothing. Up to the dotted line training may be "
    "harder (tokens split, fewer at a time), and its loss higher."
)
EXPECTED = "expected_bits_per_byte"  # of the figures: where such trainings usually end


class Picture:
    """A callback that draws what the files of the run say, now and then and at the end."""

    only_reports = True

    def __init__(self) -> None:
        self._drawn = -math.inf  # when, in time.monotonic's seconds

    def on_evaluation(self, trainer: "Trainer", figures: dict[str, Any]) -> None:
        is_last = figures["done"] >= 1.0
        if not is_last and time.monotonic() - self._drawn < _BETWEEN:
            return
        assert trainer.out is not None
        self._drawn = time.monotonic()
        marks = {"expected": figures.get(EXPECTED), "counting": figures.get(COUNTING)}
        trainer.disk.write("the picture", partial(draw_losses, trainer.out, marks))


def draw_losses(folder: Path, marks: dict[str, float | None]) -> None:
    """Draw the losses of a run's steps and of its evaluations, and a line for each mark to compare
    them with, all in bits per byte."""
    try:
        import matplotlib
    except ImportError:
        return
    if not read_metrics(folder / METRICS):
        return
    # The name of a run may hold $, which matplotlib would take for mathematics.
    plain = matplotlib.rc_context({"text.parse_math": False, "text.usetex": False})
    with plain, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that its font does not have
        _draw(folder, marks)


def _draw(folder: Path, marks: dict[str, float | None]) -> None:
    from matplotlib.figure import Figure

    evaluations = read_metrics(folder / METRICS)
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

    late = [row["seconds"] for row in evaluations if row["done"] > EARLY]
    if late and len(late) < len(evaluations):
        axes.axvline(times[-len(late) - 1], color="grey", linestyle=":")

    title = in_utf8(folder.name)
    axes.set(xlabel=unit, ylabel="bits per byte of text", title=title, xlim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend(loc="upper right")
    figure.text(0.03, 0.03, _CAPTION, fontsize=7.5, color="dimgrey")
    replace(folder / PICTURE, lambda new: figure.savefig(new, format="png", dpi=120))


def _smooth(losses: np.ndarray) -> np.ndarray:
    """The mean of each loss and those around it, a fiftieth of all; fewer at both ends."""
    sums = np.concatenate([[0.0], np.cumsum(losses)])
    reach = max(len(losses) // 100, 1)
    first = np.maximum(np.arange(len(losses)) - reach, 0)
    last = np.minimum(np.arange(len(losses)) + reach + 1, len(losses))
    return (sums[last] - sums[first]) / (last - first)
