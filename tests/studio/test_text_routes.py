"""From files that a window sends to a dial of minutes, by the programs that the studio starts."""

import io
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from queue import Queue
from threading import Event
from typing import Any

import pytest

from minigpt.studio.children import Children
from minigpt.studio.context import Studio
from minigpt.studio.texts import upload
from minigpt.studio.texts.about import for_run, whole_text
from minigpt.studio.texts.folder import (
    PLANS_FILE,
    READING_FILE,
    plans_of,
    reading_of,
    write_json,
    write_problem,
)
from minigpt.studio.texts.work import TextWork
from minigpt.studio.trainings import asking
from minigpt.studio.workspace import Workspace
from tests.conftest import some_text
from tests.hostile import NO_ROOM
from tests.patience import PATIENCE

from .conftest import Window
from .dropped import dropped

TEXT = some_text(3000)


def _drop(window: Window, files: dict[str, bytes]) -> str:
    """The address of a text with these files."""
    made = window.post("/api/texts")
    assert made.status == 201
    address = f"/api/texts/{made.json['id']}"
    for name, data in files.items():
        assert window.post(f"{address}/files?name={name}", data).json == {"kept": name}
    return address


def _wait(window: Window, address: str, until: Any) -> Any:
    """What there is of a text as soon as that is true of it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        text = window.get(address).json
        if until(text):
            return text
        time.sleep(0.1)
    raise AssertionError(text)


@pytest.fixture
def quiet(window: Window, monkeypatch: pytest.MonkeyPatch) -> Window:
    """A window of a studio that starts no programs."""
    monkeypatch.setattr(TextWork, "keep_going", lambda *_: None)
    return window


@pytest.mark.studio
def test_from_dropped_files_to_the_dial_and_to_other_settings(window: Window) -> None:
    address = _drop(window, {"my.txt": TEXT.encode(), "photo.jpg": b"\xff\xd8\xff" + b"\0" * 99})
    (text,) = window.get("/api/state").json["texts"]
    assert (text["name"], text["files"], text["state"]) == ("my", 2, "unread")
    assert window.post(f"{address}/read").status == 202

    text = _wait(window, address, lambda text: text["plans"] and len(text["plans"]["stops"]) == 12)
    assert text["state"] == "ready" and text["plans"]["measured"]
    assert text["reading"]["lines"][0] == TEXT.splitlines()[0]
    assert [f["problem"] and f["problem"]["kind"] for f in text["files"]] == [None, "picture"]
    assert for_run(window.studio.workspace.text_folder(text["id"]))["files"] == 1

    sent = {"settings": {"emb_dim": 64, "rename": ["a=b"]}}
    assert window.post(f"{address}/plan", sent).status == 202
    text = window.get(address).json
    assert text["state"] in ("unread", "reading") and text["plans"] is None
    chosen = {f["name"]: f["value"] for f in text["settings"] if f["value"] is not None}
    assert chosen == sent["settings"]

    # What is being done for it ends with it.
    assert window.post(f"{address}/delete").status == 204
    assert window.get(address).status == 404
    assert list(window.studio.workspace.texts.iterdir()) == []


def test_what_a_studio_that_was_killed_was_reading_is_read_by_the_next(tmp_path: Path) -> None:
    folder = dropped(tmp_path, {"my.txt": "too short"})
    (folder / "reading.json").write_text(json.dumps({"share": 0.4, "is_done": False}))
    studio = Studio(Workspace(tmp_path), close=lambda: None)
    with studio.running():
        window = Window(studio)
        window.enter(studio.logins.token)
        address = f"/api/texts/{folder.name}"
        text = _wait(window, address, lambda text: text["state"] == "refused")
        assert text["reading"]["problem"]["kind"] == "too_short"


def test_a_reader_that_crashes_is_told_and_can_be_tried_again(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minigpt.studio.children.module_command", lambda *_: ["false"])
    address = _drop(window, {"my.txt": b"text"})
    window.post(f"{address}/read")
    text = _wait(window, address, lambda text: text["state"] == "refused")
    assert text["reading"]["problem"]["kind"] == "failed"
    assert text["reading"]["left_out"] == text["reading"]["notes"] == []
    monkeypatch.undo()
    window.post(f"{address}/read")
    text = _wait(window, address, lambda text: text["state"] == "refused")
    assert text["reading"]["problem"]["kind"] == "too_short"


def test_a_planner_that_crashes_before_its_first_word_has_planned_nothing(tmp_path: Path) -> None:
    folder = dropped(tmp_path, {"my.txt": "text"})
    write_problem(folder / PLANS_FILE, plans_of(folder), "failed", "It ended unexpectedly.")
    plans = whole_text(folder)["plans"]
    assert plans is not None and plans["stops"] == []
    assert plans["problem"]["kind"] == "failed"


def test_the_tales_are_there_at_once(quiet: Window) -> None:
    made = quiet.post("/api/texts", {"tales": True})
    text = quiet.get(f"/api/texts/{made.json['id']}").json
    assert (text["name"], text["state"]) == ("tales", "unread")
    assert text["size"] > 10**6


def test_files_come_and_go(quiet: Window) -> None:
    address = _drop(quiet, {"a.txt": b"a", "b.txt": b"b"})
    assert quiet.post(f"{address}/files?name=..%2Fa.txt", b"c").json == {"kept": "a (2).txt"}
    assert quiet.post(f"{address}/files", b"c").status == 400  # it has no name
    assert quiet.post(f"{address}/remove", {"kept": "a.txt"}).status == 204
    for kept in ("a.txt", "../text.json", None, ["b.txt"]):
        assert quiet.post(f"{address}/remove", {"kept": kept}).status == 404
    text = quiet.get(address).json
    assert [file["name"] for file in text["files"]] == ["b.txt", "../a.txt"]
    for kept in ("a (2).txt", "b.txt"):
        quiet.post(f"{address}/remove", {"kept": kept})
    assert quiet.get(address).json["state"] == "empty"


def test_a_file_that_comes_while_the_others_are_read_is_read_too(window: Window) -> None:
    address = _drop(window, {"a.txt": b"a" * 600})
    window.post(f"{address}/read")
    assert window.post(f"{address}/files?name=b.txt", b"b" * 300).status == 201
    text = _wait(window, address, lambda text: text["state"] == "refused")
    assert text["reading"]["characters"] == 900


def test_a_text_that_waits_for_its_turn_can_change_and_is_read_all_the_same(
    tmp_path: Path,
) -> None:
    started: Queue[str] = Queue()
    goes_on = Event()

    class Programs(Children):
        def start(self, module: str, arguments: Sequence[str], folder: Path) -> Any:
            started.put(Path(arguments[0]).name)
            assert goes_on.wait(PATIENCE)
            return subprocess.Popen([sys.executable, "-c", ""])

    first, second, third = (dropped(tmp_path, {"my.txt": "text"}) for _ in range(3))
    work = TextWork(Programs(), tmp_path)
    for folder in (first, second, third):
        work.keep_going(folder)
    begun = {started.get(timeout=PATIENCE) for _ in range(2)}
    assert begun == {first.name, second.name}

    work.stop(third)
    work.keep_going(third)
    goes_on.set()
    assert started.get(timeout=PATIENCE) == third.name
    work.close()


def test_texts_that_wait_to_be_planned_for_keep_no_other_from_being_read(tmp_path: Path) -> None:
    planned: Queue[str] = Queue()
    goes_on = Event()

    class Programs(Children):
        def start(self, module: str, arguments: Sequence[str], folder: Path) -> Any:
            text = Path(arguments[0])
            if module.endswith("planning"):
                planned.put(text.name)
                assert goes_on.wait(PATIENCE)
            else:
                read.put(text.name)
                found = {"of": reading_of(text), "is_done": True, "problem": None}
                write_json(found, text / READING_FILE)
            return subprocess.Popen([sys.executable, "-c", ""])

    read: Queue[str] = Queue()
    texts = [dropped(tmp_path, {"my.txt": "text"}) for _ in range(5)]
    work = TextWork(Programs(), tmp_path)
    for folder in texts:
        work.keep_going(folder)
    names = {folder.name for folder in texts}
    assert {read.get(timeout=PATIENCE) for _ in texts} == names
    first = planned.get(timeout=PATIENCE)
    assert planned.empty()  # one alone is planned for

    goes_on.set()
    assert {first} | {planned.get(timeout=PATIENCE) for _ in texts[1:]} == names
    work.close()


class FullDisk(io.FileIO):
    """A file on a disk that fills up while it is written: some bytes still fit."""

    room = 1000

    def write(self, data: Any) -> int:
        fitting = min(self.room - self.tell(), len(data))
        if fitting == 0:
            raise NO_ROOM
        return super().write(memoryview(data)[:fitting])


def test_of_a_file_that_fills_the_disk_nothing_stays_and_the_others_are_kept(
    quiet: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = _drop(quiet, {"a.txt": b"a" * 10})
    folder = quiet.studio.workspace.text_folder(address.rpartition("/")[2])
    novel = b"b" * 3000
    coming = f"{address}/files?name=novel.txt"

    with monkeypatch.context() as full:
        full.setattr(upload, "open", lambda file, *_, **__: FullDisk(file, "wb"), raising=False)
        answer = quiet.post(coming, novel)
    said = "Nothing new can be saved. Free some space."
    assert (answer.status, answer.json["message"]) == (507, said)
    assert [*folder.glob(".*")] == []
    assert [path.read_bytes() for path in (folder / "files").iterdir()] == [b"a" * 10]

    assert quiet.post(coming, novel).status == 201  # there is room again
    assert (folder / "files/novel.txt").read_bytes() == novel


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"seed": -1}, "seed"),
        ({"vocab_size": 400, "tokenizer": "char"}, "vocab_size"),
        ({"nonsense": 1}, None),
        ("seed", None),
    ],
    ids=str,
)
def test_a_wrong_setting_is_refused_by_name_and_changes_nothing(
    sent: Any, field: str | None, quiet: Window
) -> None:
    address = _drop(quiet, {"a.txt": b"a"})
    answer = quiet.post(f"{address}/plan", {"settings": sent})
    assert (answer.status, answer.json["field"]) == (400, field)
    assert "--" not in answer.json["message"]
    assert all(f["value"] is None for f in quiet.get(address).json["settings"])


def test_a_text_that_is_learned_from_is_not_deleted_nor_are_its_files(quiet: Window) -> None:
    address = _drop(quiet, {"a.txt": b"a"})
    run = asking.ask(
        quiet.studio.workspace,
        text={"id": address.rpartition("/")[2]},
        name="diary",
        minutes=5,
        settings={},
    )
    answer = quiet.post(f"{address}/delete")
    assert answer.status == 409 and "diary is learning" in answer.json["message"]
    assert quiet.post(f"{address}/remove", {"kept": "a.txt"}).json == answer.json
    assert len(quiet.get(address).json["files"]) == 1
    asking.leave_line(run)
    assert quiet.post(f"{address}/delete").status == 204


@pytest.mark.parametrize("text", ["nothing", "../runs", "%2e%2e", "0123456789ab"])
def test_a_text_that_is_not_there_is_not_found(text: str, quiet: Window) -> None:
    assert quiet.get(f"/api/texts/{text}").status == 404
    assert quiet.post(f"/api/texts/{text}/delete").status == 404


def test_in_a_lesson_all_trainings_are_of_a_lesson(tmp_path: Path) -> None:
    studio = Studio(Workspace(tmp_path), close=lambda: None, is_lesson=True)
    with studio.running():
        window = Window(studio)
        window.enter(studio.logins.token)
        text = window.post("/api/texts").json["id"]
        chosen = tmp_path / "texts" / text / "settings.json"
        assert json.loads(chosen.read_text()) == {"lesson": True}

        window.post(f"/api/texts/{text}/plan", {"settings": {"dropout": 0.1}})
        assert json.loads(chosen.read_text()) == {"dropout": 0.1, "lesson": True}
        assert window.post(f"/api/texts/{text}/plan", {"settings": {"seed": 3}}).status == 400
