"""The line of trainings: one at a time, the one that has waited longest first."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from minigpt.runs.folder import JOURNAL, LOG, STATE, STOP
from minigpt.studio.answers import Refusal
from minigpt.studio.trainings import line as line_module
from minigpt.studio.trainings.asking import (
    ask,
    free_run,
    go_on,
    leave_line,
    read_job,
    run_name,
    start_command,
    stop,
    write_job,
)
from minigpt.studio.trainings.line import Line
from minigpt.studio.trainings.shown import told_of, told_of_all
from minigpt.studio.workspace import Workspace
from tests.hostile import NO_ROOM

from .by_hand import TEXT, a_job, make_run, write_config

Started = list[list[str]]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """The commands that were started; none of them does anything."""
    commands: Started = []

    def start(module: str, arguments: list[str], folder: Path, log: Path) -> int:
        commands.append(arguments)
        return 1

    monkeypatch.setattr(line_module, "start_detached", start)
    return commands


def ask_for(workspace: Workspace, name: str, **settings: Any) -> Path:
    return ask(workspace, text=TEXT, name=name, minutes=2.0, settings=settings)


def end(run: Path, how: str = "finished") -> Path:
    """Let a training end, one that was started or one of before."""
    return make_run(
        run.parent,
        run.name,
        job=a_job(),
        phase="training",
        steps=3,
        evaluations=1,
        has_checkpoint=True,
        how=how,
    )


def test_a_stop_that_was_done_does_not_stop_whoever_goes_on_elsewhere(
    workspace: Workspace, started: Started
) -> None:
    run = ask_for(workspace, "diary")
    line = Line(workspace)
    line.look()
    stop(run)
    job = read_job(run)
    assert job is not None and job.stop == "stop"
    line.look()
    assert read_job(run) == job  # it is still to be stopped: its process has just begun

    end(run, "stopped")
    write_job(run, replace(job, started=a_job().started))
    line.look()
    after = read_job(run)
    assert after is not None and after.stop is None


@pytest.mark.parametrize("has_spoken", [True, False])
def test_a_stop_is_of_one_training_even_if_the_studio_is_closed_before_that_has_left(
    has_spoken: bool, workspace: Workspace, started: Started
) -> None:
    began = a_job().started
    run = make_run(workspace.runs, job=a_job(), phase="training" if has_spoken else None)
    make_run(workspace.runs, phase="training" if has_spoken else None, is_alive=True)
    stop(run)
    (run / JOURNAL / STOP).unlink()  # as a training does that begins
    make_run(workspace.runs, phase="training", is_alive=True)
    Line(workspace).look()
    job = read_job(run)
    assert (run / JOURNAL / STOP).exists()
    assert job is not None and (job.stop, job.stop_began) == ("stop", began)

    # It ends, a terminal goes on with it, and then the studio is opened again.
    (run / JOURNAL / STOP).unlink()
    said = {"began": time.time()}
    make_run(workspace.runs, phase="training", is_alive=True, said=said)
    Line(workspace).look()
    assert not (run / JOURNAL / STOP).exists()
    assert told_of(run)["state"] == "learning"


def test_the_oldest_request_starts_and_the_others_wait_for_its_end(
    workspace: Workspace, started: Started
) -> None:
    second = ask_for(workspace, "second")
    write_job(second, replace(read_job(second) or a_job(), asked=time.time() + 5))
    first = ask_for(workspace, "first")
    line = Line(workspace)

    assert line.look() == first
    assert [line.look() for _ in range(3)] == [None, None, None]
    end(first)
    assert line.look() == second
    assert [command[2] for command in started] == ["runs/first", "runs/second"]


def test_nothing_starts_while_a_terminal_trains(workspace: Workspace, started: Started) -> None:
    make_run(workspace.runs, "terminal", phase="training", is_alive=True)
    ask_for(workspace, "waits")
    assert Line(workspace).look() is None
    assert started == []


def test_a_studio_that_was_killed_is_followed_by_one_that_goes_on_with_the_line(
    workspace: Workspace, started: Started
) -> None:
    first, second = ask_for(workspace, "first"), ask_for(workspace, "second")
    assert Line(workspace).look() == first
    assert Line(workspace).look() is None  # the first one has just begun
    assert {run["name"]: run["state"] for run in told_of_all(workspace.runs)} == {
        "first": "reading",
        "second": "waiting",
    }
    end(first)
    assert Line(workspace).look() == second


def test_a_request_that_cannot_be_written_leaves_nothing(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise NO_ROOM

    monkeypatch.setattr("minigpt.studio.trainings.asking.write_text", fail)
    with pytest.raises(OSError, match="No space"):
        ask_for(workspace, "diary")
    assert [*workspace.runs.iterdir()] == []


def test_what_cannot_be_started_has_failed_and_holds_up_nobody(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any, **settings: Any) -> int:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(line_module, "start_detached", refuse)
    run = ask_for(workspace, "unlucky")
    line = Line(workspace)
    assert line.look() == run
    found = told_of(run)
    assert found["state"] == "failed"
    assert "temporarily unavailable" in found["problem"]["message"]
    assert line.look() is None


def test_settings_and_names_are_never_taken_for_options(workspace: Workspace) -> None:
    job = a_job(settings={"seed": 3, "sample_prompt": "--out x", "anonymous": True, "silence": 2.0})
    command = start_command(workspace, workspace.runs / "my run", job)
    assert command[:5] == [
        "train",
        "--out",
        "runs/my run",
        "--minutes=2",
        "--seed=3",
    ]
    assert command[5:] == [
        "--sample-prompt=--out x",
        "--anonymous",
        "--silence=2.0",
        "--",
        "texts/0123456789ab/files",
    ]


def test_a_text_outside_of_the_studio_is_not_read(workspace: Workspace) -> None:
    command = start_command(workspace, workspace.runs / "x", a_job(text={"id": "../../etc"}))
    assert command[-1] == "texts/etc/files"


def test_a_stop_that_came_before_the_training_looked_is_repeated(
    workspace: Workspace, started: Started
) -> None:
    run = ask_for(workspace, "hasty")
    line = Line(workspace)
    line.look()
    stop(run, at_once=True)
    (run / JOURNAL / STOP).unlink()  # as a training does that begins
    assert told_of(run)["state"] == "stopping"
    line.look()
    assert (run / JOURNAL / STOP).read_text() == "now\n"


def test_who_leaves_the_line_leaves_nothing(workspace: Workspace) -> None:
    run = ask_for(workspace, "shy")
    stop(run)
    assert not run.exists()


def test_who_leaves_the_line_takes_nothing_from_a_training_that_a_terminal_began_there(
    workspace: Workspace,
) -> None:
    run = ask_for(workspace, "shy")
    make_run(workspace.runs, "shy", phase="reading", is_alive=True)
    leave_line(run)
    assert told_of(run)["state"] == "reading"
    assert (run / JOURNAL / STATE).exists()
    make_run(workspace.runs, "shy")  # and ends


def test_on_a_full_disk_a_training_is_stopped_and_who_waits_leaves_the_line(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(workspace.runs, "learns", job=a_job(), phase="training", is_alive=True)
    waits = ask_for(workspace, "waits")

    def fail(*_: Any) -> None:
        raise NO_ROOM

    monkeypatch.setattr("minigpt.studio.trainings.asking.write_text", fail)
    stop(run)
    assert (run / JOURNAL / STOP).exists()
    stop(run, at_once=True)
    assert (run / JOURNAL / STOP).read_text() == "now\n"
    stop(waits)
    assert not waits.exists()


def test_a_run_that_leaves_the_line_is_what_it_was(workspace: Workspace) -> None:
    run = end(workspace.runs / "old")
    before = told_of(run)
    go_on(run, 5)
    told = told_of(run)
    assert (told["state"], told["minutes"]) == ("waiting", 7.0)
    stop(run)
    job = read_job(run)
    assert job is not None and job.minutes is None
    assert {**told_of(run), "changed": before["changed"]} == before


def test_a_run_that_goes_on_and_is_cancelled_before_it_learns_has_the_minutes_that_it_took(
    workspace: Workspace, started: Started
) -> None:
    run = end(workspace.runs / "old")
    go_on(run, 5)
    Line(workspace).look()
    assert told_of(run)["minutes"] == 7.0
    make_run(workspace.runs, "old", phase="reading", how="stopped", said={"began": time.time()})
    assert told_of(run)["minutes"] == 2.0


def test_a_run_that_was_moved_is_not_made_again_by_its_request(workspace: Workspace) -> None:
    run = end(workspace.runs / "old", how="stopped")
    job = read_job(run) or a_job()
    run.rename(workspace.root / "elsewhere")
    with pytest.raises(FileNotFoundError):
        write_job(run, job)
    assert not run.exists()


def test_more_minutes_are_added_to_those_before(workspace: Workspace) -> None:
    run = end(workspace.runs / "old")
    write_config(run, max_epochs=4.0)  # which it has read in 30 seconds
    go_on(run, 5)
    command = start_command(workspace, run, read_job(run) or a_job())
    assert command == [
        "train",
        "--out",
        "runs/old",
        "--resume",
        "--minutes=7",
        "--max-epochs=44",
    ]


def test_a_run_goes_on_to_its_planned_end(workspace: Workspace) -> None:
    run = end(workspace.runs / "old", how="stopped")
    go_on(run, None)
    command = start_command(workspace, run, read_job(run) or a_job())
    assert command == ["train", "--out", "runs/old", "--resume"]


def test_minutes_more_that_no_training_has_taken_over_are_kept(
    workspace: Workspace, started: Started
) -> None:
    run = end(workspace.runs / "old", how="stopped")
    go_on(run, 5)
    assert Line(workspace).look() == run
    said = {"began": time.time()}
    make_run(workspace.runs, "old", phase="reading", how="stopped", said=said)
    assert told_of(run)["state"] == "stopped"
    go_on(run, None)
    assert start_command(workspace, run, read_job(run) or a_job())[-1] == "--minutes=7"

    leave_line(run)
    write_config(run, minutes=9.0)  # it was trained for longer in a terminal
    go_on(run, None)
    assert start_command(workspace, run, read_job(run) or a_job())[-1] == "--resume"


def test_what_is_done_goes_on_only_for_minutes_more(workspace: Workspace) -> None:
    run = end(workspace.runs / "old")
    for minutes in (None, 0, -1, True, "5", float("nan")):
        with pytest.raises(Refusal) as refused:
            go_on(run, minutes)  # type: ignore[arg-type]
        assert (refused.value.status, refused.value.field) == (400, "minutes")
    assert told_of(run)["state"] == "done"


def test_one_that_failed_begins_anew(workspace: Workspace, started: Started) -> None:
    failed = {"how": "failed", "problem": {"kind": "too_short", "message": "too short"}}
    run = make_run(workspace.runs, job=a_job(), phase="reading", **failed)
    assert told_of(run)["state"] == "failed"
    go_on(run, None)
    assert Line(workspace).look() == run
    assert started[0][-1] == "texts/0123456789ab/files"
    assert told_of(run)["state"] == "reading"
    assert not (run / JOURNAL / LOG).exists()


def test_what_does_not_train_cannot_be_stopped(workspace: Workspace) -> None:
    run = make_run(workspace.runs, phase="training", how="finished", has_checkpoint=True)
    with pytest.raises(Refusal) as refused:
        stop(run)
    assert refused.value.status == 409


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("my diary", "my diary"),
        ("../../x", "x"),
        ("CON", "_CON"),
        ("base", "run base"),
        ("Counting", "run Counting"),
        ("diary@12", "diary_12"),
        ("--help", "help"),
        ("...", "run"),
        ("日" * 90, "日" * 66),
    ],
)
def test_a_name_is_made_safe(typed: str, name: str) -> None:
    assert run_name(typed) == name


def test_no_two_runs_have_one_name(workspace: Workspace) -> None:
    workspace.bin.mkdir(parents=True)
    (workspace.bin / "diary-2").mkdir()
    names = [free_run(workspace, name).name for name in ("diary", "Diary", "DIARY")]
    assert names == ["diary", "Diary-3", "DIARY-4"]


def test_a_text_of_one_file_is_learned_under_the_name_of_the_file(workspace: Workspace) -> None:
    files = workspace.texts / TEXT["id"] / "files"
    files.mkdir(parents=True)
    (files / "diary.txt").write_text("text")
    run = ask_for(workspace, "diary")
    job = read_job(run) or a_job()
    assert start_command(workspace, run, job)[-1] == f"texts/{TEXT['id']}/files/diary.txt"
    (files / "more.txt").write_text("text")
    assert start_command(workspace, run, job)[-1] == f"texts/{TEXT['id']}/files"
