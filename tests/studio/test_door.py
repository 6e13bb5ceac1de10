"""The door of a studio, by which a second command finds the one that is open: without a process."""

import json
import signal
from pathlib import Path

import pytest
from filelock import FileLock

from minigpt import UserError
from minigpt.studio import opening
from minigpt.studio.workspace import Workspace

from ..hostile import NO_ROOM


class _Silent:
    """A server that ends at once."""

    async def serve(self, sockets: object) -> None:
        pass


@pytest.fixture
def nothing_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "make_studio_server", lambda app: _Silent())
    monkeypatch.setattr(signal, "signal", lambda *_: None)


@pytest.mark.usefixtures("nothing_listens")
def test_a_full_disk_keeps_no_studio_from_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise NO_ROOM

    monkeypatch.setattr(opening, "replace", fail)
    opening.open_studio(Workspace(tmp_path), port=0, opens_browser=False)
    assert capsys.readouterr().out.startswith("minigpt studio: http://localhost:")


def test_another_studio_than_the_open_one_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(tmp_path)
    workspace.runs.mkdir()

    def open_again(door: dict[str, object], **asked: object) -> str:
        workspace.door.write_text(json.dumps({"address": "http://localhost:8765/", **door}))
        with FileLock(workspace.lock):
            usual = {"port": None, "opens_browser": False}
            opening.open_studio(workspace, **{**usual, **asked})  # type: ignore[arg-type]
        return capsys.readouterr().out

    plain = {"token": "x", "is_lesson": False}
    for asked, problem in (
        ({"port": 9000}, "the studio is open already, at port 8765; close it first"),
        ({"is_lesson": True}, "the studio is open already, without --lesson; close it first"),
    ):
        with pytest.raises(UserError, match=problem):
            open_again(plain, **asked)

    address = "http://localhost:8765/#x"
    for asked in ({}, {"port": 0}, {"port": 8765}):
        assert open_again(plain, **asked) == f"The studio is open already: {address}\n"
    lesson = {**plain, "is_lesson": True}
    for asked in ({}, {"is_lesson": True}):
        said = f"The studio is open already, with --lesson: {address}\n"
        assert open_again(lesson, **asked) == said
