"""What the window is told of a run: what it is doing, from the files in its folder alone, and the
rows that these have got."""

import json
import os
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from minigpt.runs import state as state_module
from minigpt.runs.folder import JOB, JOURNAL, METRICS, PLAN, SAMPLES, STATE, STEPS, WEIGHTS
from minigpt.runs.state import keep_copied
from minigpt.studio.trainings.asking import write_job
from minigpt.studio.trainings.rows import rows_after
from minigpt.studio.trainings.shown import told_of, told_of_all
from minigpt.system.atomic import write_text
from minigpt.system.json_objects import lines_of

from .by_hand import (
    BEGAN,
    NOW,
    TEXT,
    a_job,
    a_sample,
    a_step,
    an_evaluation,
    make_run,
    write_config,
)

LEARNED: dict[str, Any] = {"phase": "training", "steps": 3, "evaluations": 1}
LEARNED |= {"has_checkpoint": True}
AGAIN: dict[str, Any] = {"started": NOW - 1, "began_before": BEGAN}  # it has said nothing yet
FULL = {"kind": "disk_full", "message": "could not write the checkpoint"}
TOO_SHORT = {"kind": "too_short", "message": "the text is too short: it has 3 tokens"}
CASES: list[tuple[str, str | None, dict[str, Any]]] = [
    ("waiting", None, {"job": a_job(is_waiting=True, started=None)}),
    ("waiting", None, {"job": a_job(is_waiting=True), "how": "finished", **LEARNED}),
    ("reading", None, {"job": a_job(started=NOW - 1)}),
    ("reading", None, {"job": a_job(**AGAIN), "how": "finished", **LEARNED}),
    ("reading", None, {"job": a_job(), "phase": "reading", "is_alive": True}),
    ("measuring", None, {"job": a_job(), "phase": "planning", "is_alive": True}),
    ("measuring", None, {"job": a_job(), "phase": "tokens", "is_alive": True}),
    ("learning", None, {"job": a_job(), "phase": "training", "is_alive": True}),
    ("learning", None, {"phase": "training", "is_alive": True}),
    ("learning", None, {"phase": "evaluating", "is_alive": True}),
    ("learning", None, {"phase": "saving", "is_alive": True}),
    ("stopping", None, {"phase": "training", "is_alive": True, "stop": ""}),
    ("stopping", None, {"phase": "training", "is_alive": True, "job": a_job(stop="stop")}),
    ("stopped", None, {"how": "stopped", "stop": "", **LEARNED}),
    ("stopped", None, {"how": "interrupted", **LEARNED}),
    ("stopped", "disk_full", {"how": "stopped", "problem": FULL, **LEARNED}),
    ("stopped", "disk_full", {"how": "failed", "problem": FULL, **LEARNED}),
    ("done", None, {"how": "finished", **LEARNED}),
    ("done", "disk_full", {"how": "finished", "problem": FULL, **LEARNED}),
    ("done", None, {"how": "finished", "is_alive": True, **LEARNED}),  # its process is leaving
    ("died", "died", LEARNED),
    ("died", "died", {"job": a_job(), **LEARNED}),
    ("failed", "died", {"phase": "planning"}),
    ("failed", "too_short", {"phase": "reading", "how": "failed", "problem": TOO_SHORT}),
    ("failed", "nothing", {"phase": "reading", "how": "stopped"}),
    ("failed", "other", {"job": a_job(), "log": "reading\nerror: no such file: x\n"}),
    ("failed", "other", {"job": a_job(), "log": ""}),
]


@pytest.mark.parametrize(("state", "kind", "files"), CASES)
def test_the_state_of_a_run_is_told_by_its_files(
    state: str, kind: str | None, files: dict[str, Any], tmp_path: Path
) -> None:
    found = told_of(make_run(tmp_path, **files), NOW)
    assert found["state"] == state
    assert (found["problem"] or {}).get("kind") == kind


def test_a_run_that_was_done_stays_so_where_going_on_with_it_fails(tmp_path: Path) -> None:
    log = "error: texts has changed since the run learned\n"
    run = make_run(tmp_path, how="finished", log=log, **LEARNED)
    write_job(run, a_job(started=NOW, began_before=BEGAN, goes_on=True))

    found = told_of(run, NOW)
    assert found["state"] == "done"
    assert found["problem"]["message"] == "texts has changed since the run learned"


def test_a_lock_alone_says_whether_a_training_lives(tmp_path: Path) -> None:
    """However long the computer has slept meanwhile."""
    run = make_run(tmp_path, is_alive=True, **LEARNED)
    assert told_of(run, NOW + 3600)["state"] == "learning"
    make_run(tmp_path, **LEARNED)
    assert told_of(run, NOW)["state"] == "died"


def test_the_figures_of_a_run_are_those_of_its_files(tmp_path: Path) -> None:
    run = make_run(tmp_path, job=a_job(), how="finished", **LEARNED)
    found = told_of(run, NOW)
    assert (found["bits"], found["letters"], found["counting_letters"]) == (2.0, 16.0, 8.0)
    assert (found["step"], found["elapsed"], found["minutes"]) == (3, 30.0, 2.0)
    assert found["parameters"] == 15
    assert found["has_learned"]
    assert found["text"] == {name: TEXT[name] for name in ("id", "name", "size", "beginning")}


def test_the_curve_of_a_run_is_planned_only_for_its_first_end(tmp_path: Path) -> None:
    run = make_run(tmp_path, job=a_job(), how="finished", **LEARNED)
    write_config(run, token_split_prob=0.1, num_evals=10)
    plan = {"bits_per_byte": 1.9, "seconds": 40.0, "ends_early": True}
    (run / PLAN).write_text(json.dumps(plan))
    curve = told_of(run, NOW)["curve"]
    assert (curve["expected_bits"], curve["ends_early_at"]) == (1.9, 40.0)
    assert (curve["harder_until"], curve["evaluations"]) == (0.8, 10)
    assert (curve["bytes_per_letter"], curve["has_letters"]) == (2.0, False)

    write_job(run, a_job(goes_on=True, minutes=9.0))
    curve = told_of(run, NOW)["curve"]
    assert (curve["expected_bits"], curve["ends_early_at"]) == (None, None)

    said = {"expected_bits_per_byte": 1.7}  # by its training
    make_run(tmp_path, how="finished", said=said, **LEARNED)
    assert told_of(run, NOW)["curve"]["expected_bits"] == 1.7


def test_the_end_of_the_first_plan_is_not_that_of_a_run_that_a_terminal_continued(
    tmp_path: Path,
) -> None:
    run = make_run(tmp_path, how="finished", **LEARNED)
    settings = {"minutes": {"value": 2.0}, "max_epochs": {"value": 1.0}}
    plan = {"seconds": 25.0, "ends_early": True, "settings": settings}
    (run / PLAN).write_text(json.dumps(plan))
    write_config(run, max_epochs=1.0)
    assert told_of(run, NOW)["curve"]["ends_early_at"] == 30.0  # it was slower than was planned
    write_config(run, max_epochs=4.0)
    assert told_of(run, NOW)["curve"]["ends_early_at"] is None


def test_how_much_a_run_copies_is_not_told_of_newer_weights(tmp_path: Path) -> None:
    run = make_run(tmp_path, how="finished", **LEARNED)
    keep_copied(run, {"share": 0.013, "usual_share": 0.015})
    assert told_of(run, NOW)["copied"] == {"share": 0.013, "unseen": 0.015}
    os.utime(run / WEIGHTS, (time.time() + 9, time.time() + 9))
    assert told_of(run, NOW)["copied"] is None


def test_a_run_of_a_terminal_names_its_text_and_counts_letters_in_what_it_writes(
    tmp_path: Path,
) -> None:
    found = told_of(make_run(tmp_path, how="finished", **LEARNED), NOW)
    assert found["text"]["id"] == "0123456789ab"
    assert found["text"]["beginning"] == "It"
    assert found["letters"] == 4.0  # 2 bits a byte, a byte a letter


def test_what_is_not_known_yet_is_null(tmp_path: Path) -> None:
    found = told_of(make_run(tmp_path, phase="reading", is_alive=True), NOW)
    for name in ("bits", "letters", "counting_letters", "step", "parameters", "text", "ends_at"):
        assert found[name] is None
    assert not found["has_learned"]


# When it ends


def test_the_end_is_expected_when_the_minutes_are_over_or_as_the_training_says(
    tmp_path: Path,
) -> None:
    reads = make_run(tmp_path, "reads", job=a_job(), phase="planning", is_alive=True)
    learns = make_run(tmp_path, "learns", phase="training", steps=3, is_alive=True)
    assert told_of(reads, NOW)["ends_at"] == round(BEGAN + 120)
    assert told_of(learns, NOW + 2)["ends_at"] == round(NOW + 60)
    assert told_of(learns, NOW + 2)["elapsed"] == 32.0


def test_what_the_training_before_has_said_does_not_count_for_the_next(tmp_path: Path) -> None:
    job = a_job(**AGAIN, minutes=60.0, goes_on=True)
    run = make_run(tmp_path, job=job, how="stopped", **LEARNED)
    assert told_of(run, NOW)["ends_at"] == round(NOW - 1 + 3600 - 30)


def test_a_clock_that_was_set_back_hides_no_training(tmp_path: Path) -> None:
    job = a_job(started=BEGAN + 3600, began_before=BEGAN - 60)
    run = make_run(tmp_path, job=job, is_alive=True, **LEARNED)
    assert told_of(run, NOW)["state"] == "learning"


def test_a_training_says_how_far_it_is_and_what_it_cannot_write(tmp_path: Path) -> None:
    run = make_run(tmp_path, phase="tokens", said={"share": 0.5}, is_alive=True)
    assert told_of(run, NOW)["share"] == 0.5

    full = {"kind": "disk_full", "message": "no room"}
    make_run(tmp_path, phase="training", said={"share": 0.5}, problem=full, is_alive=True)
    found = told_of(run, NOW)
    assert (found["state"], found["share"], found["problem"]) == ("learning", None, full)


def test_what_goes_on_counts_only_the_learning_until_its_first_new_step(tmp_path: Path) -> None:
    """From the start of its process on."""
    run = make_run(tmp_path, how="stopped", **LEARNED)
    write_job(run, a_job(goes_on=True, **AGAIN))
    found = told_of(run, NOW)
    assert (found["state"], found["goes_on_from"], found["elapsed"]) == ("reading", 30.0, 30.0)

    for phase in ("reading", "training"):
        said = {"began": NOW - 1, "goes_on_from": 30.0, "seconds": 30.0}
        make_run(tmp_path, phase=phase, said=said, is_alive=True, has_checkpoint=True)
        found = told_of(run, NOW)
        assert (found["goes_on_from"], found["elapsed"]) == (30.0, 30.0)

    said = {"began": NOW - 1, "goes_on_from": None, "seconds": 35.0}
    make_run(tmp_path, phase="training", said=said, is_alive=True)
    found = told_of(run, NOW + 3)
    assert (found["goes_on_from"], found["elapsed"]) == (None, 38.0)


# All runs


def test_those_that_wait_have_a_place_and_a_time(tmp_path: Path) -> None:
    make_run(tmp_path, "learns", job=a_job(), phase="training", is_alive=True)
    job = a_job(is_waiting=True, started=None)
    make_run(tmp_path, "second", job=replace(job, asked=NOW - 1))
    make_run(tmp_path, "first", job=replace(job, asked=NOW - 2))

    found = {run["name"]: run for run in told_of_all(tmp_path, NOW)}
    places = {name: (run["place"], run["starts_in"]) for name, run in found.items()}
    assert places == {"learns": (None, None), "first": (1, 60), "second": (2, 180)}


def test_behind_one_that_ends_by_its_steps_nobody_knows_when_it_starts(tmp_path: Path) -> None:
    job = a_job(is_waiting=True, started=None)
    of_steps = replace(job, settings={"steps": 100}, asked=BEGAN - 9)
    make_run(tmp_path, "of steps", job=of_steps)
    make_run(tmp_path, "behind", job=job)
    found = {run["name"]: run["starts_in"] for run in told_of_all(tmp_path, NOW)}
    assert found == {"of steps": 0, "behind": None}

    goes_on = replace(job, minutes=None, goes_on=True, asked=BEGAN - 9)
    run = make_run(tmp_path, "of steps", job=goes_on, how="stopped", **LEARNED)
    write_config(run, steps=100)
    found = {run["name"]: run["starts_in"] for run in told_of_all(tmp_path, NOW)}
    assert found == {"of steps": 0, "behind": None}


def test_folders_that_are_no_runs_are_left_out(tmp_path: Path) -> None:
    make_run(tmp_path, "run", **LEARNED)
    make_run(tmp_path, ".bin", **LEARNED)
    (tmp_path / "letters" / JOURNAL).mkdir(parents=True)
    (tmp_path / "note.txt").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "run")
    assert [run["name"] for run in told_of_all(tmp_path, NOW)] == ["run"]
    assert told_of_all(tmp_path / "nowhere", NOW) == []


def test_a_run_that_was_deleted_is_gone(tmp_path: Path) -> None:
    assert told_of(tmp_path / "nobody", NOW)["state"] == "gone"


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"asked": "x"}', "null", "\0"])
def test_damaged_files_do_not_hide_a_run(text: str, tmp_path: Path) -> None:
    run = make_run(tmp_path, how="finished", **LEARNED)
    for name in (f"{JOURNAL}/{JOB}", f"{JOURNAL}/copied.json", "config.json", "plan.json"):
        (run / name).write_text(text)
    for name in (METRICS, STEPS):
        with open(run / name, "a") as file:
            file.write(text)
    assert told_of(run, NOW)["state"] == "done"


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", '{"seconds": "x", "problem": 3, "phase": []}', '{"time": NaN}']
)
def test_a_damaged_state_hides_no_run(text: str, tmp_path: Path) -> None:
    run = make_run(tmp_path, is_alive=True, **LEARNED)
    (run / JOURNAL / STATE).write_text(text)
    assert told_of(run, NOW)["state"] in ("reading", "learning")


def test_a_second_look_reads_no_file_that_has_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        make_run(tmp_path, f"run-{number}", job=a_job(), how="finished", **LEARNED)
    first = told_of_all(tmp_path, NOW)
    monkeypatch.setattr(state_module, "read_metrics", lambda *_: pytest.fail("read again"))
    monkeypatch.setattr(state_module, "count_weights", lambda *_: pytest.fail("read again"))
    assert told_of_all(tmp_path, NOW) == first


def test_looking_at_runs_makes_no_files(tmp_path: Path) -> None:
    run = make_run(tmp_path, **LEARNED)
    before = sorted(path.name for path in run.rglob("*"))
    told_of_all(tmp_path, NOW)
    assert sorted(path.name for path in run.rglob("*")) == before


# Rows


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path, phase="training", steps=3, evaluations=2)


def add(path: Path, *rows: dict[str, Any]) -> None:
    with open(path, "a") as file:
        file.write(lines_of(rows))


def steps_of(told: dict[str, Any]) -> list[int]:
    return [row["step"] for row in told["rows"]["steps"]]


def test_a_reader_gets_all_rows_once(run: Path) -> None:
    told = rows_after(run, "")
    assert {name: len(rows) for name, rows in told["rows"].items()} == {
        "steps": 3, "evaluations": 2, "samples": 1,
    }  # fmt: skip
    assert told["rows"]["steps"][0] == a_step(1)
    nothing = {"rows": {"steps": [], "evaluations": [], "samples": []}, "anew": []}
    assert rows_after(run, told["after"]) == {**nothing, "after": told["after"]}

    add(run / STEPS, a_step(4))
    add(run / JOURNAL / SAMPLES, a_sample(4))
    told = rows_after(run, told["after"])
    assert told["rows"] == {"steps": [a_step(4)], "evaluations": [], "samples": [a_sample(4)]}
    assert rows_after(run, told["after"]) == {**nothing, "after": told["after"]}


def test_half_a_row_waits_for_its_other_half(run: Path) -> None:
    after = rows_after(run, "")["after"]
    line = json.dumps(a_step(4))
    with open(run / STEPS, "a") as file:
        file.write(line[:10])
    assert rows_after(run, after)["after"] == after
    with open(run / STEPS, "a") as file:
        file.write(line[10:] + "\n")
    assert rows_after(run, after)["rows"]["steps"] == [a_step(4)]


@pytest.mark.parametrize("steps", [(1, 2), (1, 2, 9), (1, 2, 8, 9, 10, 11), ()])
def test_a_file_that_was_written_anew_is_read_anew(steps: tuple[int, ...], run: Path) -> None:
    after = rows_after(run, "")["after"]
    write_text(lines_of(map(a_step, steps)), run / STEPS)  # as a training does that has gone back
    write_text(lines_of(map(an_evaluation, (1, 2, 3))), run / METRICS)  # as each evaluation does
    told = rows_after(run, after)
    assert told["anew"] == ["steps", "evaluations"]
    assert steps_of(told) == [*steps]
    assert len(told["rows"]["evaluations"]) == 3
    assert rows_after(run, told["after"])["anew"] == []


def test_what_a_training_wrote_anew_twice_is_read_anew_by_when_it_began(run: Path) -> None:
    """The second of two new files may have the number that the first had."""
    after = rows_after(run, "")["after"]
    state = json.loads((run / JOURNAL / STATE).read_text())
    (run / JOURNAL / STATE).write_text(json.dumps({**state, "began": state["began"] + 60}))
    with open(run / STEPS, "r+") as file:  # in its place: the number stays
        file.write(lines_of(map(a_step, (1, 2))))
        file.truncate()
    add(run / STEPS, *map(a_step, (7, 8, 9)))
    told = rows_after(run, after)
    assert "steps" in told["anew"] and steps_of(told) == [1, 2, 7, 8, 9]
    assert rows_after(run, told["after"])["anew"] == []


def test_of_a_long_curve_its_beginning_and_its_end_are_kept(run: Path) -> None:
    (run / STEPS).write_text(lines_of(a_step(n) for n in range(1, 5001)))
    told = rows_after(run, "")
    steps = steps_of(told)
    assert len(steps) == 1000
    assert steps == sorted(set(steps))
    assert (steps[0], steps[-1]) == (1, 5000)
    assert max(b - a for a, b in pairwise(steps)) <= 6

    add(run / STEPS, *(a_step(n) for n in range(5001, 5501)))
    steps = steps_of(rows_after(run, told["after"]))
    assert len(steps) <= 100
    assert steps[-1] == 5500


@pytest.mark.parametrize("after", ["x", "1.2", "-1.0-0.0-0.0", "0-0-0", "9" * 99, "\0", "-"])
def test_what_is_no_place_is_the_beginning(after: str, run: Path) -> None:
    assert rows_after(run, after) == rows_after(run, "")


def test_lines_that_are_no_rows_are_left_out(run: Path) -> None:
    with open(run / STEPS, "ab") as file:
        file.write(b"\xff\xfe\n[1]\nnull\n{\n" + b"[" * 100_000 + b"\n")
    assert len(steps_of(rows_after(run, ""))) == 3


def test_a_run_of_which_nothing_is_there_yet_has_no_rows(tmp_path: Path) -> None:
    told = rows_after(tmp_path / "nobody", "")
    assert steps_of(told) == []
    make_run(tmp_path, "nobody", phase="training", steps=2)
    told = rows_after(tmp_path / "nobody", told["after"])
    assert (steps_of(told), told["anew"]) == ([1, 2], [])
