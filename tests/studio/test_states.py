"""What a run is doing, from the files in its folder alone."""

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from minigpt.runs.folder import LOCK, METRICS, PLAN, STEPS, WEIGHTS
from minigpt.runs.journal import ALIVE, HELD, JOB, JOURNAL, ROWS, keep_copied
from minigpt.studio.runs.jobs import write_job
from minigpt.studio.runs.states import States
from minigpt.system.json_objects import lines_of

from .by_hand import BEGAN, NOW, PHASES, TEXT, a_job, a_step, make_run, write_config

LEARNED: dict[str, Any] = {"phases": PHASES, "steps": 3, "evaluations": 1, "has_checkpoint": True}
FAILED_TO_READ = {"how": "failed", "message": "the text is too short: it has 3 tokens"}
CASES: list[tuple[str, str | None, dict[str, Any]]] = [
    ("waiting", None, {"job": a_job(is_waiting=True, started=None)}),
    ("waiting", None, {"job": a_job(is_waiting=True), "end": {"how": "finished"}, **LEARNED}),
    ("reading", None, {"job": a_job(started=NOW - 1)}),
    ("reading", None, {"job": a_job(), "phases": PHASES[:1], "alive": 1.0}),
    ("measuring", None, {"job": a_job(), "phases": PHASES[:2], "alive": 1.0}),
    ("measuring", None, {"job": a_job(), "phases": PHASES[:3], "alive": 1.0}),
    ("learning", None, {"job": a_job(), "phases": PHASES, "alive": 1.0}),
    ("learning", None, {"phases": PHASES[3:], "alive": 9.0}),
    ("learning", None, {"phases": (*PHASES, "slept"), "alive": 1.0}),
    ("stopping", None, {"phases": PHASES, "alive": 1.0, "stop": ""}),
    ("stopping", None, {"phases": PHASES, "alive": 1.0, "job": a_job(stop="stop")}),
    ("stopped", None, {"end": {"how": "stopped"}, "stop": "", **LEARNED}),
    ("stopped", None, {"end": {"how": "interrupted"}, **LEARNED}),
    ("done", None, {"end": {"how": "finished"}, **LEARNED}),
    ("died", "died", {"alive": 11.0, **LEARNED}),
    ("died", "died", {"job": a_job(), **LEARNED}),
    ("failed", "died", {"phases": PHASES[:2], "alive": 11.0}),
    ("failed", "too_short", {"phases": PHASES[:1], "end": FAILED_TO_READ}),
    ("failed", "nothing", {"phases": PHASES[:1], "end": {"how": "stopped"}}),
    ("failed", "text_gone", {"job": a_job(), "log": "reading\nerror: no such file: x\n"}),
    ("failed", "other", {"job": a_job(), "log": ""}),
]


@pytest.mark.parametrize(("state", "kind", "files"), CASES)
def test_the_state_of_a_run_is_told_by_its_files(
    state: str, kind: str | None, files: dict[str, Any], tmp_path: Path
) -> None:
    found = States(tmp_path).of(make_run(tmp_path, **files), NOW)
    assert found["state"] == state
    assert (found["problem"] or {}).get("kind") == kind


def test_a_run_that_was_done_stays_so_where_going_on_with_it_fails(tmp_path: Path) -> None:
    run = make_run(tmp_path, end={"how": "finished"}, **LEARNED)
    write_job(run, a_job(started=NOW, goes_on=True))
    (run / JOURNAL / HELD).touch()
    (run / JOURNAL / "log.txt").write_text("error: texts has changed since the run learned\n")

    found = States(tmp_path).of(run, NOW)
    assert found["state"] == "done"
    assert found["problem"]["kind"] == "text_changed"


@pytest.mark.parametrize("lock", [LOCK, f"{JOURNAL}/{HELD}"])
def test_a_lock_that_is_held_keeps_a_training_alive_while_the_computer_sleeps(
    lock: str, tmp_path: Path
) -> None:
    run = make_run(tmp_path, alive=3600.0, **LEARNED)
    states = States(tmp_path)
    with FileLock(run / lock):
        assert states.of(run, NOW)["state"] == "learning"
    assert states.of(run, NOW)["state"] == "died"


def test_what_has_ended_is_alive_again_once_it_is_touched(tmp_path: Path) -> None:
    run = make_run(tmp_path, alive=60.0, **LEARNED)
    states = States(tmp_path)
    assert states.of(run, NOW)["state"] == "died"
    (run / JOURNAL / ALIVE).touch()
    assert states.of(run, NOW)["state"] == "learning"


def test_the_figures_of_a_run_are_those_of_its_files(tmp_path: Path) -> None:
    run = make_run(tmp_path, job=a_job(), end={"how": "finished"}, **LEARNED)
    found = States(tmp_path).of(run, NOW)
    assert (found["bits"], found["letters"], found["counting_letters"]) == (2.0, 16.0, 8.0)
    assert (found["step"], found["elapsed"], found["minutes"]) == (3, 30.0, 2.0)
    assert found["parameters"] == 15
    assert found["has_page"]
    assert found["text"] == {name: TEXT[name] for name in ("id", "name", "size", "beginning")}


def test_the_curve_of_a_run_is_planned_only_for_its_first_end(tmp_path: Path) -> None:
    run = make_run(tmp_path, job=a_job(), end={"how": "finished"}, **LEARNED)
    write_config(run, token_split_prob=0.1, num_evals=10)
    plan = {"bits_per_byte": 1.9, "seconds": 40.0, "ends_early": True}
    (run / PLAN).write_text(json.dumps(plan))
    curve = States(tmp_path).of(run, NOW)["curve"]
    assert (curve["expected_bits"], curve["ends_early_at"]) == (1.9, 40.0)
    assert (curve["harder_until"], curve["evaluations"]) == (0.8, 10)
    assert (curve["bytes_per_letter"], curve["has_letters"]) == (2.0, False)

    write_job(run, a_job(goes_on=True, minutes=9.0))
    curve = States(tmp_path).of(run, NOW)["curve"]
    assert (curve["expected_bits"], curve["ends_early_at"]) == (None, None)

    with open(run / JOURNAL / ROWS, "a") as file:  # what its training tells
        file.write(lines_of([{"time": NOW, "phase": "training", "expected_bits_per_byte": 1.7}]))
    assert States(tmp_path).of(run, NOW)["curve"]["expected_bits"] == 1.7


def test_how_much_a_run_copies_is_not_told_of_newer_weights(tmp_path: Path) -> None:
    run = make_run(tmp_path, end={"how": "finished"}, **LEARNED)
    keep_copied(run, {"share": 0.013, "usual_share": 0.015})
    states = States(tmp_path)
    assert states.of(run, NOW)["copied"] == {"share": 0.013, "unseen": 0.015}
    os.utime(run / WEIGHTS, (time.time() + 9, time.time() + 9))
    assert states.of(run, NOW)["copied"] is None


def test_a_run_of_a_terminal_names_its_text_and_counts_letters_in_what_it_writes(
    tmp_path: Path,
) -> None:
    found = States(tmp_path).of(make_run(tmp_path, end={"how": "finished"}, **LEARNED), NOW)
    assert found["text"]["id"] == "0123456789ab"
    assert found["text"]["beginning"] == "It"
    assert found["letters"] == 4.0  # 2 bits a byte, a byte a letter


def test_what_is_not_known_yet_is_null(tmp_path: Path) -> None:
    found = States(tmp_path).of(make_run(tmp_path, phases=PHASES[:1], alive=1.0), NOW)
    for name in ("bits", "letters", "counting_letters", "step", "parameters", "text", "ends_at"):
        assert found[name] is None
    assert not found["has_page"]


def test_the_end_is_expected_when_the_minutes_are_over(tmp_path: Path) -> None:
    waits = make_run(tmp_path, "waits", job=a_job(), phases=PHASES[:2], alive=1.0)
    learns = make_run(tmp_path, "learns", phases=PHASES, steps=3, alive=1.0)
    os.utime(learns / STEPS, (NOW - 2, NOW - 2))
    states = States(tmp_path)
    assert states.of(waits, NOW)["ends_at"] == round(BEGAN + 120)
    assert states.of(learns, NOW)["ends_at"] == round(BEGAN + 120)
    assert states.of(learns, NOW)["elapsed"] == 32.0


def test_a_training_says_when_it_ends_and_what_it_cannot_write(tmp_path: Path) -> None:
    run = make_run(tmp_path, phases=PHASES[:3], alive=1.0)
    with open(run / JOURNAL / ROWS, "a") as file:
        file.write(lines_of([{"time": NOW - 2, "phase": "tokens", "share": 0.5}]))
    states = States(tmp_path)
    assert states.of(run, NOW)["share"] == 0.5

    full = {"time": NOW, "phase": "problem", "kind": "disk_full", "message": "no room"}
    with open(run / JOURNAL / ROWS, "a") as file:
        file.write(lines_of([{"time": NOW - 1, "phase": "training", "ends": NOW + 77}, full]))
    found = states.of(run, NOW)
    assert (found["state"], found["ends_at"], found["share"]) == ("learning", round(NOW + 77), None)
    assert found["problem"] == {"kind": "disk_full", "message": "no room"}

    with open(run / JOURNAL / ROWS, "a") as file:
        file.write(lines_of([{"time": NOW, "phase": "solved", "kind": "disk_full"}]))
    assert states.of(run, NOW)["problem"] is None


def test_a_training_by_steps_ends_as_its_speed_says(tmp_path: Path) -> None:
    run = make_run(tmp_path, phases=PHASES, steps=3, alive=1.0)
    write_config(run, steps=30)
    os.utime(run / STEPS, (NOW, NOW))
    found = States(tmp_path).of(run, NOW)
    assert found["minutes"] is None
    assert found["ends_at"] == round(NOW + 270)  # a tenth is done in 30 seconds


@pytest.mark.parametrize(("done", "left"), [(0.366, 60), (0.6, 20)])
def test_the_last_seconds_of_the_minutes_are_for_saving(
    done: float, left: int, tmp_path: Path
) -> None:
    run = make_run(tmp_path, phases=PHASES, steps=3, alive=1.0)
    with open(run / STEPS, "a") as file:
        file.write(lines_of([{**a_step(3), "done": done}]))
    os.utime(run / STEPS, (NOW, NOW))  # by its speed it is done in 52 or in 20 seconds
    assert States(tmp_path).of(run, NOW)["ends_at"] == round(NOW + left)


def test_only_the_learning_counts_of_a_training_that_goes_on(tmp_path: Path) -> None:
    run = make_run(tmp_path, job=a_job(goes_on=True), alive=1.0, **LEARNED)
    os.utime(run / STEPS, (BEGAN - 100, BEGAN - 100))
    states = States(tmp_path)
    assert states.of(run, NOW)["elapsed"] == 30.0 + 45.0  # its phase began 45 seconds ago

    write_job(run, a_job(goes_on=True, started=NOW - 2))
    assert states.of(run, NOW)["elapsed"] == 30.0


def test_those_that_wait_have_a_place_and_a_time(tmp_path: Path) -> None:
    make_run(tmp_path, "learns", job=a_job(), phases=PHASES, alive=1.0)
    job = a_job(is_waiting=True, started=None)
    make_run(tmp_path, "second", job=replace(job, asked=NOW - 1))
    make_run(tmp_path, "first", job=replace(job, asked=NOW - 2))

    found = {run["name"]: run for run in States(tmp_path).all(NOW)}
    places = {name: (run["place"], run["starts_in"]) for name, run in found.items()}
    assert places == {"learns": (None, None), "first": (1, 60), "second": (2, 180)}


def test_folders_that_are_no_runs_are_left_out(tmp_path: Path) -> None:
    make_run(tmp_path, "run", **LEARNED)
    make_run(tmp_path, ".bin", **LEARNED)
    (tmp_path / "letters" / JOURNAL).mkdir(parents=True)
    (tmp_path / "note.txt").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "run")
    assert [run["name"] for run in States(tmp_path).all(NOW)] == ["run"]
    assert States(tmp_path / "nowhere").all(NOW) == []


def test_a_run_that_was_deleted_is_gone(tmp_path: Path) -> None:
    assert States(tmp_path).of(tmp_path / "nobody", NOW)["state"] == "gone"


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"asked": "x"}', "null", "\0"])
def test_damaged_files_do_not_hide_a_run(text: str, tmp_path: Path) -> None:
    run = make_run(tmp_path, end={"how": "finished"}, **LEARNED)
    for name in (f"{JOURNAL}/{JOB}", f"{JOURNAL}/copied.json", "config.json", "plan.json"):
        (run / name).write_text(text)
    for name in (METRICS, STEPS, f"{JOURNAL}/{ROWS}"):
        with open(run / name, "a") as file:
            file.write(text)
    assert States(tmp_path).of(run, NOW)["state"] == "done"


def test_a_second_look_reads_no_file_that_has_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        make_run(tmp_path, f"run-{number}", job=a_job(), end={"how": "finished"}, **LEARNED)
    states = States(tmp_path)
    first = states.all(NOW)

    monkeypatch.setattr(
        "minigpt.studio.runs.states.read_facts", lambda *_: pytest.fail("read again")
    )
    monkeypatch.setattr(
        "minigpt.studio.runs.states._is_held", lambda *_: pytest.fail("tried again")
    )
    assert states.all(NOW) == first


def test_a_new_step_is_seen_at_once(tmp_path: Path) -> None:
    run = make_run(tmp_path, phases=PHASES, steps=3, alive=1.0)
    states = States(tmp_path)
    assert states.of(run, NOW)["step"] == 3
    with open(run / STEPS, "a") as file:
        file.write(str(a_step(4)).replace("'", '"') + "\n{half a row")
    assert states.of(run, NOW)["step"] == 4


def test_looking_at_runs_makes_no_files(tmp_path: Path) -> None:
    run = make_run(tmp_path, alive=60.0, **LEARNED)
    before = sorted(path.name for path in run.rglob("*"))
    States(tmp_path).all(NOW)
    assert sorted(path.name for path in run.rglob("*")) == before
