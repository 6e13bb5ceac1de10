"""All that a training prints or writes for people: what it will do and why, a progress bar, a line
for each evaluation, metrics.jsonl, samples.txt, loss.png, and the result.

Messages go to standard error, the result to standard output. No other module of training/ prints.
"""

import gzip
import json
import lzma
import math
import os
import re
import shlex
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from tqdm import tqdm

from .. import UserError
from ..config import TextConfig, count_parameters
from ..data.corpus import Source
from ..runs import METRICS, PICTURE, SAMPLES, RunConfig, read_metrics, replace, write_text

if TYPE_CHECKING:
    import torch

    from ..data.batches import Dataset
    from .checkpoint import TrainingState
    from .evaluation import Evaluation

_BETWEEN_PICTURES = 10.0  # seconds; drawing one takes 0.1
_BAR = "{desc}{percentage:3.0f}%|{bar:24}| {postfix}"
_YARDSTICK_TOKENS = 1 << 20
clock = tqdm.format_interval  # seconds as minutes:seconds


def say(line: str) -> None:
    """Print a message."""
    print(line, file=sys.stderr, flush=True)


def progress_bar(what: str, total: int | None = None) -> "tqdm[NoReturn]":
    """A bar over characters of text, shown when it takes more than a second."""
    how: dict[str, Any] = {"unit": "char", "unit_scale": True, "delay": 1, "leave": False}
    return tqdm(total=total, desc=what, disable=None, file=sys.stderr, **how)


# Before training


def say_run(
    config: RunConfig, dataset: "Dataset", folder: Path, device: "torch.device", processes: int = 1
) -> None:
    """What is about to be done, in a few plain lines."""
    import torch

    model, training, text = config.model, config.training, config.text
    learned = " learned from the text" if text.tokenizer in ("bpe", "char") else ""
    tokenizer = f"from {text.init}" if text.init else text.tokenizer
    goal = f"{training.steps:,} steps" if training.steps else f"{training.minutes:g} minutes"
    many = f"{processes} processes{', sharded' if training.shard else ''}, each "
    threads = f" with {torch.get_num_threads()} threads" if device.type == "cpu" else ""
    rows = {
        "text": f"{len(dataset.train):,} tokens to train on, "
        f"{len(dataset.validation):,} to validate on",
        "tokenizer": f"{tokenizer}, {model.vocab_size:,} tokens{'' if text.init else learned}",
        "model": f"{model.architecture}, {count_parameters(model) / 1e6:.2f} M parameters: "
        f"{model.num_layers} layers of width {model.emb_dim}, {model.num_heads} heads, "
        f"context {model.context_length}",
        "training": f"{goal} on {many if processes > 1 else ''}{device.type}{threads} in "
        f"{training.precision}, {training.batch_size} x {model.context_length} tokens a step, "
        f"dropout {model.dropout:g}, seed {training.seed}",
        "run": f"{folder} (Ctrl-C stops early and keeps the best)",
    }
    for heading, row in rows.items():
        say_row(heading, row)


def say_row(heading: str, row: str) -> None:
    """Print a row of a table."""
    say(f"  {heading:<11}{row}")


def say_split(dataset: "Dataset", text: TextConfig) -> None:
    """Warn if there are too few documents to set aside the share asked for."""
    share = len(dataset.validation) / (len(dataset.train) + len(dataset.validation))
    wanted = text.validation_fraction
    if not text.validation and not wanted / 2 < share < 2 * wanted:
        say(
            f"  no document is split: {share:.0%} of the text is set aside to validate on; "
            f"--split end sets aside its last {wanted:.0%} instead"
        )


def described(source: Source) -> str:
    """The files and their size, in a few words."""
    files = source.training.files
    size = sum(file.stat().st_size for file in files)  # a scan would take long
    names = str(files[0]) if len(files) == 1 else f"{len(files)} files"
    return f"{names} ({tqdm.format_sizeof(size, 'B')})"


# While it trains


class Report:
    """Shows how a training goes, and records it in the run's folder.

    `started` is when the command began, in time.monotonic's seconds.
    """

    def __init__(self, folder: Path, *, tokens_per_step: int, started: float):
        self.folder, self.tokens_per_step, self.started = folder, tokens_per_step, started
        self._mark: tuple[float, int] | None = None  # time and step from which speed is measured
        self._speed = 0.0  # tokens a second, evaluations not counted
        self._drawn = -math.inf  # when, in time.monotonic's seconds
        self._bar = tqdm(total=100, bar_format=_BAR, disable=None, file=sys.stderr, leave=False)

    def say(self, line: str) -> None:
        """Print a message above the bar."""
        self._bar.write(line, file=sys.stderr)

    def step(self, state: "TrainingState", done: float, seconds_left: float) -> None:
        """After each training step."""
        now = time.monotonic()
        if self._mark is None or state.step < self._mark[1]:  # training may have gone back
            self._mark = (now, state.step)
        since, first = self._mark
        if now > since:
            self._speed = (state.step - first) * self.tokens_per_step / (now - since)
        loss, left = f"{state.train_bits_per_byte:.3f} bits/byte", clock(max(seconds_left, 0))
        line = f"loss {loss}, {self._speed:,.0f} tokens/s, {left} left"
        self._bar.set_postfix_str(line, refresh=False)
        self._bar.update(100 * done - self._bar.n)

    def evaluation(
        self, state: "TrainingState", result: "Evaluation", is_best: bool, sample: str
    ) -> dict[str, Any]:
        """After each evaluation: a line and a sample. Returns its row of metrics.jsonl."""
        seconds = time.monotonic() - self.started
        bits = f"{state.train_bits_per_byte:.3f}, validation {result.bits_per_byte:.3f} bits/byte"
        best = " (best so far)" if is_best else ""
        self.say(f"step {state.step:,} at {clock(seconds)}: training {bits}{best}")
        shown = "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in sample)
        self.say(textwrap.indent(shown.strip("\n"), "    | ", lambda line: True))
        self._mark = None
        return {
            "step": state.step,
            "seconds": round(seconds, 3),
            "train_loss": state.train_loss,
            "train_bits_per_byte": state.train_bits_per_byte,
            "val_loss": result.loss,
            "val_bits_per_byte": result.bits_per_byte,
            "tokens_per_second": round(self._speed, 1),
        }

    def write(self, figures: dict[str, Any], sample: str, is_last: bool) -> None:
        """Add an evaluation to metrics.jsonl and samples.txt; now and then draw loss.png again.

        If the training went back to an earlier step, what was written about later steps is dropped.
        OSError is raised if something cannot be written; the old files stay as they were.
        """
        step, metrics, samples = figures["step"], self.folder / METRICS, self.folder / SAMPLES
        rows = [r for r in read_metrics(metrics) if r["step"] < step] + [figures]
        write_text("".join(json.dumps(r) + "\n" for r in rows), metrics)
        earlier = _read_samples(samples, before=step)
        write_text(f"{earlier}--- step {step}\n{sample}\n", samples)
        if is_last or time.monotonic() - self._drawn >= _BETWEEN_PICTURES:
            self._drawn = time.monotonic()
            draw(rows, self.folder / PICTURE)

    def close(self) -> None:
        """Remove the bar."""
        self._bar.close()


def _read_samples(path: Path, before: int) -> str:
    """A samples.txt up to the first sample of step `before` or a later one."""
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    for heading in re.finditer(r"^--- step (\d{1,18})$", text, re.MULTILINE):
        if int(heading[1]) >= before:
            return text[: heading.start()]
    return text


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """A picture of the losses over time, if matplotlib is installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(figsize=(7, 4.5))
    axes = figure.add_axes((0.11, 0.12, 0.86, 0.84))  # laying it out would take 0.1 s
    points = [(row["seconds"] / 60, row["val_bits_per_byte"]) for row in rows]
    minutes, validation = zip(*points, strict=True)
    axes.plot(minutes, [row["train_bits_per_byte"] for row in rows], label="training")
    axes.plot(minutes, validation, label="validation")
    best = min(points, key=lambda point: point[1])
    axes.plot(*best, "o", label=f"best: {best[1]:.3f}")
    axes.set(xlabel="minutes", ylabel="bits per byte of text")
    axes.grid(alpha=0.3)
    axes.legend()
    replace(path, lambda new: figure.savefig(new, format="png", dpi=120))


# At the end


def say_result(
    folder: Path, state: "TrainingState", dataset: "Dataset", seconds: float, minutes: float | None
) -> None:
    """The loss that was reached, how good that is, where the model is, and how to write with it.

    The command took `seconds`; it should have taken `minutes` (None in a training by steps).
    """
    if not math.isfinite(state.best_bits_per_byte or math.inf):
        raise UserError(f"nothing could be saved in {folder}")
    say(f"done in {clock(seconds)}, {state.step:,} steps")
    if minutes is not None and seconds > 66 * minutes + 1:
        say(
            f"that is longer than the {minutes:g} minutes asked for: starting and ending took "
            f"{clock(seconds - state.seconds)}, and a training lasts at least some seconds"
        )
    print(
        f"{folder}: validation {state.best_bits_per_byte:.4f} bits/byte "
        f"({state.best_loss:.4f} nats/token) at step {state.best_step:,}",
        flush=True,
    )
    others = ", ".join(f"{name} {bits:.2f}" for name, bits in yardsticks(dataset).items())
    say(f"for comparison, in bits/byte of the same text: {others}")
    first_words = dataset.tokenizer.decode(dataset.train[:40].tolist()).split()[:3]
    prompt = shlex.quote(" ".join(first_words))
    say(f"to see it think:  minigpt page {shlex.quote(str(folder))} --open")
    say(f"to generate:  {command('generate')} {prompt} --run {shlex.quote(str(folder))}")


def say_interrupted(folder: Path, is_saved: bool) -> None:
    """What is left of a training that was interrupted, and how to continue it."""
    last = f"is in {folder}/checkpoint" if is_saved else "could not be saved"
    say(f"interrupted: the best weights are in {folder}/model.safetensors, the last state {last}")
    say(f"to continue it:  {command('train')} --resume --out {shlex.quote(str(folder))}")


def yardsticks(dataset: "Dataset") -> dict[str, float]:
    """For comparison, the bits per byte of the validation text with all tokens equally likely, and
    packed by gzip and by xz, each given nothing but that text."""
    tokens = dataset.validation[:_YARDSTICK_TOKENS].tolist()
    text = b"".join(map(dataset.tokenizer.token_bytes, tokens))
    bits = {
        "all tokens equally likely": len(tokens) * math.log2(dataset.tokenizer.vocab_size),
        "gzip": 8 * len(gzip.compress(text, 9)),
        "xz": 8 * len(lzma.compress(text)),  # its window of 8 MB holds all of it
    }
    return {name: total / max(len(text), 1) for name, total in bits.items()}


def command(name: str) -> str:
    """How the user calls a command: as they called this one."""
    called = os.path.basename(sys.argv[0])
    return f"python {name}.py" if called.endswith(".py") else f"minigpt {name}"
