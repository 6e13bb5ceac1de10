"""Files of texts as they come: the names under which they are kept, how much they may be, and what
is left when an upload, or the studio, ends too early."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from minigpt.studio.answers import Refusal
from minigpt.studio.texts import upload
from minigpt.studio.texts.about import texts_in, whole_text
from minigpt.studio.workspace import Workspace
from tests.conftest import unix_only
from tests.hostile import NO_ROOM, UNSAFE_NAMES

from .dropped import dropped, receive


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """An empty folder, whose disk may be full to the last byte."""
    monkeypatch.setattr(upload, "_LEAST_FREE", 0)
    return Workspace(tmp_path)


def _text(workspace: Workspace, *names: str, data: bytes = b"text") -> Path:
    """The folder of a text whose files have come."""
    return dropped(workspace.root, dict.fromkeys(names, data))


def _refused(status: int, act: Any, *arguments: Any) -> None:
    with pytest.raises(Refusal) as refused:
        act(*arguments)
    assert refused.value.status == status


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "files").iterdir())


def _left(folder: Path) -> list[str]:
    """What lies beside the files of a text that does not belong there."""
    known = {"files", "names.jsonl", "text.json", "settings.json"}
    return [path.name for path in folder.iterdir() if path.name not in known]


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
    shown = [file["name"] for file in whole_text(folder)["files"]]
    assert shown == ["a/notes.txt", "b/notes.txt", "NOTES.TXT", "notes (2).txt"]


def test_a_text_is_called_as_its_folder_or_its_first_file(workspace: Workspace) -> None:
    assert whole_text(_text(workspace, "Diary/may.txt", "Diary/june.txt"))["name"] == "Diary"
    assert whole_text(_text(workspace, "my novel.tar.gz"))["name"] == "my novel"


# Limits


def test_a_text_has_no_more_files_and_bytes_than_it_may(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload, "_MOST_FILES", 3)
    monkeypatch.setattr(upload, "_MOST_BYTES", 1000)
    folder = _text(workspace, "a", "b", data=b"x" * 400)
    _refused(413, receive, folder, "c", b"x" * 201)
    _refused(413, receive, folder, "c", b"x", 201)  # before anything of it has come
    receive(folder, "c", b"x" * 200)
    _refused(413, receive, folder, "d", b"")
    assert _names(folder) == ["a", "b", "c"] and _left(folder) == []

    upload.remove_file(folder, "a")
    assert receive(folder, "d", b"x" * 400) == "d"


def test_of_files_that_come_at_once_only_those_that_have_a_place_stay(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload, "_MOST_BYTES", 1000)
    folder = upload.create(workspace, {})
    both_have_begun = asyncio.Barrier(2)

    async def parts() -> AsyncIterator[bytes]:
        await both_have_begun.wait()
        yield b"x" * 600

    async def both() -> list[str | BaseException]:
        coming = (upload.receive(folder, "a", parts()) for _ in range(2))
        return await asyncio.gather(*coming, return_exceptions=True)

    results = asyncio.run(both())
    assert sorted(getattr(result, "status", 201) for result in results) == [201, 413]
    assert _names(folder) == ["a"] and _left(folder) == []


def test_a_disk_without_room_is_told_before_anything_comes(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = upload.create(workspace, {})
    free = shutil.disk_usage(workspace.root).free
    monkeypatch.setattr(upload, "_LEAST_FREE", free - 10**9)
    _refused(507, receive, folder, "a", b"text", 2 * 10**9)
    monkeypatch.setattr(upload, "_LEAST_FREE", 1 << 60)
    _refused(507, receive, folder, "a", b"text")
    _refused(507, upload.create, workspace, {})
    assert list(workspace.texts.iterdir()) == [folder]
    assert _names(folder) == [] == _left(folder)


@pytest.mark.parametrize("step", ["write_json", "open_new", "_keep"])
def test_of_tales_that_fill_the_disk_nothing_stays(
    step: str, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise NO_ROOM

    monkeypatch.setattr(upload, step, fail)
    with pytest.raises(OSError, match="No space left"):
        upload.create(workspace, {}, are_tales=True)
    assert list(workspace.texts.iterdir()) == []


def test_of_an_upload_that_is_broken_off_nothing_stays(workspace: Workspace) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"x" * 100
        assert len(_left(folder)) == 1
        raise ConnectionError

    folder = upload.create(workspace, {})
    with pytest.raises(ConnectionError):
        asyncio.run(upload.receive(folder, "a", broken()))
    assert _names(folder) == [] == _left(folder)


# What becomes of a text


def test_a_file_never_takes_the_place_of_another(workspace: Workspace) -> None:
    folder = _text(workspace, "a", data=b"first")
    assert receive(folder, "a", b"other") == "a (2)"
    assert (folder / "files/a").read_bytes() == b"first"

    upload.remove_file(folder, "a")
    for kept in ("a", "../text.json", ""):
        _refused(404, upload.remove_file, folder, kept)
    assert [file["name"] for file in whole_text(folder)["files"]] == ["a"]
    assert _names(folder) == ["a (2)"]


def test_a_studio_that_was_killed_loses_only_what_was_just_coming(workspace: Workspace) -> None:
    whole = _text(workspace, "a")
    half = _text(workspace, "b")
    (half / ".arriving-1").write_bytes(b"te")
    never = upload.create(workspace, {})
    (never / ".arriving-2").write_bytes(b"te")
    half_deleted = _text(workspace, "c")
    (half_deleted / "text.json").unlink()
    of_somebody_else = workspace.texts / "poems"
    of_somebody_else.mkdir()
    for name in ("text.json", ".arriving-3"):
        (of_somebody_else / name).write_text('{"name": ""}')
    (workspace.texts / "list.txt").write_text("poems")

    upload.remove_half(workspace)
    assert {text["id"] for text in texts_in(workspace)} == {whole.name, half.name}
    assert _left(half) == [] and not never.exists() and not half_deleted.exists()
    assert len([*of_somebody_else.iterdir()]) == 2 and (workspace.texts / "list.txt").exists()


def test_what_cannot_be_removed_keeps_no_studio_from_opening(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = _text(workspace, "a")
    (half / ".arriving-1").write_bytes(b"te")
    never = upload.create(workspace, {})

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "unlink", refuse)
    upload.remove_half(workspace)
    assert [text["id"] for text in texts_in(workspace)] == [half.name]
    assert never.exists()


def test_a_text_is_in_the_list_when_its_first_file_is_there(workspace: Workspace) -> None:
    folder = upload.create(workspace, {})
    of_somebody_else = workspace.texts / "poems" / "files"
    of_somebody_else.mkdir(parents=True)
    (of_somebody_else.parent / "text.json").write_text('{"name": "poems"}')
    assert texts_in(workspace) == []
    receive(folder, "a", b"text")
    (text,) = texts_in(workspace)
    assert (text["name"], text["files"], text["size"], text["state"]) == ("a", 1, 4, "unread")
    upload.remove_file(folder, "a")
    (text,) = texts_in(workspace)
    assert (text["name"], text["files"], text["state"]) == ("a", 0, "empty")


def test_a_text_that_is_deleted_is_gone_and_takes_no_file(workspace: Workspace) -> None:
    folder = _text(workspace, "a")

    async def parts() -> AsyncIterator[bytes]:
        yield b"more"
        upload.delete(folder)

    _refused(404, lambda: asyncio.run(upload.receive(folder, "b", parts())))
    assert list(workspace.texts.iterdir()) == []
    _refused(404, whole_text, folder)


def test_a_text_that_is_deleted_during_a_look_hides_no_other(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, deleted = _text(workspace, "a"), _text(workspace, "b")
    glob = Path.glob

    def glob_and_lose(folder: Path, pattern: str) -> list[Path]:
        found = [*glob(folder, pattern)]
        upload.delete(deleted)
        return found

    monkeypatch.setattr(Path, "glob", glob_and_lose)
    assert [text["id"] for text in texts_in(workspace)] == [there.name]


@unix_only
def test_nobody_else_on_this_computer_can_read_a_text(workspace: Workspace) -> None:
    folder = _text(workspace, "a")
    for path in (workspace.texts, folder, *folder.rglob("*")):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
    assert os.access(folder / "files/a", os.R_OK)
