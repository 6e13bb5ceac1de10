"""What a person sees of a training: a bar, a line an evaluation, metrics.jsonl, samples.txt and
loss.png. Talk goes to standard error.
"""

import json
import math
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

from tqdm import tqdm

from ..run_folder import METRICS, PICTURE, SAMPLES, replace
from .evaluation import Evaluation

_BAR = "{desc}{percentage:3.0f}%|{bar:24}| {postfix}"
_SMOOTHING = 0.95  # of the losses shown: the average reaches back about 20 steps


class Report:
    """Shows how a training goes, and writes it down in the run's folder.

    Args:
        folder: the run's.
        tokens_per_step: tokens in a batch.
        bytes_per_token: of the training text on average, to show losses in bits a byte.
        started: when the command began, in time.monotonic's seconds.
        resume: append to the files of an earlier sitting.
    """

    def __init__(
        self,
        folder: Path,
        *,
        tokens_per_step: int,
        bytes_per_token: float,
        started: float,
        resume: bool = False,
    ):
        self.folder = folder
        self.tokens_per_step = tokens_per_step
        self.nats_to_bits = 1 / math.log(2) / bytes_per_token
        self.started = started
        self.rows: list[dict[str, Any]] = []
        self.loss = 0.0  # smoothed, nats a token
        self._steps = 0
        self._mark = (time.monotonic(), 0)  # when and at which step the speed was last measured
        self._bar = tqdm(total=100, bar_format=_BAR, disable=None, file=sys.stderr, leave=False)
        if resume:
            self.rows = read_metrics(folder / METRICS)
        else:
            for name in (METRICS, SAMPLES):
                (folder / name).unlink(missing_ok=True)

    def say(self, line: str) -> None:
        """A line of talk, above the bar."""
        self._bar.write(line, file=sys.stderr)

    def step(self, step: int, loss: float, done: float, seconds_left: float) -> None:
        """After each training step."""
        self._steps += 1
        weight = max(1 - _SMOOTHING, 1 / self._steps)
        self.loss += weight * (loss - self.loss)
        self._bar.set_postfix_str(
            f"loss {self.loss * self.nats_to_bits:.3f} bits/byte, "
            f"{self._speed(step):,.0f} tokens/s, {clock(max(seconds_left, 0))} left",
            refresh=False,
        )
        self._bar.update(100 * done - self._bar.n)

    def evaluation(self, step: int, result: Evaluation, is_best: bool, sample: str) -> None:
        """After each evaluation: a line, a sample, a row of metrics, the picture."""
        seconds = time.monotonic() - self.started
        row = {
            "step": step,
            "seconds": round(seconds, 3),
            "train_loss": self.loss,
            "val_loss": result.loss,
            "val_bits_per_byte": result.bits_per_byte,
            "tokens_per_second": round(self._speed(step), 1),
        }
        self.rows.append(row)
        self.say(
            f"step {step:,} at {clock(seconds)}: training {self.loss * self.nats_to_bits:.3f}, "
            f"validation {result.bits_per_byte:.3f} bits/byte{' (best so far)' if is_best else ''}"
        )
        self.say(textwrap.indent(sample.strip("\n"), "    | ", lambda line: True))
        with open(self.folder / METRICS, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        with open(self.folder / SAMPLES, "a", encoding="utf-8") as file:
            file.write(f"--- step {step}\n{sample}\n")
        draw(self.rows, self.nats_to_bits, self.folder / PICTURE)
        self._mark = (time.monotonic(), step)

    def close(self) -> None:
        """Take the bar away."""
        self._bar.close()

    def _speed(self, step: int) -> float:
        """Tokens a second since the last evaluation."""
        since, at = self._mark
        return (step - at) * self.tokens_per_step / max(time.monotonic() - since, 1e-9)


def clock(seconds: float) -> str:
    """Seconds as minutes:seconds, or hours:minutes:seconds."""
    minutes, whole = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{whole:02}"
    return f"{minutes // 60}:{minutes % 60:02}:{whole:02}"


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The rows of a metrics.jsonl; a line that is none, half-written say, is passed over."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows


def draw(rows: list[dict[str, Any]], nats_to_bits: float, path: Path) -> None:
    """A picture of the losses over time, if matplotlib is installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    minutes = [row["seconds"] / 60 for row in rows]
    validation = [row["val_bits_per_byte"] for row in rows]
    axes.plot(minutes, [row["train_loss"] * nats_to_bits for row in rows], label="training")
    axes.plot(minutes, validation, label="validation")
    best = min(range(len(rows)), key=lambda i: validation[i])
    axes.plot(minutes[best], validation[best], "o", label=f"best: {validation[best]:.3f}")
    axes.set(xlabel="minutes", ylabel="bits per byte of text")
    axes.grid(alpha=0.3)
    axes.legend()
    replace(path, lambda new: figure.savefig(new, format="png", dpi=120))
