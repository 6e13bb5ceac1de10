"""Runs are renamed, put into the bin and back, and removed; nothing else is touched."""

from pathlib import Path
from typing import Any

import pytest

from minigpt.runs.journal import JOURNAL
from minigpt.studio.errors import Refusal
from minigpt.studio.place import Place
from minigpt.studio.runs.jobs import JOB, LOG
from minigpt.studio.runs.removal import (
    empty_bin,
    everything_of_run,
    everything_of_text,
    put_back,
    put_into_bin,
    rename_run,
)
from minigpt.studio.runs.states import States

from .by_hand import PHASES, TEXT, a_job, make_run

LEARNED: dict[str, Any] = {
    "phases": PHASES,
    "steps": 3,
    "evaluations": 1,
    "has_checkpoint": True,
    "end": {"how": "finished"},
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("MINIGPT_CACHE", str(tmp_path / "cache"))
    return Place(tmp_path)


@pytest.fixture
def states(place: Place) -> States:
    return States(place.runs)


def test_a_run_gets_another_name_that_is_free(place: Place, states: States) -> None:
    run = make_run(place.runs, "diary", **LEARNED)
    make_run(place.runs, "novel", **LEARNED)
    assert rename_run(place, states, run, "diary") == run
    run = rename_run(place, states, run, "Diary")
    assert run.name == "Diary"
    run = rename_run(place, states, run, "NOVEL")
    assert run.name == "NOVEL-2"
    assert states.of(run)["state"] == "done"


@pytest.mark.parametrize("change", [put_into_bin, lambda p, s, run: rename_run(p, s, run, "new")])
def test_a_run_that_learns_stays_where_it_is(change: Any, place: Place, states: States) -> None:
    run = make_run(place.runs, phases=PHASES, alive=0.0)
    with pytest.raises(Refusal) as refused:
        change(place, states, run)
    assert refused.value.status == 409
    assert run.exists()


def test_what_was_deleted_can_be_put_back(place: Place, states: States) -> None:
    run = make_run(place.runs, "diary", **LEARNED)
    put_into_bin(place, states, run)
    assert states.all() == []
    make_run(place.runs, "diary", **LEARNED)
    assert put_back(place, "diary").name == "diary-2"
    assert {found["name"] for found in states.all()} == {"diary", "diary-2"}


@pytest.mark.parametrize("name", ["nobody", "../diary", ".", "..", "", "a/b"])
def test_what_is_not_in_the_bin_cannot_be_put_back(name: str, place: Place) -> None:
    make_run(place.runs, "diary", **LEARNED)
    place.bin.mkdir()
    with pytest.raises(Refusal) as refused:
        put_back(place, name)
    assert refused.value.status == 404


def test_who_waits_is_gone_once_deleted(place: Place, states: States) -> None:
    run = make_run(place.runs, job=a_job(is_waiting=True, started=None))
    put_into_bin(place, states, run)
    assert not run.exists()
    assert not place.bin.exists()


def test_an_emptied_bin_holds_only_what_is_not_ours(place: Place, states: States) -> None:
    outside = place.root / "outside.txt"
    outside.write_text("mine")
    for name, files in (("plain", LEARNED), ("with-mine", LEARNED), ("failed", {})):
        run = make_run(place.runs, name, job=a_job(), log="a log", **files)
        if name == "with-mine":
            (run / "mine.txt").write_text("mine")
            (run / JOURNAL / "link").symlink_to(outside)
        put_into_bin(place, states, run)

    empty_bin(place)
    left = sorted(str(path.relative_to(place.bin)) for path in place.bin.rglob("*"))
    assert left == [
        "with-mine",
        "with-mine/journal",
        "with-mine/journal/link",
        "with-mine/mine.txt",
    ]
    assert outside.read_text() == "mine"


def test_a_journal_that_is_a_link_is_not_followed(place: Place, states: States) -> None:
    run = make_run(place.runs, **LEARNED)
    elsewhere = place.root / "elsewhere"
    (run / JOURNAL).rename(elsewhere)
    for name in (JOB, LOG):
        (elsewhere / name).write_text("mine")
    (run / JOURNAL).symlink_to(elsewhere)
    before = sorted(elsewhere.iterdir())
    put_into_bin(place, states, run)
    empty_bin(place)
    assert sorted(elsewhere.iterdir()) == before


def test_nothing_is_removed_while_a_run_of_the_text_learns(place: Place, states: States) -> None:
    folder = place.texts / TEXT["id"] / "files"
    folder.mkdir(parents=True)
    make_run(place.runs, "done", job=a_job(), **LEARNED)
    make_run(place.runs, "learns", job=a_job(), phases=PHASES, alive=0.0)
    with pytest.raises(Refusal) as refused:
        everything_of_text(place, TEXT["id"]).remove(states)
    assert refused.value.status == 409
    assert (place.runs / "done").exists()
    assert folder.exists()


def test_all_of_a_text_is_named_and_runs_of_other_texts_are_not(place: Place) -> None:
    make_run(place.runs, "mine", job=a_job(), **LEARNED)
    make_run(place.runs, "of-a-terminal", **LEARNED)  # its files are those of the text
    make_run(place.runs, "other", job=a_job(text={**TEXT, "id": "ba9876543210"}))
    make_run(place.bin, "deleted", job=a_job(), **LEARNED)

    parts = everything_of_text(place, TEXT["id"]).parts(place)
    named = {(part["kind"], part["name"]) for part in parts}
    assert named == {("run", "mine"), ("run", "of-a-terminal"), ("bin", "deleted")}
    assert everything_of_run(place, place.runs / "mine").parts(place) == parts
    (alone,) = everything_of_run(place, place.runs / "other").parts(place)
    assert alone["name"] == "other"


def test_the_same_text_that_was_dropped_twice_is_two_texts(place: Place) -> None:
    make_run(place.runs, "first", job=a_job(), **LEARNED)
    second = make_run(
        place.runs, "second", job=a_job(text={**TEXT, "id": "ba9876543210"}), **LEARNED
    )
    assert everything_of_text(place, TEXT["id"]).runs == [place.runs / "first"]
    assert everything_of_run(place, second).runs == [second]


@pytest.mark.parametrize("text", ["..", "../runs", "", "a/b", ".bin"])
def test_no_other_folder_is_taken_for_a_text(text: str, place: Place) -> None:
    make_run(place.runs, "mine", job=a_job(), **LEARNED)
    place.texts.mkdir()
    assert everything_of_text(place, text).parts(place) == []
