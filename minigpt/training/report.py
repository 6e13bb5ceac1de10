"""How a training goes, shown and recorded: a progress bar, a line for each evaluation,
metrics.jsonl, samples.txt and loss.png.
"""

import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..runs.atomic import replace, write_text
from ..runs.folder import METRICS, PICTURE, SAMPLES, read_metrics
from .messages import _bar, clock, say
from .schedule import EARLY

if TYPE_CHECKING:
    from .checkpoint import TrainingState
    from .evaluation import Evaluation

_BETWEEN_PICTURES = 10.0  # seconds; drawing one takes 0.1
_CAPTION = (
    "Bits per byte: what it takes to store a letter of the text with the model's help. What counts "
    "is the validation text,\nfrom which it learns nothing. Up to the dotted line training may be "
    "harder (tokens split, fewer at a time), and its loss higher."
)


@dataclass
class Marks:
    """What to compare a run's loss with: bits per byte of the validation text, None if unknown."""

    expected: float | None = None  # of the run, by its plan
    untrained: float | None = None  # of a model to which all tokens are equally likely
    counting: float | None = None  # of a CountingModel, which is made while the run trains
    counted_tokens: int = 0  # of the training text


class Report:
    """Shows how a training goes, and records it in the run's folder.

    `started` is when the command began, in time.monotonic's seconds.
    """

    def __init__(self, folder: Path, marks: Marks, *, tokens_per_step: int, started: float):
        self.folder, self.marks = folder, marks
        self.tokens_per_step, self.started = tokens_per_step, started
        self._mark: tuple[float, int] | None = None  # time and step from which speed is measured
        self._speed, self._done = 0.0, 0.0  # tokens a second, evaluations not counted; the share
        self._drawn = -math.inf  # when, in time.monotonic's seconds
        self._bar = _bar(total=100, bar_format="{percentage:3.0f}%|{bar}| {desc}")

    def step(self, state: "TrainingState", done: float, seconds_left: float) -> None:
        """After each training step."""
        now, self._done = time.monotonic(), done
        if self._mark is None or state.step < self._mark[1]:  # training may have gone back
            self._mark = (now, state.step)
        since, first = self._mark
        if now > since:
            self._speed = (state.step - first) * self.tokens_per_step / (now - since)
        loss, left = f"{state.train_bits_per_byte:.2f} bits/byte", clock(max(seconds_left, 0))
        line = f"{left} left, loss {loss}, {self._speed:,.0f} tokens/s"
        self._bar.set_description_str(line if done > 0.001 else "", refresh=False)
        self._bar.update(100 * done - self._bar.n)

    def evaluation(
        self, state: "TrainingState", result: "Evaluation", is_best: bool, sample: str
    ) -> dict[str, Any]:
        """After each evaluation: a line and a sample. Returns its row of metrics.jsonl."""
        seconds = time.monotonic() - self.started
        bits = f"{state.train_bits_per_byte:.3f}, validation {result.bits_per_byte:.3f} bits/byte"
        best = " (best so far)" if is_best else ""
        say(f"step {state.step:,} at {clock(seconds)}: training {bits}{best}")
        shown = "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in sample)
        say(shown.strip("\n"), indent=0, prefix="    | ")
        self._mark = None
        return {
            "step": state.step,
            "seconds": round(seconds, 3),
            "train_loss": state.train_loss,
            "train_bits_per_byte": state.train_bits_per_byte,
            "val_loss": result.loss,
            "val_bits_per_byte": result.bits_per_byte,
            "counting_bits_per_byte": self.marks.counting,
            "tokens_per_second": round(self._speed, 1),
            "done": 1.0 if state.finished else round(self._done, 4),
        }

    def write(self, figures: dict[str, Any], sample: str, is_last: bool) -> None:
        """Add an evaluation to metrics.jsonl and samples.txt; now and then draw loss.png again.

        If the training went back to an earlier step, the later rows of metrics.jsonl are dropped.
        OSError is raised if something cannot be written; the old metrics stay as they were.
        """
        step, metrics = figures["step"], self.folder / METRICS
        rows = [r for r in read_metrics(metrics) if r["step"] < step] + [figures]
        write_text("".join(json.dumps(r) + "\n" for r in rows), metrics)
        with open(self.folder / SAMPLES, "a", encoding="utf-8") as samples:
            samples.write(f"--- step {step}\n{sample}\n")
        if is_last or time.monotonic() - self._drawn >= _BETWEEN_PICTURES:
            self._drawn = time.monotonic()
            draw(rows, self.folder / PICTURE, self.marks)

    def close(self) -> None:
        """Remove the bar."""
        self._bar.close()


def draw(rows: list[dict[str, Any]], path: Path, marks: Marks) -> None:
    """A picture of the losses over time, if matplotlib is installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    unit, size = ("minutes", 60) if rows[-1]["seconds"] >= 180 else ("seconds", 1)
    figure = Figure(figsize=(7, 5))
    axes: Any = figure.add_axes((0.11, 0.23, 0.86, 0.69))  # laying it out would take 0.1 s
    start = [] if marks.untrained is None else [marks.untrained]
    times = [0.0] * len(start) + [row["seconds"] / size for row in rows]
    for label, name in (("training", "train"), ("validation", "val")):
        axes.plot(times, start + [row[f"{name}_bits_per_byte"] for row in rows], label=label)
    best = min(rows, key=lambda row: row["val_bits_per_byte"])
    bits = best["val_bits_per_byte"]
    axes.plot(best["seconds"] / size, bits, "o", label=f"best: {bits:.3f}")
    for name, mark in (("expected", marks.expected), ("counting", marks.counting)):
        if mark is not None:
            axes.axhline(mark, color="grey", linewidth=0.8, linestyle="--")
            axes.text(0.0, mark, f" {name}: {mark:.2f}", fontsize=8, va="bottom")
    late = [row["seconds"] for row in rows if row["done"] > EARLY]
    if late and len(late) < len(rows):
        axes.axvline(times[-len(late) - 1], color="grey", linestyle=":")
    axes.set(xlabel=unit, ylabel="bits per byte of text", title=path.parent.name, xlim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend(loc="upper right")
    figure.text(0.03, 0.03, _CAPTION, fontsize=7.5, color="dimgrey")
    replace(path, lambda new: figure.savefig(new, format="png", dpi=120))
