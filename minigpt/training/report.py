"""All that a training prints or writes for people: what it will do and why, a progress bar, a line
for each evaluation, metrics.jsonl, samples.txt, loss.png, and the result.

Messages go to standard error, the result to standard output. No other module of training/ prints.
"""

import contextlib
import json
import math
import os
import shlex
import shutil
import sys
import textwrap
import time
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm.auto import tqdm

from .. import UserError
from ..config import TextConfig, count_parameters, counted
from ..data.corpus import Source
from ..data.readers import title
from ..runs import (
    METRICS,
    PICTURE,
    SAMPLES,
    WEIGHTS,
    RunConfig,
    read_best,
    read_metrics,
    replace,
    unfinished_run,
    write_text,
)

if TYPE_CHECKING:
    import torch

    from ..data.batches import Dataset
    from .checkpoint import TrainingState
    from .evaluation import Evaluation
    from .plan import Plan

EARLY = 0.8  # of a training, in which tokens are split and windows cut
_BETWEEN_PICTURES = 10.0  # seconds; drawing one takes 0.1
_COMPARED = 1 << 18  # tokens at most
_LEARNED_BY_HEART = 0.8  # of the steps: if the loss was lowest before, it has risen since
_CAPTION = (
    "Bits per byte: what it takes to store a letter of the text with the model's help. What counts "
    "is the validation text,\nfrom which it learns nothing. Up to the dotted line training may be "
    "harder (tokens split, fewer at a time), and its loss higher."
)
BITS = (  # what is meant by bits/byte
    "the bits that would store one byte, a letter or a part of one, with the model's help; fewer "
    "is better, without help it takes 8"
)
clock = tqdm.format_interval  # seconds as minutes:seconds


@dataclass
class Marks:
    """What to compare a run's loss with: bits per byte of the validation text, None if unknown."""

    expected: float | None = None  # of the run, by its plan
    untrained: float | None = None  # of a model to which all tokens are equally likely
    counting: float | None = None  # of a CountingModel, which is made while the run trains
    counted_tokens: int = 0  # of the training text


def say(line: str, indent: int = 2, prefix: str = "") -> None:
    """Print a message above the bars, wrapped to the terminal's width."""
    width = 1 << 20  # where there is no terminal there is nothing to fit
    with contextlib.suppress(OSError, ValueError, AttributeError):
        width = max(os.get_terminal_size(sys.stderr.fileno()).columns - len(prefix), 20)
    if any(unicodedata.east_asian_width(c) in "WF" for c in line):
        width //= 2  # such characters are two columns wide
    for part in line.split("\n"):
        how: dict[str, Any] = {"break_on_hyphens": False, "break_long_words": bool(prefix)}
        for row in textwrap.wrap(part, width, subsequent_indent=" " * indent, **how) or [""]:
            _print(prefix + row)


def say_command(purpose: str, command: str) -> None:
    """Print a command on a line of its own, never broken, so that it can be copied."""
    _print(f"{purpose}:\n  {command}")


def _print(line: str) -> None:
    """Print a line above the bars. Where nobody can read it any more, since the reader of a pipe or
    the terminal is gone or standard error is closed, training goes on without it."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            tqdm.write(line, file=sys.stderr)
            sys.stderr.flush()


def _is_terminal() -> bool:
    """Whether standard error is a terminal; it may also be closed, or may never have been open."""
    with contextlib.suppress(ValueError, AttributeError):
        return sys.stderr.isatty()
    return False


def say_row(heading: str, row: str) -> None:
    """Print a row of a table."""
    say(f"  {heading:<11}{row}", indent=13)


def duration(seconds: float) -> str:
    """In seconds or minutes, whichever reads better."""
    number, unit = (seconds, "second") if seconds < 100 else (seconds / 60, "minute")
    return f"{number:.3g} {unit}{'s' * (f'{number:.3g}' != '1')}"


def progress_bar(what: str, total: int | None = None) -> tqdm:
    """A bar over characters of text, shown when it takes more than a second."""
    how: dict[str, Any] = {"unit": "char", "unit_scale": True, "delay": 1}
    return _bar(total=total, desc=what, **how)


def _bar(**how: Any) -> tqdm:
    """A bar at a terminal. If that goes away, tqdm stops drawing it."""
    is_hidden = not _is_terminal()
    return tqdm(file=sys.stderr, disable=is_hidden, leave=False, dynamic_ncols=True, **how)


# Before training


def say_text(source: Source) -> None:
    """What was read, and what a person should know of it."""
    files, size = source.training.files, source.training.scan.text_bytes
    names = title(files[0]) if len(files) == 1 else counted(len(files), "file")
    say_row("text", f"{names}, {tqdm.format_sizeof(size, 'B')}")
    if size < 1000:  # nobody learns a language from so little
        say_row("", "less than 1,000 bytes can only be learned by heart; give it more text")


def say_unfinished(text: TextConfig, source: Source) -> None:
    """If a run on the same text was not finished: where it is, and how to continue it."""
    if folder := unfinished_run(text, source.fingerprint):
        resume = f"{command('train')} --resume --out {shlex.quote(str(folder))}"
        say_command(f"{folder} is an unfinished run on this text; to continue it instead", resume)


def reasons(plan: "Plan") -> list[str]:
    """What was measured, and why the plan is as it is: a few lines."""
    dropout, lines = plan.model.dropout, []
    if plan.speed is not None:
        lines.append(
            f"this machine computes {plan.speed.flops / 1e9:,.0f} billion operations a second: "
            f"about {counted(plan.steps, 'step')} in {duration(plan.seconds)}"
        )
    if plan.max_characters is not None:
        most = f"{plan.max_characters / 1e6:,.0f} million characters"
        lines.append(f"of this long text {most} are used, from all over it")
    if plan.text.repeats_afar:
        lines.append("it repeats itself far away, so that a long context pays off")
    often = f"the text is read {plan.epochs:,.1f} times"
    lines.append(often if plan.epochs >= 1 else f"{plan.epochs:.1%} of the text is read")
    if dropout:
        lines[-1] += f", so dropout {dropout:g} keeps it from being learned by heart"
    split = f"{plan.token_split_prob:.0%} of the tokens are split in two"
    cut = f"the model sees only {counted(plan.warmup_context, 'token')} at a time"
    early = [split] * (plan.token_split_prob > 0)
    early += [cut] * (plan.warmup_context < plan.model.context_length)
    if early:
        lines.append(f"until the last fifth {' and '.join(early)}, which makes training harder")
    lines.append(f"expected: about {plan.bits_per_byte:.2g} bits/byte ({BITS})")
    if plan.ends_early:
        lines.append(f"ends early: after {plan.max_epochs:g} times it has no more to teach")
    return lines


def say_run(
    config: RunConfig, dataset: "Dataset", folder: Path, device: "torch.device", processes: int = 1
) -> None:
    """What is about to be done, in a few plain lines."""
    import torch

    model, training, text = config.model, config.training, config.text
    learned = f" from {text.init}" if text.init else f" ({text.tokenizer})"
    goal = counted(training.steps, "step") if training.steps else duration(60 * training.minutes)
    many = f"{processes} processes, each "
    threads = f" with {counted(torch.get_num_threads(), 'thread')}" if device.type == "cpu" else ""
    aside = len(dataset.validation) / (len(dataset.train) + len(dataset.validation))
    rows = {
        "tokens": f"{len(dataset.train):,} pieces of text to train on, {len(dataset.validation):,} "
        f"({aside:.0%}) to validate on, {model.vocab_size:,} different ones{learned}",
        "model": f"{model.architecture}, {count_parameters(model) / 1e6:.2f} M parameters: "
        f"{counted(model.num_layers, 'layer')} of width {model.emb_dim}, "
        f"{counted(model.num_heads, 'head')}, context {model.context_length}",
        "training": f"{goal} on {many if processes > 1 else ''}{device.type}{threads} in "
        f"{training.precision}, {training.batch_size} x {model.context_length} tokens a step, "
        f"dropout {model.dropout:g}, seed {training.seed}",
        "run": f"{folder} (Ctrl-C saves and stops, twice stops at once)",
    }
    for heading, row in rows.items():
        say_row(heading, row)


# While it trains


def compared(config: RunConfig, dataset: "Dataset", expected: float | None) -> Marks:
    """What to compare the loss on the validation text with, as far as it is known at the start."""
    if config.text.init is not None:  # the model has been trained
        return Marks(expected)
    tokens = dataset.validation[:_COMPARED].tolist()
    size = sum(len(dataset.tokenizer.token_bytes(token)) for token in tokens)
    bits = len(tokens) * math.log2(config.model.vocab_size)
    return Marks(expected, untrained=bits / max(size, 1))


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


# At the end


def say_result(shown: Report, state: "TrainingState", data: "Dataset", config: RunConfig) -> None:
    """The loss that was reached, why the training ended, how good that is, and what to do next."""
    best, training, folder = state.best_bits_per_byte or math.inf, config.training, shown.folder
    if not math.isfinite(best):
        raise UserError(f"nothing could be saved in {folder}")

    seconds, minutes = time.monotonic() - shown.started, training.minutes
    epochs = state.step * shown.tokens_per_step / len(data.train)
    read_enough = training.steps is None and epochs >= (training.max_epochs or math.inf)
    if training.steps is not None:
        why = "as many as asked for"
    elif read_enough:
        why = f"the text was read {epochs:.0f} times, more would only teach it by heart"
    else:
        why = f"the {duration(60 * minutes)} are over"
        if seconds > 66 * minutes + 1:
            why += f", of which starting and ending took {clock(seconds - state.seconds)}"
    say(f"done in {clock(seconds)}, {counted(state.step, 'step')}: {why}")
    loss = f"{best:.4f} bits/byte ({state.best_loss:.4f} nats/token)"
    print(f"{folder}: validation {loss} at step {state.best_step:,}", flush=True)

    is_better = True
    if shown.marks.counting is not None:
        is_better = best < shown.marks.counting
        say(beside_counting(best, shown.marks, len(data.train)))

    rose_early = epochs > 1 and state.best_step < _LEARNED_BY_HEART * state.step
    if read_enough or (rose_early and not is_better):
        say("to do better: more text; more minutes would not help")
    elif training.steps is None:
        more = next((m for m in (1, 5, 20, 60, 240) if m >= 3 * minutes), 1000)
        say(f"to do better: --minutes {more}")
    elif not is_better:
        say(f"to do better: --steps {3 * state.step}")

    prompt, run = first_words(data), shlex.quote(str(folder))
    say_command("to see it think", f"{command('page')} {run} --open")
    if Path(sys.argv[0]).stem in ("train", "minigpt"):
        say_command("to generate", f"{command('generate')} {shlex.quote(prompt)} --run {run}")
    else:
        say_command("to generate", f"minigpt.load({str(folder)!r}).generate({prompt!r})")


def beside_counting(best: float, marks: Marks, tokens: int) -> str:
    """A model's bits per byte beside those of the counting model of a text of so many tokens."""
    counting = marks.counting or 0.0
    counts = "counting which token follows which four"
    if marks.counted_tokens < tokens:
        counts += f", in {marks.counted_tokens:,} tokens of the text,"
    gives = f"{counts} gives {counting:.3f} bits/byte on the same text"

    saved = 1.0 - best / max(counting, 1e-9)
    if saved >= 0.005:
        return f"{gives}: attention saves {saved:.0%}"
    if saved > -0.005:
        return f"{gives}: the model is about as good"
    return f"{gives}: the model is not as good yet"


def first_words(dataset: "Dataset") -> str:
    """The beginning of the first line that has letters or digits, to try as a prompt."""
    lines = dataset.tokenizer.decode(dataset.train[:400].tolist()).splitlines()
    line = next((line.strip() for line in lines if any(map(str.isalnum, line))), "")
    return textwrap.shorten(line, 24, placeholder="", break_long_words=False) or line[:24]


def say_interrupted(folder: Path, is_saved: bool) -> None:
    """What is left of a training that was interrupted, and how to continue it."""
    last = f"is in {folder}/checkpoint" if is_saved else "could not be saved"
    is_kept = read_best(folder / WEIGHTS) is not None
    best = f"are in {folder / WEIGHTS}" if is_kept else "could not be saved"
    say(f"interrupted: the best weights {best}, the last state {last}")
    say_command("to continue it", f"{command('train')} --resume --out {shlex.quote(str(folder))}")


def command(name: str) -> str:
    """How the user calls a command: as they called this one."""
    if Path(sys.argv[0]).stem == "train" and name != "page":
        return f"{program('python')} {name}.py"
    return f"{program('minigpt')} {name}"


def program(name: str) -> str:
    """A program of this environment, with its path if it is not the one that a shell finds: the
    environment may not be activated."""
    own = Path(sys.executable).with_name(name)
    found = shutil.which(name)
    if not own.exists() or (found is not None and Path(found).absolute() == own):
        return name
    return shlex.quote(str(own.relative_to(Path.cwd()) if own.is_relative_to(Path.cwd()) else own))
