"""What a person sees of a training while it goes on, and what is written down of it."""

import io
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from minigpt.config import TrainConfig
from minigpt.runs.folder import METRICS, PICTURE, STEPS, read_metrics, read_steps
from minigpt.system.shown import plural
from minigpt.training import reports
from minigpt.training.checkpoint import TrainingState
from minigpt.training.folder import RunFolder
from minigpt.training.messages import (
    duration,
    progress_bar,
    say_command,
    say_row,
    say_text_of_a_model,
)
from minigpt.training.pace import Pace
from minigpt.training.reports import Metrics, Picture, Progress, draw_losses

FOUND = {"val_loss": 3.0, "val_bits_per_byte": 1.5, "is_kept": True}


def figures_of(step: int, **changes: Any) -> dict[str, Any]:
    """What callbacks get."""
    names = ("loss", "bits_per_byte", "train_loss", "train_bits_per_byte", "tokens_per_second")
    others = {"seconds": step / 2, "seconds_left": 9.0, "done": step / 10}
    return {"step": step} | others | dict.fromkeys(names, 2.0) | FOUND | changes


class Told:
    """Callbacks of a training in a folder, told as a trainer does."""

    def __init__(self, folder: Path, *callbacks: Any, begun: int = 0):
        self.callbacks = callbacks
        self.trainer: Any = SimpleNamespace(folder=RunFolder(folder), state=TrainingState(begun))
        self.tell("on_start", figures_of(begun))

    def step(self, step: int, **changes: Any) -> None:
        self.tell("on_step", figures_of(step, **changes))

    def evaluation(self, step: int, **changes: Any) -> None:
        self.tell("on_evaluation", figures_of(step, **changes))

    def tell(self, event: str, figures: dict[str, Any]) -> None:
        for callback in self.callbacks:
            if hasattr(callback, event):
                getattr(callback, event)(self.trainer, figures)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which goes on only where a test says so."""
    time = [1000.0]
    monkeypatch.setattr("minigpt.training.pace.now", lambda: time[0])
    monkeypatch.setattr("minigpt.training.reports.time.monotonic", lambda: time[0])
    return time


# Files


def test_an_evaluation_is_a_row_and_every_step_is_one_and_both_are_drawn(
    tmp_path: Path, drawn_losses: None
) -> None:
    told = Told(tmp_path, Metrics(), Picture())
    for step in range(1, 6):
        told.step(step, loss=step / 4)
    told.evaluation(5, counting_bits_per_byte=1.75)
    (row,) = read_metrics(tmp_path / METRICS)
    assert (row["step"], row["train_loss"], row["val_loss"]) == (5, 2.0, 3.0)
    assert (row["val_bits_per_byte"], row["counting_bits_per_byte"]) == (1.5, 1.75)
    steps = [(row["step"], row["loss"]) for row in read_steps(tmp_path / STEPS)]
    assert steps == [(step, step / 4) for step in range(1, 6)]
    assert (tmp_path / PICTURE).read_bytes().startswith(b"\x89PNG")


def test_what_was_written_about_steps_that_are_taken_again_is_dropped(tmp_path: Path) -> None:
    """A training that was killed after an evaluation goes back to the checkpoint before it, and its
    files may end with half a line."""
    for begun in (0, 4, 4):
        told = Told(tmp_path, Metrics(), begun=begun)
        for step in range(begun + 1, begun + 5):
            told.step(step, loss=begun)
        told.evaluation(begun + 4)
        for name in (METRICS, STEPS):
            with open(tmp_path / name, "a") as file:
                file.write('{"step": 2, "sec')
    assert [row["step"] for row in read_metrics(tmp_path / METRICS)] == [4, 8]
    steps = [(row["step"], row["loss"]) for row in read_steps(tmp_path / STEPS)]
    assert steps == [(step, 4 * (step > 4)) for step in range(1, 9)]


def test_of_a_long_training_fewer_steps_are_written_also_once_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "_MOST_STEPS", 10)
    for begun in (0, 50):
        told = Told(tmp_path, Metrics(), begun=begun)
        for step in range(begun + 1, begun + 51):
            told.step(step)
            if step % 7 == 0:
                told.tell("on_save", {})
        told.evaluation(begun + 50)
    steps = [row["step"] for row in read_steps(tmp_path / STEPS)]
    assert steps == list(range(16, 101, 16))


def test_the_picture_is_drawn_now_and_then_and_at_the_end(
    tmp_path: Path, now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[float] = []
    monkeypatch.setattr(
        "minigpt.training.reports.draw_losses", lambda *_, **__: drawn.append(now[0])
    )
    told = Told(tmp_path, Picture())
    for step in range(1, 7):
        told.evaluation(step, done=step / 6)
        now[0] += 4.0
    assert drawn == [1000.0, 1012.0, 1020.0]


@pytest.mark.long
def test_the_picture_has_a_line_for_what_counting_gives_and_for_what_was_expected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.axes import Axes

    Told(tmp_path, Metrics()).evaluation(5)
    lines: list[float] = []
    monkeypatch.setattr(Axes, "axhline", lambda self, y, **_: lines.append(y))
    draw_losses(tmp_path, {"expected": 1.25, "counting": 1.5})
    draw_losses(tmp_path, {"expected": None, "counting": 1.75})
    assert lines == [1.25, 1.5, 1.75]


# On the terminal


def test_the_speed_counts_the_tokens_of_this_sitting(now: list[float]) -> None:
    """Two steps of ten tokens in ten seconds, whatever was trained before, however long
    evaluations take."""
    pace = Pace(TrainConfig(), deadline=0.0, steps_in_epoch=1, tokens_per_step=10)
    for steps in ((1000, 1001, 1002), (1003, 1004, 1005)):
        for step in steps:
            pace.note(step)
            now[0] += 5.0
        assert pace.speed == 2.0
        now[0] += 60.0
        pace.pause()


def at_width(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "fileno", lambda: 2, raising=False)
    size = os.terminal_size((columns, 24))
    monkeypatch.setattr("minigpt.training.messages.os.get_terminal_size", lambda fd: size)


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_lines_fit_the_terminal_and_no_word_is_cut(
    columns: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    at_width(columns, monkeypatch)
    words = [f"word{i}" for i in range(40)]
    say_row("plan", " ".join(words))
    say_text_of_a_model(" ".join(words) + "\n" + "語" * 60)
    lines = capsys.readouterr().err.splitlines()
    assert max(len(line) + line.count("語") for line in lines) <= columns
    assert [word for word in " ".join(lines).split() if word in words] == words * 2
    assert all(line.startswith(" " * 13) for line in lines[1:4])


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "1 second"),
        (12.34, "12.3 seconds"),
        (60, "60 seconds"),
        (600, "10 minutes"),
        (86_400, "24 hours"),
        (6e7, "16,700 hours"),
    ],
)
def test_a_time_is_said_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words
    assert (plural(1, "head"), plural(2000, "head")) == ("1 head", "2,000 heads")


def test_a_sample_cannot_give_the_terminal_orders(capsys: pytest.CaptureFixture[str]) -> None:
    say_text_of_a_model("a\x1b[2J\rb\x9b1m\n\tc é🦊")
    err = capsys.readouterr().err
    assert not {"\x1b", "\r", "\x9b"} & set(err) and "é🦊" in err


class Unheard(io.StringIO):
    """Standard error whose reader is gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError

    def isatty(self) -> bool:
        raise ValueError("I/O operation on closed file")


@pytest.mark.parametrize("stream", [Unheard(), None], ids=["a pipe without a reader", "none"])
def test_what_nobody_can_read_ends_nothing(
    stream: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nor does it go to standard output instead."""
    monkeypatch.setattr(sys, "stderr", stream)
    told = Told(tmp_path, Progress(), Metrics())
    told.step(5)
    told.evaluation(5)
    told.tell("on_end", {})
    say_command("to generate", "minigpt generate")
    with progress_bar("tokenizing", 10) as bar:
        bar.update(10)
    assert read_metrics(tmp_path / METRICS)[0]["step"] == 5
    assert capsys.readouterr().out == ""
