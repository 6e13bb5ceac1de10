"""What a person sees of a training, and what is written down of it."""

import io
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from minigpt.config import GPTConfig, TextConfig, TrainConfig, counted
from minigpt.data.origin import Origin
from minigpt.data.source import find_source
from minigpt.data.token_cache import prepare
from minigpt.recipe.report import command, compared, first_words, say_result
from minigpt.runs.folder import METRICS, PICTURE, SAMPLES, RunConfig, read_metrics
from minigpt.training.checkpoint import TrainingState
from minigpt.training.evaluation import Evaluation
from minigpt.training.messages import duration, progress_bar, say_command, say_row
from minigpt.training.report import Marks, Report, draw

FOUND = Evaluation(3.0, 1.5, 100, 200, context_length=16, stride=16)


def report(folder: Path) -> Report:
    return Report(folder, Marks(counting=1.75), tokens_per_step=10, started=0.0)


def write(one: Report, state: TrainingState, sample: str = "") -> None:
    one.write(one.evaluation(state, FOUND, True, sample), sample, state.finished)


def evaluate_once(folder: Path, step: int) -> None:
    one, state = report(folder), TrainingState(step, train_loss=2.0, train_bits_per_byte=1.25)
    one.step(TrainingState(step - 1), 0.5, 60.0)
    one.step(state, 0.5, 60.0)
    write(one, state, f"sample {step}")
    one.close()


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which goes on only where a test says so."""
    time = [1000.0]
    monkeypatch.setattr("minigpt.training.report.time.monotonic", lambda: time[0])
    return time


# While it trains


def test_an_evaluation_is_a_row_of_metrics_a_sample_and_a_picture(tmp_path: Path) -> None:
    evaluate_once(tmp_path, 5)
    (row,) = read_metrics(tmp_path / METRICS)
    assert row["step"] == 5
    assert row["train_loss"] == 2.0 and row["train_bits_per_byte"] == 1.25
    assert row["val_loss"] == 3.0 and row["val_bits_per_byte"] == 1.5
    assert row["counting_bits_per_byte"] == 1.75
    assert row["seconds"] > 0 and row["tokens_per_second"] > 0
    assert (tmp_path / SAMPLES).read_text() == "--- step 5\nsample 5\n"
    assert (tmp_path / PICTURE).read_bytes().startswith(b"\x89PNG")


def test_the_speed_counts_the_tokens_of_this_sitting(tmp_path: Path, now: list[float]) -> None:
    """Two steps of ten tokens in ten seconds, whatever was trained before, however long
    evaluations take, and where training goes back to an earlier step."""
    one = report(tmp_path)
    for steps in ((1000, 1001, 1002), (1003, 1004, 1005), (1001, 1002), (1020, 1021, 3, 4)):
        for step in steps:
            one.step(TrainingState(step), 0.5, 60.0)
            now[0] += 5.0
        now[0] += 60.0
        figures = one.evaluation(TrainingState(step), FOUND, True, "")
        assert figures["tokens_per_second"] == 2.0


def test_the_picture_is_drawn_now_and_then_and_at_the_end(
    tmp_path: Path, now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[int] = []
    monkeypatch.setattr("minigpt.training.report.draw", lambda rows, *_: drawn.append(len(rows)))
    one = report(tmp_path)
    for step in range(1, 7):
        write(one, TrainingState(step, finished=step == 6))
        now[0] += 4.0
    assert drawn == [1, 4, 6]


def test_what_was_written_about_steps_that_are_taken_again_is_dropped(tmp_path: Path) -> None:
    """A training that was killed after an evaluation goes back to the checkpoint before it."""
    for step in (2, 4, 4):
        evaluate_once(tmp_path, step)
        with open(tmp_path / METRICS, "a") as file:  # a power cut in the middle of a line
            file.write('{"step": 2, "sec')
    assert [row["step"] for row in read_metrics(tmp_path / METRICS)] == [2, 4]


def at_width(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "fileno", lambda: 2, raising=False)
    size = os.terminal_size((columns, 24))
    monkeypatch.setattr("minigpt.training.messages.os.get_terminal_size", lambda fd: size)


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_lines_fit_the_terminal_and_no_word_is_cut(
    columns: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    at_width(columns, monkeypatch)
    words = [f"word{i}" for i in range(40)]
    say_row("plan", " ".join(words))
    write(report(tmp_path), TrainingState(1), " ".join(words) + "\n" + "語" * 60)
    lines = capsys.readouterr().err.splitlines()
    assert max(len(line) + line.count("語") for line in lines) <= columns
    assert [word for word in " ".join(lines).split() if word in words] == words * 2
    assert all(line.startswith(" " * 13) for line in lines[1:4])


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(1, "1 second"), (12.34, "12.3 seconds"), (60, "60 seconds"), (600, "10 minutes")],
)
def test_a_time_is_said_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words
    assert (counted(1, "head"), counted(2000, "head")) == ("1 head", "2,000 heads")


def test_a_sample_cannot_give_the_terminal_orders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = report(tmp_path)
    write(one, TrainingState(1), "a\x1b[2J\rb\x9b1m\n\tc é🦊")
    err = capsys.readouterr().err
    assert not {"\x1b", "\r", "\x9b"} & set(err) and "é🦊" in err
    assert "a\x1b[2J\rb" in (tmp_path / SAMPLES).read_bytes().decode()


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
    evaluate_once(tmp_path, 5)
    say_command("to generate", "minigpt generate")
    with progress_bar("tokenizing", 10) as bar:
        bar.update(10)
    assert read_metrics(tmp_path / METRICS)[0]["step"] == 5
    assert capsys.readouterr().out == ""


# At the end


def result(
    capsys: pytest.CaptureFixture[str],
    training: TrainConfig,
    took: float = 9.0,
    best_step: int = 9,
    **marks: Any,
) -> tuple[str, list[str]]:
    """What a training of nine steps says at its end, on standard output and standard error."""
    text = TextConfig(files=("my.txt",), tokenizer="char")
    dataset = prepare(find_source(text), text)
    state = TrainingState(9, 5.0, best_loss=3.0, best_bits_per_byte=1.5, best_step=best_step)
    config = RunConfig(GPTConfig(vocab_size=dataset.tokenizer.vocab_size), training, Origin(text))
    found = Marks(**({"counted_tokens": len(dataset.train)} | marks))
    started = time.monotonic() - took
    shown = Report(Path("runs/my"), found, tokens_per_step=1000, started=started)
    say_result(shown, state, dataset, config)
    out, err = capsys.readouterr()
    return out, err.splitlines()


@pytest.mark.parametrize(
    ("training", "took", "words"),
    [
        (TrainConfig(minutes=0.5), 29.0, "9 steps: the 30 seconds are over"),
        (TrainConfig(minutes=0.5), 45.0, "are over, of which starting and ending took 00:40"),
        (TrainConfig(steps=9), 45.0, "9 steps: as many as asked for"),
        (TrainConfig(max_epochs=3), 9.0, "the text was read 4 times, more would only teach it by"),
    ],
)
def test_the_end_says_why_it_came(
    workplace: Path, capsys: pytest.CaptureFixture[str], training: Any, took: float, words: str
) -> None:
    out, lines = result(capsys, training, took)
    assert out == "runs/my: validation 1.5000 bits/byte (3.0000 nats/token) at step 9\n"
    assert words in lines[0] and ("starting" in words) == ("starting" in lines[0])


def test_a_command_can_be_copied_where_the_environment_is_not_activated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = tmp_path / ".venv/bin", tmp_path / "bin"
    for folder in (own, other):
        folder.mkdir(parents=True)
        for name in ("python", "minigpt"):
            (folder / name).touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(own / "python"))
    monkeypatch.setattr(sys, "argv", ["train.py"])

    for path, cwd, expected in (
        (other, tmp_path, ".venv/bin/"),
        (other, other, f"{own}/"),
        (own, tmp_path, ""),
    ):
        monkeypatch.setenv("PATH", str(path))
        monkeypatch.chdir(cwd)
        assert command("generate") == f"{expected}python generate.py"
        assert command("page") == f"{expected}minigpt page"


GIVES = "counting which token follows which four gives"


@pytest.mark.parametrize(
    ("counting", "words"),
    [
        (1.75, f"{GIVES} 1.750 bits/byte on the same text: attention saves 14%"),
        (1.505, f"{GIVES} 1.505 bits/byte on the same text: the model is about as good"),
        (1.25, f"{GIVES} 1.250 bits/byte on the same text: the model is not as good yet"),
        (0.0, f"{GIVES} 0.000 bits/byte on the same text: the model is not as good yet"),
    ],
)
@pytest.mark.parametrize("extent", [{"minutes": 2}, {"steps": 9}])
def test_the_end_says_what_counting_gives(
    workplace: Path,
    capsys: pytest.CaptureFixture[str],
    extent: dict[str, Any],
    counting: float,
    words: str,
) -> None:
    assert words in result(capsys, TrainConfig(**extent), counting=counting)[1]


def test_the_end_says_so_if_only_a_part_of_the_text_was_counted(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, lines = result(capsys, TrainConfig(), counting=1.75, counted_tokens=1234)
    assert any("which four, in 1,234 tokens of the text, gives 1.750" in line for line in lines)


@pytest.mark.parametrize(
    ("training", "counting", "best_step", "advice"),
    [
        ({"minutes": 2}, 1.75, 9, "--minutes 20"),
        ({"minutes": 2}, 1.25, 9, "--minutes 20"),
        ({"minutes": 2}, 1.25, 5, "more text; more minutes would not help"),  # it has risen since
        ({"max_epochs": 1}, 1.75, 9, "more text; more minutes would not help"),
        ({"steps": 9}, 1.75, 9, None),  # as many as asked for
        ({"steps": 9}, 1.25, 9, "--steps 27"),
    ],
)
def test_the_end_says_what_would_help(
    workplace: Path,
    capsys: pytest.CaptureFixture[str],
    training: dict[str, Any],
    counting: float,
    best_step: int,
    advice: str | None,
) -> None:
    _, lines = result(capsys, TrainConfig(**training), counting=counting, best_step=best_step)
    found = [line for line in lines if line.startswith("to do better")]
    assert found == ([] if advice is None else [f"to do better: {advice}"])


def test_the_end_says_what_is_next(
    workplace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, lines = result(capsys, TrainConfig(minutes=2), counting=2.0)
    assert lines[-2] == "to generate:"
    assert lines[-1].startswith("  minigpt.load('runs/my').generate('")
    monkeypatch.setattr("sys.argv", ["train.py"])
    assert "python generate.py" in result(capsys, TrainConfig())[1][-1]


def test_a_prompt_is_the_beginning_of_a_line(workplace: Path) -> None:
    config = TextConfig(files=("my.txt",), tokenizer="char")
    story = "--- \n\ntitle of this very long story\n"
    url = "See https://www.example.org/a/b/c\n"
    for text, words in ((story, "title of this very long"), ("01" * 99, "01" * 12), (url, "See")):
        Path("my.txt").write_text(text * 99)
        assert first_words(prepare(find_source(config), config)) == words


def test_an_untrained_model_is_a_mark_unless_the_training_begins_with_a_trained_one(
    workplace: Path,
) -> None:
    text = TextConfig(files=("my.txt",), tokenizer="char")
    dataset = prepare(find_source(text), text)
    for init, untrained in ((None, 4.0), ("runs/other", None)):
        origin = Origin(replace(text, init=init))
        config = RunConfig(GPTConfig(vocab_size=16), TrainConfig(), origin)
        found = compared(config, dataset, expected=2.0)
        assert (found.expected, found.untrained, found.counting) == (2.0, untrained, None)


def test_the_picture_has_a_line_for_what_counting_gives_and_for_what_was_expected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.axes import Axes

    evaluate_once(tmp_path, 5)
    rows, lines = read_metrics(tmp_path / METRICS), list[float]()
    monkeypatch.setattr(Axes, "axhline", lambda self, y, **_: lines.append(y))
    draw(rows, tmp_path / PICTURE, Marks(expected=1.25, counting=1.5))
    draw(rows, tmp_path / PICTURE, Marks(untrained=8.0, counting=1.75))
    assert lines == [1.25, 1.5, 1.75]
