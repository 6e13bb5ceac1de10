"""Runs are renamed, put into the bin and back, and removed; nothing else is touched."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from minigpt.runs.folder import CONFIG, JOB, JOURNAL, LOG, STATE, WEIGHTS
from minigpt.studio.answers import Refusal
from minigpt.studio.trainings import removal
from minigpt.studio.trainings.asking import is_busy
from minigpt.studio.trainings.removal import (
    empty_bin,
    everything_of_run,
    put_back,
    put_into_bin,
    rename_run,
)
from minigpt.studio.trainings.shown import told_of, told_of_all
from minigpt.studio.workspace import Workspace
from minigpt.system.atomic import unfinished_name

from ..hostile import NO_ROOM
from ..patience import PATIENCE
from .by_hand import TEXT, a_job, make_run, write_config
from .conftest import Window

LEARNED: dict[str, Any] = {
    "phase": "training",
    "steps": 3,
    "evaluations": 1,
    "has_checkpoint": True,
    "how": "finished",
}


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("MINIGPT_CACHE", str(tmp_path / "cache"))
    return Workspace(tmp_path)


def test_a_run_gets_another_name_that_is_free(workspace: Workspace) -> None:
    run = make_run(workspace.runs, "diary", **LEARNED)
    make_run(workspace.runs, "novel", **LEARNED)
    assert rename_run(workspace, run, "diary") == run
    run = rename_run(workspace, run, "Diary")
    assert run.name == "Diary"
    run = rename_run(workspace, run, "NOVEL")
    assert run.name == "NOVEL-2"
    assert told_of(run)["state"] == "done"


@pytest.mark.parametrize("change", [put_into_bin, lambda p, run: rename_run(p, run, "new")])
def test_a_run_that_learns_stays_where_it_is(change: Any, workspace: Workspace) -> None:
    run = make_run(workspace.runs, phase="training", is_alive=True)
    with pytest.raises(Refusal) as refused:
        change(workspace, run)
    assert refused.value.status == 409
    assert run.exists()


def test_what_was_deleted_can_be_put_back(workspace: Workspace) -> None:
    run = make_run(workspace.runs, "diary", **LEARNED)
    put_into_bin(workspace, run)
    assert told_of_all(workspace.runs) == []
    make_run(workspace.runs, "diary", **LEARNED)
    assert put_back(workspace, "diary").name == "diary-2"
    assert {found["name"] for found in told_of_all(workspace.runs)} == {"diary", "diary-2"}


def test_a_run_in_the_bin_keeps_its_name_for_itself(workspace: Workspace) -> None:
    """It may be put back."""
    put_into_bin(workspace, make_run(workspace.runs, "diary", **LEARNED))
    novel = make_run(workspace.runs, "novel", **LEARNED)
    assert rename_run(workspace, novel, "Diary").name == "Diary-2"
    assert put_back(workspace, "diary").name == "diary"


@pytest.mark.parametrize("name", ["nobody", "../diary", ".", "..", "", "a/b"])
def test_what_is_not_in_the_bin_cannot_be_put_back(name: str, workspace: Workspace) -> None:
    make_run(workspace.runs, "diary", **LEARNED)
    workspace.bin.mkdir()
    with pytest.raises(Refusal) as refused:
        put_back(workspace, name)
    assert refused.value.status == 404


def test_who_waits_is_gone_once_deleted(workspace: Workspace) -> None:
    run = make_run(workspace.runs, job=a_job(is_waiting=True, started=None))
    put_into_bin(workspace, run)
    assert not run.exists()
    assert not workspace.bin.exists()


def test_who_waits_to_go_on_is_deleted_on_a_full_disk(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = a_job(is_waiting=True, goes_on=True)
    for name in ("one", "other"):
        make_run(workspace.runs, name, job=job, **LEARNED)

    def fail(*_: Any) -> None:
        raise NO_ROOM

    monkeypatch.setattr("minigpt.studio.trainings.asking.write_text", fail)
    put_into_bin(workspace, workspace.runs / "one")
    everything_of_run(workspace, workspace.runs / "other").remove()
    assert [path.name for path in workspace.root.glob("runs/**/journal")] == []


def test_who_waits_and_is_trained_by_a_terminal_learns(workspace: Workspace) -> None:
    job = a_job(is_waiting=True, started=None)
    run = make_run(workspace.runs, job=job, phase="training", is_alive=True)
    with pytest.raises(Refusal) as refused:
        put_into_bin(workspace, run)
    assert refused.value.kind == "run_learning"


def test_an_emptied_bin_holds_only_what_is_not_ours(workspace: Workspace) -> None:
    outside = workspace.root / "outside.txt"
    outside.write_text("mine")
    for name, files in (("plain", LEARNED), ("with-mine", LEARNED), ("failed", {})):
        run = make_run(workspace.runs, name, job=a_job(), log="a log", **files)
        if name == "with-mine":
            (run / "mine.txt").write_text("mine")
            (run / JOURNAL / "link").symlink_to(outside)
        (run / JOURNAL / unfinished_name(STATE)).touch()  # a process was killed
        put_into_bin(workspace, run)

    empty_bin(workspace)
    left = sorted(str(path.relative_to(workspace.bin)) for path in workspace.bin.rglob("*"))
    assert left == [
        "with-mine",
        "with-mine/journal",
        "with-mine/journal/link",
        "with-mine/mine.txt",
    ]
    assert outside.read_text() == "mine"


def test_a_folder_that_may_be_of_another_program_stays_in_the_bin_and_is_named(
    workspace: Workspace,
) -> None:
    for name in ("broken", "diary"):
        put_into_bin(workspace, make_run(workspace.runs, name, job=a_job(), **LEARNED))
    broken = workspace.bin / "broken"
    for name in (CONFIG, WEIGHTS, f"{JOURNAL}/{JOB}", f"{JOURNAL}/{STATE}", "mine.txt"):
        (broken / name).write_text("damaged")

    assert empty_bin(workspace) == ["runs/.bin/broken is not a run"]
    assert [path.name for path in workspace.bin.iterdir()] == ["broken"]


@pytest.mark.parametrize("how", ["finished", None])
def test_a_run_whose_process_has_not_left_stays_where_it_is(
    how: str | None, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(workspace.runs, is_alive=True, **{**LEARNED, "how": how})
    monkeypatch.setattr(removal, "_SECONDS_TO_LEAVE", 0.0)
    removal.wait_for_processes([run])
    with pytest.raises(Refusal) as refused:
        put_into_bin(workspace, run)
    assert refused.value.kind == ("run_learning" if how is None else "run_ending")
    assert run.exists()


def test_who_waits_for_a_process_does_not_keep_the_line_from_going_on(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what it waits for is the end of the process, not a number of seconds."""
    line = window.studio.line
    runs = window.studio.workspace.runs
    ended = make_run(runs, is_alive=True, **LEARNED)
    looks = []

    def look(run: Path) -> bool:
        looks.append(run)
        if len(looks) <= 3:
            with ThreadPoolExecutor(1) as other:  # a lock that this thread held would not stop it
                assert other.submit(line.look).result(PATIENCE) is None
        if len(looks) == 3:
            make_run(runs, **LEARNED)  # its process leaves
        return is_busy(run)

    monkeypatch.setattr(removal, "is_busy", look)
    assert window.post("/api/runs/diary/delete").json["state"] == "gone"
    assert looks[:3] == [ended] * 3
    assert (window.studio.workspace.bin / "diary").exists()


def test_a_journal_that_is_a_link_is_not_followed(workspace: Workspace) -> None:
    run = make_run(workspace.runs, **LEARNED)
    elsewhere = workspace.root / "elsewhere"
    (run / JOURNAL).rename(elsewhere)
    for name in (JOB, LOG):
        (elsewhere / name).write_text("mine")
    (run / JOURNAL).symlink_to(elsewhere)
    before = sorted(elsewhere.iterdir())
    put_into_bin(workspace, run)
    empty_bin(workspace)
    assert sorted(elsewhere.iterdir()) == before


def test_nothing_is_removed_while_a_run_of_the_text_learns(workspace: Workspace) -> None:
    folder = workspace.texts / TEXT["id"] / "files"
    folder.mkdir(parents=True)
    make_run(workspace.runs, "done", job=a_job(), **LEARNED)
    make_run(workspace.runs, "learns", job=a_job(), phase="training", is_alive=True)
    with pytest.raises(Refusal) as refused:
        everything_of_run(workspace, workspace.runs / "done").remove()
    assert refused.value.status == 409
    assert (workspace.runs / "done").exists()
    assert folder.exists()


def test_all_of_a_text_is_named_and_runs_of_other_texts_are_not(workspace: Workspace) -> None:
    make_run(workspace.runs, "mine", job=a_job(), **LEARNED)
    make_run(workspace.runs, "of-a-terminal", **LEARNED)  # its files are those of the text
    make_run(workspace.runs, "other", job=a_job(text={**TEXT, "id": "ba9876543210"}))
    make_run(workspace.bin, "deleted", job=a_job(), **LEARNED)

    for run in (workspace.runs / "mine", workspace.runs / "of-a-terminal"):
        parts = everything_of_run(workspace, run).parts(workspace)
        named = {(part["kind"], part["name"]) for part in parts}
        assert named == {("run", "mine"), ("run", "of-a-terminal"), ("bin", "deleted")}
    (alone,) = everything_of_run(workspace, workspace.runs / "other").parts(workspace)
    assert alone["name"] == "other"


def test_the_same_text_that_was_dropped_twice_is_two_texts(workspace: Workspace) -> None:
    first = make_run(workspace.runs, "first", job=a_job(), **LEARNED)
    second = make_run(
        workspace.runs, "second", job=a_job(text={**TEXT, "id": "ba9876543210"}), **LEARNED
    )
    assert everything_of_run(workspace, first).runs == [first]
    assert everything_of_run(workspace, second).runs == [second]


@pytest.mark.parametrize("text", ["..", "../runs", "novels", "a/b", ".bin"])
def test_no_other_folder_is_taken_for_a_text(text: str, workspace: Workspace) -> None:
    run = make_run(workspace.runs, "mine", job=a_job(text={**TEXT, "id": text}), **LEARNED)
    (workspace.texts / text).mkdir(parents=True, exist_ok=True)
    assert everything_of_run(workspace, run).text is None


def test_files_that_somebody_keeps_in_the_folder_of_the_texts_stay(workspace: Workspace) -> None:
    novel = workspace.texts / "novels" / "files" / "a.txt"
    novel.parent.mkdir(parents=True)
    novel.write_text("mine")
    run = make_run(workspace.runs, "novel", **LEARNED)
    write_config(run, "texts/novels/files/a.txt")
    assert told_of(run)["text"]["id"] is None
    everything = everything_of_run(workspace, run)
    assert [part["name"] for part in everything.parts(workspace)] == ["novel"]
    everything.remove()
    assert not run.exists() and novel.read_text() == "mine"
