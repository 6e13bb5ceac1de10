"""What a person sees of a training: a bar, a line an evaluation, metrics.jsonl, samples.txt and
loss.png. Talk goes to standard error.
"""

import json
import math
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from tqdm import tqdm

from ..runs import METRICS, PICTURE, SAMPLES, read_metrics, replace, write_text
from .checkpoint import TrainingState
from .evaluation import Evaluation

_BETWEEN_PICTURES = 10.0  # seconds; one takes 0.1
_BAR = "{desc}{percentage:3.0f}%|{bar:24}| {postfix}"
_TRAINING = "train_bits_per_byte"  # which rows from before there was it do not have


def progress_bar(what: str, total: int) -> "tqdm[NoReturn]":
    """A bar over characters of text, shown when it takes more than a second."""
    return tqdm(
        total=total, unit="char", unit_scale=True, desc=what, delay=1, leave=False, disable=None,
        file=sys.stderr,
    )  # fmt: skip


@dataclass(frozen=True)
class Row:
    """What an evaluation found."""

    figures: dict[str, Any]  # a row of metrics.jsonl
    sample: str
    is_last: bool


class Report:
    """Shows how a training goes, and writes it down in the run's folder.

    Args:
        folder: the run's.
        tokens_per_step: tokens in a batch.
        started: when the command began, in time.monotonic's seconds.
        also: is handed each row of figures as well.
    """

    def __init__(
        self,
        folder: Path,
        *,
        tokens_per_step: int,
        started: float,
        also: Callable[[dict[str, Any]], None] | None = None,
    ):
        self.folder = folder
        self.tokens_per_step = tokens_per_step
        self.started = started
        self._also = also
        self._mark: tuple[float, int] | None = None  # since when and which step speed is measured
        self._speed = 0.0  # tokens a second, evaluations not counted
        self._drawn = -math.inf  # when, in time.monotonic's seconds
        self._bar = tqdm(total=100, bar_format=_BAR, disable=None, file=sys.stderr, leave=False)

    def say(self, line: str) -> None:
        """A line of talk, above the bar."""
        self._bar.write(line, file=sys.stderr)

    def step(self, state: TrainingState, done: float, seconds_left: float) -> None:
        """After each training step."""
        now = time.monotonic()
        if self._mark is None or state.step < self._mark[1]:  # training may have gone back
            self._mark = (now, state.step)
        since, first = self._mark
        if now > since:
            self._speed = (state.step - first) * self.tokens_per_step / (now - since)
        self._bar.set_postfix_str(
            f"loss {state.train_bits_per_byte:.3f} bits/byte, "
            f"{self._speed:,.0f} tokens/s, {clock(max(seconds_left, 0))} left",
            refresh=False,
        )
        self._bar.update(100 * done - self._bar.n)

    def evaluation(
        self, state: TrainingState, result: Evaluation, is_best: bool, sample: str
    ) -> Row:
        """After each evaluation: a line and a sample. Returns the figures, for `write`."""
        seconds = time.monotonic() - self.started
        self.say(
            f"step {state.step:,} at {clock(seconds)}: "
            f"training {state.train_bits_per_byte:.3f}, validation "
            f"{result.bits_per_byte:.3f} bits/byte{' (best so far)' if is_best else ''}"
        )
        self.say(textwrap.indent(sample.strip("\n"), "    | ", lambda line: True))
        figures = {
            "step": state.step,
            "seconds": round(seconds, 3),
            "train_loss": state.train_loss,
            _TRAINING: state.train_bits_per_byte,
            "val_loss": result.loss,
            "val_bits_per_byte": result.bits_per_byte,
            "tokens_per_second": round(self._speed, 1),
        }
        self._mark = None
        return Row(figures, sample, state.finished)

    def write(self, row: Row) -> None:
        """Add an evaluation to metrics.jsonl and samples.txt; now and then draw loss.png again.

        What an earlier sitting wrote about later steps, before it was cut off, is dropped.

        Raises:
            OSError: if it cannot be written; what was there stays as it was.
        """
        metrics = self.folder / METRICS
        rows = [r for r in read_metrics(metrics) if r["step"] < row.figures["step"]]
        rows.append(row.figures)
        write_text("".join(json.dumps(r) + "\n" for r in rows), metrics)
        samples = read_samples(self.folder / SAMPLES, before=row.figures["step"])
        samples += f"--- step {row.figures['step']}\n{row.sample}\n"
        write_text(samples, self.folder / SAMPLES)
        if self._also is not None:
            self._also(row.figures)
        if row.is_last or time.monotonic() - self._drawn >= _BETWEEN_PICTURES:
            self._drawn = time.monotonic()
            draw(rows, self.folder / PICTURE)

    def close(self) -> None:
        """Take the bar away."""
        self._bar.close()


def clock(seconds: float) -> str:
    """Seconds as minutes:seconds, or hours:minutes:seconds."""
    minutes, whole = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{whole:02}"
    return f"{minutes // 60}:{minutes % 60:02}:{whole:02}"


def read_samples(path: Path, before: int) -> str:
    """A samples.txt up to the first sample of step `before` or a later one."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    except OSError:
        return ""
    for i, line in enumerate(lines):
        step = line.removeprefix("--- step ").strip()
        if line.startswith("--- step ") and step.isdecimal() and int(step) >= before:
            return "".join(lines[:i])
    return "".join(lines)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """A picture of the losses over time, if matplotlib is installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(figsize=(7, 4.5))
    axes = figure.add_axes((0.11, 0.12, 0.86, 0.84))  # laying it out would take 0.1 s
    minutes = [row["seconds"] / 60 for row in rows]
    validation = [row["val_bits_per_byte"] for row in rows]
    axes.plot(minutes, [row.get(_TRAINING, math.nan) for row in rows], label="training")
    axes.plot(minutes, validation, label="validation")
    best = min(range(len(rows)), key=lambda i: validation[i])
    axes.plot(minutes[best], validation[best], "o", label=f"best: {validation[best]:.3f}")
    axes.set(xlabel="minutes", ylabel="bits per byte of text")
    axes.grid(alpha=0.3)
    axes.legend()
    replace(path, lambda new: figure.savefig(new, format="png", dpi=120))
