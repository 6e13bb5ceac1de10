"""The rows that a training adds to the files of its run, after a cursor."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from minigpt.runs.folder import METRICS, STEPS
from minigpt.runs.journal import JOURNAL, ROWS, TEXTS
from minigpt.studio.runs.rows import BEGINNING, rows_after
from minigpt.system.json_objects import lines_of

from .by_hand import PHASES, a_sample, a_step, an_evaluation, make_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path, phases=PHASES, steps=3, evaluations=2)


def add(path: Path, *rows: dict[str, Any]) -> None:
    with open(path, "a") as file:
        file.write(lines_of(rows))


def names(events: list[dict[str, Any]]) -> list[str]:
    return [event["event"] for event in events]


def test_a_reader_gets_all_rows_once(run: Path) -> None:
    events, cursor = rows_after(run, BEGINNING)
    assert names(events) == ["phase"] * 4 + ["step"] * 3 + ["evaluation"] * 2 + ["sample"]
    assert events[4]["data"] == a_step(1)
    assert rows_after(run, cursor) == ([], cursor)

    add(run / STEPS, a_step(4))
    add(run / JOURNAL / TEXTS, a_sample(4))
    add(run / JOURNAL / ROWS, {"time": 1, "phase": "end", "how": "finished", "message": ""})
    events, cursor = rows_after(run, cursor)
    assert names(events) == ["end", "step", "sample"]
    assert rows_after(run, cursor) == ([], cursor)


def test_problems_and_the_end_are_events_of_their_own(run: Path) -> None:
    _, cursor = rows_after(run, BEGINNING)
    full = {"time": 1, "phase": "problem", "kind": "disk_full", "message": "no room"}
    solved = {"time": 2, "phase": "solved", "kind": "disk_full"}
    failed = {"time": 3, "phase": "end", "how": "failed", "kind": "memory", "message": "too little"}
    add(run / JOURNAL / ROWS, full, solved, failed)
    events, _ = rows_after(run, cursor)
    assert names(events) == ["problem", "solved", "end"]
    assert [event["data"] for event in events] == [full, solved, failed]


def test_half_a_row_waits_for_its_other_half(run: Path) -> None:
    _, cursor = rows_after(run, BEGINNING)
    line = json.dumps(a_step(4))
    with open(run / STEPS, "a") as file:
        file.write(line[:10])
    assert rows_after(run, cursor) == ([], cursor)
    with open(run / STEPS, "a") as file:
        file.write(line[10:] + "\n")
    (event,), _ = rows_after(run, cursor)
    assert event["data"] == a_step(4)


def test_a_file_that_is_replaced_by_a_longer_one_is_only_read_on(run: Path) -> None:
    _, cursor = rows_after(run, BEGINNING)
    (run / METRICS).write_text(lines_of(an_evaluation(n) for n in (1, 2, 3)))  # as a training does
    events, _ = rows_after(run, cursor)
    assert names(events) == ["evaluation"]


@pytest.mark.parametrize("steps", [(1, 2), (1, 2, 9), (1, 2, 8, 9, 10, 11), ()])
def test_a_file_that_was_written_anew_is_read_anew(steps: tuple[int, ...], run: Path) -> None:
    _, cursor = rows_after(run, BEGINNING)
    (run / STEPS).write_text(lines_of(map(a_step, steps)))
    events, cursor = rows_after(run, cursor)
    assert events[0] == {"event": "again", "data": {"of": "step"}}
    assert [event["data"]["step"] for event in events[1:]] == [*steps]
    assert rows_after(run, cursor) == ([], cursor)


def test_of_a_long_curve_its_beginning_and_its_end_are_kept(run: Path) -> None:
    (run / STEPS).write_text(lines_of(a_step(n) for n in range(1, 5001)))
    events, cursor = rows_after(run, BEGINNING)
    steps = [event["data"]["step"] for event in events if event["event"] == "step"]
    assert len(steps) == 1000
    assert steps == sorted(set(steps))
    assert (steps[0], steps[-1]) == (1, 5000)
    assert max(b - a for a, b in pairwise(steps)) <= 6

    add(run / STEPS, *(a_step(n) for n in range(5001, 5501)))
    events, _ = rows_after(run, cursor)
    assert len(events) <= 100
    assert events[-1]["data"]["step"] == 5500


@pytest.mark.parametrize("cursor", ["x", "1.2", "-1.0-0.0-0.0-0.0", "0-0-0-0", "9" * 99, "\0", "-"])
def test_a_cursor_that_is_none_is_the_beginning(cursor: str, run: Path) -> None:
    assert rows_after(run, cursor) == rows_after(run, BEGINNING)


def test_lines_that_are_no_rows_are_left_out(run: Path) -> None:
    with open(run / STEPS, "ab") as file:
        file.write(b"\xff\xfe\n[1]\nnull\n{\n" + b"[" * 100_000 + b"\n")
    events, _ = rows_after(run, BEGINNING)
    assert names(events).count("step") == 3


def test_a_run_of_which_nothing_is_there_yet_has_no_rows(tmp_path: Path) -> None:
    events, cursor = rows_after(tmp_path / "nobody", BEGINNING)
    assert events == []
    make_run(tmp_path, "nobody", phases=PHASES)
    assert names(rows_after(tmp_path / "nobody", cursor)[0]) == ["phase"] * 4
