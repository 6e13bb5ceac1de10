"""One real training from the line to its last trace: it outlives the studio that began it, is
stopped, goes on, and is removed with all that came from its text."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from minigpt.runs.state import facts_of
from minigpt.studio.trainings.asking import ask, go_on, is_busy, read_job, stop
from minigpt.studio.trainings.line import Line
from minigpt.studio.trainings.removal import everything_of_run, put_into_bin
from minigpt.studio.trainings.shown import told_of
from minigpt.studio.workspace import Workspace

from ..conftest import TINY, some_text
from ..patience import PATIENCE

pytestmark = pytest.mark.studio

TEXT = "0123456789ab"
SENTENCE = "The purple walrus sang at noon."
SETTINGS = {
    **TINY,
    "init": "none",
    "steps": 100_000,
    "num_evals": 5_000,
    "eval_tokens": 200,
    "num_workers": 1,
}
STUDIO = """
import sys
from pathlib import Path
from minigpt.studio.trainings.line import Line
from minigpt.studio.workspace import Workspace
workspace = Workspace(Path(sys.argv[1]))
Line(workspace).open()
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A workspace with a text, and a cache of its own."""
    folder = tmp_path_factory.mktemp("studio")
    workspace = Workspace(folder)
    files = workspace.texts / TEXT / "files"
    files.mkdir(parents=True)
    (files / "diary.txt").write_text(f"{some_text()}{SENTENCE}\n{some_text(seed=1)}")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("MINIGPT_CACHE", str(folder / "cache"))
        yield workspace


def wait_for(look: Callable[[], Any], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not look():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.1)


def wait_until(run: Path, *wanted: str) -> None:
    """Wait until a run is in one of these states."""
    ended = {"failed", "died", "gone"} - {*wanted}

    def is_there() -> bool:
        found = told_of(run)
        assert found["state"] not in ended, found
        return found["state"] in wanted

    wait_for(is_there, f"{run.name} to be {wanted}")


@pytest.fixture(scope="module")
def stopped(workspace: Workspace) -> Path:
    """A run that one studio began, which was killed, and that another one has stopped."""
    text = {"id": TEXT, "name": "diary", "size": 1, "characters": 1, "beginning": "the"}
    run = ask(workspace, text=text, name="diary", minutes=1.0, settings=SETTINGS)
    waits = ask(workspace, text=text, name="waits", minutes=1.0, settings=SETTINGS)

    studio = subprocess.Popen(
        [sys.executable, "-c", STUDIO, str(workspace.root)], stdin=subprocess.PIPE
    )
    wait_for(lambda: facts_of(run).said, "its process to speak")  # else none may be started yet
    studio.kill()
    studio.wait()

    assert Line(workspace).look() is None
    assert told_of(waits)["state"] == "waiting"
    stop(waits)
    wait_until(run, "learning")
    wait_for(lambda: told_of(run)["bits"], "its first evaluation")
    stop(run)
    wait_until(run, "stopped")
    wait_for(lambda: not is_busy(run), "its process to end")
    return run


def test_a_training_outlives_the_studio_and_is_stopped_by_the_next(stopped: Path) -> None:
    found = told_of(stopped)
    assert found["state"] == "stopped"
    assert found["problem"] is None
    assert found["has_learned"]
    assert found["bits"] > 0


def test_it_goes_on_for_as_long_as_it_is_told(workspace: Workspace, stopped: Path) -> None:
    before = told_of(stopped)["elapsed"]
    go_on(stopped, 0.1)  # long enough for a step, however busy the computer
    assert Line(workspace).look() == stopped
    wait_until(stopped, "done")
    wait_for(lambda: not is_busy(stopped), "its process to end")

    found = told_of(stopped)
    assert found["minutes"] == pytest.approx(before / 60 + 0.1, abs=1e-3)
    assert found["elapsed"] > before
    assert (read_job(stopped) or pytest.fail()).goes_on


def test_deleting_all_that_came_from_a_text_leaves_no_sentence_of_it(
    workspace: Workspace, stopped: Path
) -> None:
    other = workspace.texts / "ba9876543210" / "files" / "other.txt"
    other.parent.mkdir(parents=True)
    other.write_text("untouched")
    outside = workspace.root / "outside.txt"
    outside.write_text("untouched")
    (workspace.texts / TEXT / "files" / "link.txt").symlink_to(outside)
    put_into_bin(workspace, stopped)
    assert holding(workspace.root, SENTENCE.encode())

    everything = everything_of_run(workspace, workspace.bin / "diary")
    parts = everything.parts(workspace)
    assert [(part["kind"], part["name"]) for part in parts[:2]] == [
        ("text", TEXT),
        ("bin", "diary"),
    ]
    assert parts[2]["kind"] == "cache"
    assert all(part["size"] > 0 for part in parts)

    everything.remove()
    assert holding(workspace.root, SENTENCE.encode()) == []
    assert not [*(workspace.root / "cache").rglob("*.bin")]
    assert not (workspace.texts / TEXT).exists()
    assert [*workspace.bin.iterdir()] == []
    assert other.read_text() == outside.read_text() == "untouched"


def holding(folder: Path, sought: bytes) -> list[Path]:
    """The files in a folder that hold some bytes."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [file for file in files if sought in file.read_bytes()]
