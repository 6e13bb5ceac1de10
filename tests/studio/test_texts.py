"""Texts as their files arrive: the names under which they are kept, how much they may be, and what
is left when an upload, or the studio, ends too early."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from minigpt.studio.answers import Refusal
from minigpt.studio.texts import store as texts
from minigpt.studio.workspace import Workspace
from tests.conftest import unix_only
from tests.hostile import UNSAFE_NAMES


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """An empty folder, whose disk may be full to the last byte."""
    monkeypatch.setattr(texts, "_LEAST_FREE", 0)
    return Workspace(tmp_path)


async def _parts(data: bytes) -> AsyncIterator[bytes]:
    for begin in range(0, len(data), 100):
        yield data[begin : begin + 100]


def _receive(folder: Path, number: int, data: bytes) -> str:
    return asyncio.run(texts.receive(folder, number, _parts(data)))


def _text(workspace: Workspace, *names: str, data: bytes = b"text") -> Path:
    """The folder of a text whose files have arrived."""
    text = texts.create(workspace, list(names), [len(data)] * len(names))
    folder = workspace.text_folder(text)
    for number in range(len(names)):
        _receive(folder, number, data)
    return folder


def _refused(status: int, act: Any, *arguments: Any) -> None:
    with pytest.raises(Refusal) as refused:
        act(*arguments)
    assert refused.value.status == status


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "files").iterdir())


# Names


def test_a_file_is_kept_under_a_name_that_is_safe_everywhere(workspace: Workspace) -> None:
    for sent, kept in UNSAFE_NAMES:
        folder = _text(workspace, sent)
        assert _names(folder) == [kept]
    assert not list(workspace.root.glob("x*"))


def test_a_long_name_keeps_its_ending_and_fits_every_disk(workspace: Workspace) -> None:
    folder = _text(workspace, "x" * 300 + ".docx", "長" * 300 + ".txt", "🦊" * 300 + "字" * 99)
    latin, *others = sorted(_names(folder), key=len, reverse=True)
    assert latin == "x" * 75 + ".docx"
    assert all(len(name.encode()) <= 200 for name in others)


def test_names_that_are_one_on_some_system_are_kept_apart(workspace: Workspace) -> None:
    folder = _text(workspace, "a/notes.txt", "b/notes.txt", "NOTES.TXT", "notes (2).txt")
    assert _names(folder) == [
        "NOTES (3).TXT",
        "notes (2) (2).txt",
        "notes (2).txt",
        "notes.txt",
    ]
    shown = [file["name"] for file in texts.describe_text(folder)["files"]]
    assert shown == ["a/notes.txt", "b/notes.txt", "NOTES.TXT", "notes (2).txt"]


def test_a_text_is_called_as_its_folder_or_its_first_file(workspace: Workspace) -> None:
    assert (
        texts.describe_text(_text(workspace, "Diary/may.txt", "Diary/june.txt"))["name"] == "Diary"
    )
    assert texts.describe_text(_text(workspace, "my novel.tar.gz"))["name"] == "my novel"


# Limits


@pytest.mark.parametrize(
    ("names", "sizes"),
    [([], []), ("a", [1]), (["a"], [-1]), (["a"], ["1"]), (["a"], [True]), (["a"], [1, 2])],
    ids=str,
)
def test_what_is_announced_wrongly_makes_no_text(
    names: Any, sizes: Any, workspace: Workspace
) -> None:
    _refused(400, texts.create, workspace, names, sizes)
    assert texts.text_folders(workspace) == []


def test_a_text_with_too_many_files_or_bytes_is_refused(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts, "_MOST_FILES", 3)
    monkeypatch.setattr(texts, "_MOST_BYTES", 1000)
    _refused(413, texts.create, workspace, ["a"] * 4, [1] * 4)
    _refused(413, texts.create, workspace, ["a", "b"], [600, 600])
    folder = workspace.text_folder(texts.create(workspace, ["a", "b"], [500, 400]))
    _refused(413, texts.add, folder, ["c"], [200])
    _refused(413, texts.add, folder, ["c", "d"], [1, 1])
    texts.remove_file(folder, 0)
    assert texts.add(folder, ["c"], [200]) == 2


def test_a_disk_without_room_is_told_before_anything_comes(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = workspace.text_folder(texts.create(workspace, ["a"], [4]))
    monkeypatch.setattr(texts, "_LEAST_FREE", 1 << 60)
    _refused(507, texts.create, workspace, ["a"], [1])
    _refused(507, _receive, folder, 0, b"text")
    assert _names(folder) == []


@pytest.mark.parametrize(("data", "status"), [(b"x" * 500, 413), (b"x" * 3, 400)])
def test_of_more_or_fewer_bytes_than_were_announced_nothing_stays(
    data: bytes, status: int, workspace: Workspace
) -> None:
    folder = workspace.text_folder(texts.create(workspace, ["a"], [150]))
    _refused(status, _receive, folder, 0, data)
    assert _names(folder) == [] == list((folder / "arriving").iterdir())
    _receive(folder, 0, b"x" * 150)
    assert _names(folder) == ["a"]


def test_of_an_upload_that_is_broken_off_nothing_stays(workspace: Workspace) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"x" * 100
        raise ConnectionError

    folder = workspace.text_folder(texts.create(workspace, ["a"], [150]))
    with pytest.raises(ConnectionError):
        asyncio.run(texts.receive(folder, 0, broken()))
    assert _names(folder) == [] == list((folder / "arriving").iterdir())


# What becomes of a text


def test_a_file_never_takes_the_place_of_another(workspace: Workspace) -> None:
    folder = _text(workspace, "a", data=b"first")
    _refused(409, _receive, folder, 0, b"other")
    _refused(404, _receive, folder, 1, b"other")
    assert (folder / "files/a").read_bytes() == b"first"

    texts.remove_file(folder, 0)
    _refused(404, _receive, folder, 0, b"other")
    assert texts.add(folder, ["a"], [5]) == 1
    _receive(folder, 1, b"other")
    assert _names(folder) == ["a (2)"]


def test_a_text_is_complete_when_all_files_have_arrived(workspace: Workspace) -> None:
    folder = workspace.text_folder(texts.create(workspace, ["a", "b"], [4, 4]))
    _receive(folder, 0, b"text")
    _refused(409, texts.complete, folder)
    texts.remove_file(folder, 1)
    texts.complete(folder)
    assert texts.describe_text(folder)["is_complete"]
    texts.remove_file(folder, 0)
    assert not texts.describe_text(folder)["is_complete"]
    _refused(409, texts.complete, folder)


def test_a_studio_that_was_ended_loses_only_what_had_not_arrived(workspace: Workspace) -> None:
    whole = _text(workspace, "a")
    texts.complete(whole)
    half = workspace.text_folder(texts.create(workspace, ["b", "c"], [4, 4]))
    _receive(half, 0, b"text")
    (half / "arriving/1").write_bytes(b"te")
    texts.create(workspace, ["d"], [4])

    texts.restore(workspace)
    assert {folder.name for folder in texts.text_folders(workspace)} == {whole.name, half.name}
    assert texts.describe_text(half)["is_complete"]
    assert [file["name"] for file in texts.describe_text(half)["files"]] == ["b"]
    assert list((half / "arriving").iterdir()) == []


def test_a_text_that_is_deleted_is_gone(workspace: Workspace) -> None:
    folder = _text(workspace, "a")
    texts.delete(folder)
    assert list(workspace.texts.iterdir()) == []
    for act in (texts.describe_text, texts.complete):
        _refused(404, act, folder)


def test_a_text_that_is_deleted_during_a_look_hides_no_other(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, deleted = _text(workspace, "a"), _text(workspace, "b")
    glob = Path.glob

    def glob_and_lose(folder: Path, pattern: str) -> list[Path]:
        found = [*glob(folder, pattern)]
        texts.delete(deleted)
        return found

    monkeypatch.setattr(Path, "glob", glob_and_lose)
    assert texts.text_folders(workspace) == [there]


@unix_only
def test_nobody_else_on_this_computer_can_read_a_text(workspace: Workspace) -> None:
    folder = _text(workspace, "a")
    for path in (workspace.texts, folder, *folder.rglob("*")):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
    assert os.access(folder / "files/a", os.R_OK)
