"""What a person sees of a training, and what is written down of it."""

from pathlib import Path

import pytest

from minigpt.config import TextConfig
from minigpt.data.corpus import find_source
from minigpt.data.token_cache import prepare
from minigpt.runs import METRICS, PICTURE, SAMPLES, read_metrics
from minigpt.training.checkpoint import TrainingState
from minigpt.training.evaluation import Evaluation
from minigpt.training.report import Report, say_result

FOUND = Evaluation(3.0, 1.5, 100, 200)


def report(folder: Path) -> Report:
    return Report(folder, tokens_per_step=10, started=0.0)


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
    samples = (tmp_path / SAMPLES).read_text()
    assert samples == "--- step 2\nsample 2\n--- step 4\nsample 4\n"


def test_a_sample_cannot_give_the_terminal_orders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = report(tmp_path)
    write(one, TrainingState(1), "a\x1b[2J\rb\x9b1m\n\tc é🦊")
    err = capsys.readouterr().err
    assert not {"\x1b", "\r", "\x9b"} & set(err) and "é🦊" in err
    assert "a\x1b[2J\rb" in (tmp_path / SAMPLES).read_bytes().decode()


# At the end


@pytest.mark.parametrize(
    ("seconds", "minutes", "is_told"),
    [(29.0, 0.5, False), (31.0, 0.5, False), (45.0, 0.5, True), (45.0, None, False)],
)
def test_a_run_that_took_longer_than_asked_says_so(
    workplace: Path,
    capsys: pytest.CaptureFixture[str],
    seconds: float,
    minutes: float | None,
    is_told: bool,
) -> None:
    text = TextConfig(files=("my.txt",), tokenizer="char")
    dataset = prepare(find_source(text), text)
    state = TrainingState(9, 5.0, best_loss=3.0, best_bits_per_byte=1.5, best_step=9)
    say_result(Path("runs/my"), state, dataset, seconds, minutes)
    out, err = capsys.readouterr()
    assert out == "runs/my: validation 1.5000 bits/byte (3.0000 nats/token) at step 9\n"
    assert ("longer than the 0.5 minutes" in err) == ("ending took 00:40" in err) == is_told
    page, generate = err.splitlines()[-2:]
    assert "minigpt page" in page and "to generate:" in generate
