"""What a person sees of a training, and what is written down of it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt.runs import METRICS, PICTURE, SAMPLES
from minigpt.training.checkpoint import TrainingState
from minigpt.training.evaluation import Evaluation
from minigpt.training.report import Report, clock, draw, read_metrics

few = settings(max_examples=25, deadline=None)


def report(folder: Path) -> Report:
    return Report(folder, tokens_per_step=10, started=0.0)


def evaluate_once(folder: Path, step: int) -> None:
    one, state = report(folder), TrainingState(step, train_loss=2.0, train_bits_per_byte=1.25)
    one.step(TrainingState(step - 1), 0.5, 60.0)
    one.step(state, 0.5, 60.0)
    one.write(one.evaluation(state, Evaluation(3.0, 1.5, 100, 200), True, f"sample {step}"))
    one.close()


# Clock


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0:00"),
        (59.4, "0:59"),
        (59.6, "1:00"),
        (754, "12:34"),
        (3599.6, "1:00:00"),
        (3661, "1:01:01"),
        (360_000, "100:00:00"),
    ],
)
def test_the_clock_shows_minutes_and_from_an_hour_on_hours(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown


@given(seconds=st.floats(0, 1e6))
@few
def test_the_clock_can_be_read_back(seconds: float) -> None:
    assert re.fullmatch(r"(\d+:[0-5]\d|[1-5]?\d):[0-5]\d", clock(seconds))
    *hours, minutes, whole = map(int, clock(seconds).split(":"))
    assert 3600 * sum(hours) + 60 * minutes + whole == round(seconds)


# metrics.jsonl and samples.txt


def test_an_evaluation_is_a_row_of_metrics_a_sample_and_a_picture(tmp_path: Path) -> None:
    evaluate_once(tmp_path, 5)
    (row,) = read_metrics(tmp_path / METRICS)
    assert row["step"] == 5
    assert row["train_loss"] == 2.0 and row["train_bits_per_byte"] == 1.25
    assert row["val_loss"] == 3.0 and row["val_bits_per_byte"] == 1.5
    assert row["seconds"] > 0 and row["tokens_per_second"] > 0
    assert (tmp_path / SAMPLES).read_text() == "--- step 5\nsample 5\n"
    assert (tmp_path / PICTURE).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("before", [0, 1000])
def test_the_speed_counts_the_tokens_of_this_sitting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """Two steps of ten tokens in ten seconds, whatever the sittings before had done and however
    long evaluations take."""
    now = [0.0]
    monkeypatch.setattr("minigpt.training.report.time.monotonic", lambda: now[0])
    one = report(tmp_path)
    for first in (before, before + 3):
        for step in (first, first + 1, first + 2):
            one.step(TrainingState(step), 0.5, 60.0)
            now[0] += 5.0
        now[0] += 60.0
        row = one.evaluation(TrainingState(step), Evaluation(3.0, 1.5, 100, 200), True, "")
        assert row.figures["tokens_per_second"] == 2.0


def test_the_picture_is_drawn_now_and_then_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, drawn = [1000.0], []
    monkeypatch.setattr("minigpt.training.report.time.monotonic", lambda: now[0])
    monkeypatch.setattr("minigpt.training.report.draw", lambda rows, *_: drawn.append(len(rows)))
    one = report(tmp_path)
    for step in range(1, 7):
        state, result = TrainingState(step, finished=step == 6), Evaluation(3.0, 1.5, 100, 200)
        one.write(one.evaluation(state, result, True, ""))
        now[0] += 4.0
    assert drawn == [1, 4, 6]


def test_a_training_that_goes_back_has_no_negative_speed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("minigpt.training.report.time.monotonic", lambda: now[0])
    one = report(tmp_path)
    for step in (10, 11, 3, 4):
        one.step(TrainingState(step), 0.5, 60.0)
        now[0] += 5.0
    row = one.evaluation(TrainingState(4), Evaluation(3.0, 1.5, 100, 200), True, "")
    assert row.figures["tokens_per_second"] == 2.0


def test_what_was_written_about_steps_that_are_taken_again_is_dropped(tmp_path: Path) -> None:
    """A training that was killed after an evaluation goes back to the checkpoint before it."""
    for step in (2, 4, 6, 4):
        evaluate_once(tmp_path, step)
    assert [row["step"] for row in read_metrics(tmp_path / METRICS)] == [2, 4]
    samples = (tmp_path / SAMPLES).read_text()
    assert samples == "--- step 2\nsample 2\n--- step 4\nsample 4\n"


@pytest.mark.parametrize("rest", ['{"step": 2, "sec', "[1, 2]\n", "\n\n", "}\n"], ids=repr)
def test_a_line_that_is_no_row_is_passed_over(tmp_path: Path, rest: str) -> None:
    evaluate_once(tmp_path, 1)
    with open(tmp_path / METRICS, "a") as file:
        file.write(rest)
    assert [row["step"] for row in read_metrics(tmp_path / METRICS)] == [1]


def test_what_follows_a_half_written_line_is_not_lost(tmp_path: Path) -> None:
    """A power cut in the middle of a line, then a resumed training."""
    evaluate_once(tmp_path, 1)
    with open(tmp_path / METRICS, "a") as file:
        file.write('{"step": 2, "sec')
    evaluate_once(tmp_path, 2)
    evaluate_once(tmp_path, 3)
    assert [row["step"] for row in read_metrics(tmp_path / METRICS)] == [1, 2, 3]


def test_rows_from_before_training_was_counted_in_bytes_are_kept_and_drawn(tmp_path: Path) -> None:
    evaluate_once(tmp_path, 1)
    (row,) = read_metrics(tmp_path / METRICS)
    older = {name: row[name] for name in row if name != "train_bits_per_byte"}
    damaged = row | {"train_bits_per_byte": "1.0"}
    lines = [json.dumps(r) for r in (older, damaged, row)]
    (tmp_path / METRICS).write_text("\n".join(lines))
    assert read_metrics(tmp_path / METRICS) == [older, row]
    draw([older, row], tmp_path / "two.png")
    assert (tmp_path / "two.png").stat().st_size > 1000


def test_without_a_file_there_are_no_rows(tmp_path: Path) -> None:
    assert read_metrics(tmp_path / METRICS) == []


def test_every_row_is_json_on_one_line(tmp_path: Path) -> None:
    evaluate_once(tmp_path, 1)
    lines = (tmp_path / METRICS).read_text().splitlines()
    assert len(lines) == 1 and isinstance(json.loads(lines[0]), dict)


def test_one_row_is_enough_for_a_picture(tmp_path: Path) -> None:
    row: dict[str, Any] = {"seconds": 1.0, "train_bits_per_byte": 1.0, "val_bits_per_byte": 2.0}
    draw([row], tmp_path / "one.png")
    assert (tmp_path / "one.png").stat().st_size > 1000
    assert list(tmp_path.iterdir()) == [tmp_path / "one.png"]
