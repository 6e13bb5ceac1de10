"""What the studio answers for runs: states, rows, texts and files of them."""

import asyncio
import errno
import io
import json
import math
import shutil
import sys
import zipfile
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from minigpt.runs.folder import STEPS
from minigpt.studio import children as children_module
from minigpt.studio import writing as writing_module
from minigpt.studio.children import ChildError, read_child
from minigpt.studio.context import Studio
from minigpt.studio.trainings import asking, removal
from minigpt.studio.trainings import line as line_module
from minigpt.studio.trainings import routes as routes_module
from minigpt.studio.trainings import shown as shown_module
from minigpt.studio.trainings.asking import write_job
from minigpt.studio.workspace import Workspace
from minigpt.studio.writing import GenerateCommand, WrittenText

from ..conftest import unix_only
from ..hostile import NO_ROOM
from ..patience import PATIENCE
from .by_hand import TEXT, a_job, a_step, make_run, write_weights
from .conftest import Window

LEARNED: dict[str, Any] = {
    "phase": "training",
    "steps": 3,
    "evaluations": 1,
    "has_checkpoint": True,
    "how": "finished",
}


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_module, "start_detached", lambda *_, **__: 1)


@pytest.fixture
def workspace(window: Window) -> Workspace:
    return window.studio.workspace


@pytest.fixture(scope="module")
def learned(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Window]:
    """A window of a studio with a run that can write, "tiny", and a run of letters."""
    workspace = Workspace(tmp_path_factory.mktemp("learned"))
    shutil.copytree(tiny_run, workspace.runs / "tiny")
    shutil.copy(tiny_run.parents[1] / "my.txt", workspace.root / "my.txt")
    studio = Studio(workspace, close=lambda: None)
    with studio.running():
        window = Window(studio)
        window.enter(studio.logins.token)
        yield window


def rows_of(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in body.decode().splitlines()]


# States


def test_the_state_holds_runs_the_bin_and_the_line(window: Window, workspace: Workspace) -> None:
    make_run(workspace.runs, "done", job=a_job(), **LEARNED)
    make_run(workspace.runs, "learns", phase="training", is_alive=True)
    make_run(workspace.runs, "waits", job=a_job(is_waiting=True, started=None))
    make_run(workspace.bin, "deleted", **LEARNED)
    found = window.get("/api/state").json
    states = {run["name"]: run["state"] for run in found["runs"]}
    assert states == {"done": "done", "learns": "learning", "waits": "waiting"}
    assert [run["name"] for run in found["bin"]] == ["deleted"]
    assert [(one["name"], one["place"]) for one in found["line"]] == [("waits", 1)]
    assert found["texts"] == []
    assert found["free"] > 0
    assert found["folder"] == workspace.root.name


def test_a_run_is_answered_with_its_rows(window: Window, workspace: Workspace) -> None:
    run = make_run(workspace.runs, "my diary", **LEARNED)
    first = window.get("/api/runs/my diary").json
    assert first["run"]["name"] == "my diary"
    assert len(first["rows"]["steps"]) == 3
    with open(run / STEPS, "a") as file:
        file.write(json.dumps(a_step(4)) + "\n")
    second = window.get(f"/api/runs/my diary?after={first['after']}").json
    assert second["rows"] == {"steps": [a_step(4)], "evaluations": [], "samples": []}


def test_a_window_that_has_seen_all_is_told_nothing(window: Window, workspace: Workspace) -> None:
    run = make_run(workspace.runs, "diary", **LEARNED)
    for path in ("/api/state?", "/api/runs/diary?after=&"):
        key = window.get(path).json["key"]
        assert window.get(f"{path}seen={key}").status == 204
    first = window.get("/api/runs/diary").json
    with open(run / STEPS, "a") as file:
        file.write(json.dumps(a_step(4)) + "\n")
    assert window.get(f"/api/runs/diary?seen={first['key']}").json["key"] != first["key"]


@unix_only
def test_names_that_are_not_utf_8_hide_nothing(window: Window, workspace: Workspace) -> None:
    """Of a folder, and of the text that a run learned from."""
    make_run(workspace.runs, "good", **LEARNED)
    make_run(workspace.runs, "caf\udce9", **LEARNED)
    run = make_run(workspace.runs, "odd", **LEARNED)
    settings = json.loads((run / "config.json").read_text())
    settings["origin"] = {"text": {"files": ["caf\udce9.txt"]}}
    (run / "config.json").write_text(json.dumps(settings))

    found = {run["name"]: run for run in window.get("/api/state").json["runs"]}
    assert {name: run["state"] for name, run in found.items()} == {
        "good": "done", "odd": "done", "caf\ufffd": "failed",
    }  # fmt: skip
    assert "not UTF-8" in found["caf\ufffd"]["problem"]["message"]
    assert found["odd"]["text"]["name"] == "caf\udce9.txt"
    assert window.get("/api/runs/odd").status == 200


def test_a_run_that_was_stopped_before_its_first_step_is_shown(
    window: Window, workspace: Workspace
) -> None:
    run = make_run(
        workspace.runs, phase="training", how="stopped", has_checkpoint=True, job=a_job()
    )
    (run / STEPS).touch()
    write_weights(run, bits=math.inf)  # nothing was evaluated
    (found,) = window.get("/api/state").json["runs"]
    assert (found["state"], found["bits"], found["has_learned"]) == ("stopped", None, True)
    assert window.get("/api/runs/diary").json["run"] == found


def test_a_number_that_json_does_not_know_is_null(window: Window, workspace: Workspace) -> None:
    run = make_run(workspace.runs, **LEARNED)
    with open(run / STEPS, "a") as file:
        file.write(json.dumps({**a_step(4), "loss": math.nan}) + "\n")
    rows = window.get("/api/runs/diary").json["rows"]
    assert rows["steps"][-1]["loss"] is None


def test_a_folder_that_cannot_be_described_hides_no_other(
    window: Window,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_run(workspace.runs, "good", **LEARNED)
    make_run(workspace.runs, "odd", **LEARNED)
    read = shown_module.facts_of

    def read_or_fail(folder: Path) -> Any:
        return read(folder) if folder.name == "good" else {}["nowhere"]

    monkeypatch.setattr(shown_module, "facts_of", read_or_fail)
    for _ in range(2):
        found = {run["name"]: run for run in window.get("/api/state").json["runs"]}
    assert found["good"]["state"] == "done"
    assert found["odd"]["state"] == "failed"
    assert found["odd"]["problem"] == {"kind": "other", "message": "KeyError: 'nowhere'"}
    assert capsys.readouterr().err.count("Traceback") == 1


def test_a_mistake_of_the_studio_is_printed_once(
    window: Window, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(window.studio, "runs", lambda: 1 // 0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):  # the server gets it, too, after the answer
            window.get("/api/state")
    assert capsys.readouterr().err.count("ZeroDivisionError: ") == 1


@pytest.mark.parametrize("name", ["nobody", "..", ".bin", "%2e%2e", "a\\b"])
def test_a_run_that_is_not_there_is_gone(name: str, window: Window, workspace: Workspace) -> None:
    make_run(workspace.bin, "deleted", **LEARNED)
    answer = window.get(f"/api/runs/{name}")
    assert answer.json["run"]["state"] == "gone"
    assert answer.json["rows"] == {}
    for act in ("stop", "delete", "write", "page", "copied"):
        assert window.post(f"/api/runs/{name}/{act}").status == 404


# Changes


def test_a_run_that_is_moved_while_it_is_changed_is_gone(
    window: Window, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(workspace.runs, job=a_job(), **{**LEARNED, "how": "stopped"})

    def write_moved(moved: Path, job: Any) -> None:
        moved.rename(workspace.root / "elsewhere")
        write_job(moved, job)

    monkeypatch.setattr(asking, "write_job", write_moved)
    answer = window.post(f"/api/runs/{run.name}/go-on", {"minutes": 5})
    assert (answer.status, answer.json["kind"]) == (404, "run_gone")
    assert not run.exists()


def test_on_windows_a_file_that_is_open_is_said_in_words(
    window: Window, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log of a training is open until its process has left."""
    run = make_run(workspace.runs, job=a_job(), **LEARNED)

    def refuse(path: Path, name: Path) -> None:
        raise PermissionError(errno.EACCES, "Access is denied", str(path))

    monkeypatch.setattr(removal, "rename", refuse)
    monkeypatch.setattr("minigpt.system.platforms._NAME", "nt")
    answer = window.post(f"/api/runs/{run.name}/delete")
    said = f"{run.name} is still open in another program. Try again in a moment."
    assert (answer.status, answer.json["message"]) == (409, said)


def test_a_run_is_renamed_deleted_and_put_back(window: Window, workspace: Workspace) -> None:
    make_run(workspace.runs, "diary", **LEARNED)
    assert window.post("/api/runs/diary/rename", {"name": "novel"}).json["name"] == "novel"
    assert window.post("/api/runs/novel/delete").json["state"] == "gone"
    assert window.post("/api/runs/novel/restore").json["state"] == "done"
    assert window.post("/api/runs/novel/restore").status == 404
    window.post("/api/runs/novel/delete")
    assert window.post("/api/empty-bin").json == {"problems": []}
    assert window.get("/api/state").json["bin"] == []


def test_a_wrong_request_names_its_field_and_changes_nothing(
    window: Window, workspace: Workspace
) -> None:
    run = make_run(workspace.runs, "diary", **LEARNED)
    for act, sent, field in [
        ("rename", {"name": ""}, "name"),
        ("rename", {"name": 3}, "name"),
        ("go-on", {}, "minutes"),
        ("go-on", {"minutes": "x"}, "minutes"),
        ("export", {"kind": "pickle"}, "kind"),
        ("write", {"prompt": 3}, "prompt"),
        ("write", {"settings": []}, "settings"),
        ("write", {"settings": {"samples": 4}}, None),
        ("write", {"settings": {"temperature": -1}}, None),
        ("write", {"settings": {"seed": -2}}, None),
    ]:
        answer = window.post(f"/api/runs/diary/{act}", sent)
        assert (answer.status, answer.json["field"]) == (400, field), (act, sent, answer.body)
    assert window.get("/api/runs/diary").json["run"]["state"] == "done"
    assert run.exists()


def test_a_training_is_asked_for_and_stopped(window: Window, workspace: Workspace) -> None:
    run = make_run(workspace.runs, "diary", job=a_job(), **LEARNED)
    answer = window.post("/api/runs/diary/go-on", {"minutes": 5}).json
    assert answer["state"] in ("waiting", "reading")
    window.studio.line.look()
    assert window.post("/api/runs/diary/stop").json["state"] == "stopping"
    assert (run / "journal/stop").read_text() == "stop\n"
    assert window.post("/api/runs/diary/delete").status == 409


def test_a_disk_without_a_byte_has_too_little_room_to_train(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = {"text": window.post("/api/texts", {"tales": True}).json["id"], "name": "x"}
    about = {"id": sent["text"], "name": "tales", "files": 1, "size": 9, "characters": 9}
    monkeypatch.setattr(routes_module, "for_run", lambda folder: about)
    monkeypatch.setattr(routes_module, "free_space", lambda place: 0)
    assert window.post("/api/runs", sent).status == 507


@pytest.mark.parametrize("text", [None, 3, "nobody", "../runs"])
def test_a_training_needs_a_text(text: Any, window: Window, workspace: Workspace) -> None:
    answer = window.post("/api/runs", {"text": text, "name": "x", "minutes": 1})
    assert answer.status in (400, 404)
    assert not workspace.runs.exists() or [*workspace.runs.iterdir()] == []


def test_all_of_a_text_is_removed_only_where_all_of_it_was_named(
    window: Window, workspace: Workspace
) -> None:
    make_run(workspace.runs, "diary", job=a_job(), **LEARNED)
    asked = window.post("/api/runs/diary/delete-all").json
    assert [(part["kind"], part["name"]) for part in asked["parts"]] == [("run", "diary")]
    assert not asked["removed"]

    make_run(workspace.runs, "later", job=a_job(), **LEARNED)
    asked = window.post("/api/runs/diary/delete-all", {"named": [["run", "diary"]]}).json
    assert [part["name"] for part in asked["parts"]] == ["diary", "later"]
    assert not asked["removed"]
    assert len([*workspace.runs.glob("*/journal")]) == 2

    named = [[part["kind"], part["name"]] for part in asked["parts"]]
    assert window.post("/api/runs/diary/delete-all", {"named": named}).json["removed"]
    assert [*workspace.runs.glob("*/journal")] == []


# What a run is for


@pytest.mark.long
def test_a_run_writes_what_it_writes_at_a_terminal(learned: Window) -> None:
    """With any seed, which minus one means, or a chosen one."""
    written = []
    for seed in (3, -1):
        settings = {"max_new_tokens": 8, "temperature": 0, "seed": seed}
        answer = learned.post("/api/runs/tiny/write", {"prompt": "the fox", "settings": settings})
        *texts, end = rows_of(answer.body)
        assert end == {"end": True, "problem": None}
        written.append("".join(row["text"] for row in texts))
    assert written[0].startswith("the fox") and len(written[0]) > len("the fox\n")
    assert written[0] == written[1]


@pytest.mark.parametrize("prompt", ["--help $(touch x)\na\n", ""])
def test_a_prompt_is_never_an_option_or_a_command(prompt: str, learned: Window) -> None:
    sent = {"prompt": prompt, "settings": {"max_new_tokens": 1}}
    *texts, end = rows_of(learned.post("/api/runs/tiny/write", sent).body)
    assert end["problem"] is None
    assert "".join(row["text"] for row in texts).startswith(prompt)
    assert not (learned.studio.workspace.root / "x").exists()


def test_a_child_ends_when_its_reader_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    has_ended: list[bool] = []

    async def write_forever(*_: Any, **__: Any) -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"and "
        finally:
            await asyncio.sleep(0)  # as while it is killed
            has_ended.append(True)

    monkeypatch.setattr(writing_module, "read_child", write_forever)
    has_left = asyncio.Event()
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        await has_left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)
        if len(sent) > 3:
            has_left.set()

    async def read() -> None:
        text = WrittenText(Workspace(Path()), GenerateCommand("runs/x", ""), asyncio.Semaphore(1))
        async with asyncio.timeout(PATIENCE):
            await text({"type": "http"}, receive, send)
        assert has_ended

    asyncio.run(read())


class FastClock(asyncio.SelectorEventLoop):
    """A loop whose clock is put forward, however fast the machine is."""

    _ahead = 0.0

    def time(self) -> float:
        return super().time() + self._ahead

    async def put_forward(self, seconds: float) -> None:
        """Let so much time be over, and all that waits for that be done."""
        self._ahead += seconds
        for _ in range(5):
            await asyncio.sleep(0)


def run(coroutine: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> None:
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(coroutine)


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Children print without an end."""
    program = [sys.executable, "-S", "-c", "while True: print('and ' * 20_000)"]
    monkeypatch.setattr(children_module, "module_command", lambda *_: program)


@pytest.mark.usefixtures("endless")
def test_a_text_that_a_slow_client_reads_too_late_still_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writing_module, "_SECONDS_TO_WRITE", PATIENCE)
    rows: list[dict[str, Any]] = []

    clock = FastClock()

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Any) -> None:
        if message.get("body"):
            if not rows:
                await clock.put_forward(PATIENCE)
            rows.extend(rows_of(message["body"]))

    async def read() -> None:
        text = WrittenText(Workspace(Path()), GenerateCommand("runs/x", ""), asyncio.Semaphore(1))
        async with asyncio.timeout(3 * PATIENCE):
            await text({"type": "http"}, receive, send)

    run(read(), clock)
    assert rows[-1]["end"] and "too long" in rows[-1]["problem"]["message"]


@pytest.mark.usefixtures("endless")
def test_a_child_that_takes_too_long_ends_and_does_not_disturb_who_reads_it() -> None:
    clock = FastClock()

    async def read() -> None:
        with pytest.raises(ChildError, match="too long"):
            async for _ in read_child([], Path(), seconds=PATIENCE):
                await clock.put_forward(PATIENCE)

    run(read(), clock)


class FastChild:
    """A process that has always printed more already, until it is killed."""

    returncode: int | None = None

    def __init__(self) -> None:
        self.stdin = SimpleNamespace(write=len, drain=self.end, close=list)
        self.stdout = SimpleNamespace(read=self.read)
        self.stderr = SimpleNamespace(read=self.end)

    async def read(self, *_: int) -> bytes:
        return b"and " if self.returncode is None else b""

    async def end(self) -> bytes:
        return b""

    def kill(self) -> None:
        self.returncode = -9

    async def wait(self) -> int | None:
        return self.returncode


def test_a_child_ends_in_time_even_if_there_is_always_more_to_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = FastClock()
    child = FastChild()
    parts: list[bytes] = []

    async def start(*_: Any, **__: Any) -> FastChild:
        return child

    async def read() -> None:
        with pytest.raises(ChildError, match="too long"):
            async for part in read_child([], Path(), seconds=PATIENCE):
                parts.append(part)
                assert len(parts) == 1
                await clock.put_forward(2 * PATIENCE)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    run(read(), clock)
    assert child.returncode is not None


@pytest.mark.usefixtures("endless")
def test_a_child_ends_even_if_much_of_what_it_printed_is_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[asyncio.subprocess.Process] = []
    start = asyncio.create_subprocess_exec

    async def start_and_keep(*words: Any, **options: Any) -> asyncio.subprocess.Process:
        started.append(await start(*words, **options))
        return started[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start_and_keep)

    async def read() -> None:
        async with asyncio.timeout(PATIENCE):
            parts = read_child([], Path())
            await anext(parts)
            (child,) = started
            assert child.stdout is not None
            while not child.stdout._paused:  # asyncio has no room for more of it
                await asyncio.sleep(0.01)
            await parts.aclose()
        assert child.returncode is not None

    asyncio.run(read())


def test_what_a_run_cannot_write_is_refused_with_a_sentence(learned: Window) -> None:
    answer = learned.post("/api/runs/tiny/write", {"prompt": "x", "settings": {"as": "Otto"}})
    assert answer.status == 409
    assert "--as" in answer.json["message"]


def test_a_run_that_has_saved_nothing_yet_writes_nothing(
    window: Window, workspace: Workspace
) -> None:
    make_run(workspace.runs, "young", phase="training", is_alive=True)
    for act in ("write", "page", "download", "copied", "export"):
        answer = window.post(f"/api/runs/young/{act}", {"kind": "hf"})
        assert answer.status == 409
        assert "saved nothing yet" in answer.json["message"]


def test_a_page_is_fetched_once(learned: Window) -> None:
    address = learned.post("/api/runs/tiny/page", {"show": True}).json["address"]
    answer = learned.get(address)
    assert answer.body.startswith(b"<!doctype html>") and b"tiny" in answer.body
    assert learned.get(address).status == 404


@pytest.mark.long
def test_the_page_of_a_text_of_several_files_says_how_many(learned: Window) -> None:
    runs = learned.studio.workspace.runs
    shutil.copytree(runs / "tiny", runs / "of vault")
    write_job(runs / "of vault", a_job(text=TEXT | {"name": "vault", "files": 12}))
    address = learned.post("/api/runs/of vault/page").json["address"]
    assert b'"text":"vault, 12 files"' in learned.get(address).body
    shutil.rmtree(runs / "of vault")


def test_a_download_holds_a_run_without_its_checkpoint(learned: Window) -> None:
    address = learned.post("/api/runs/tiny/download").json["address"]
    with zipfile.ZipFile(io.BytesIO(learned.get(address).body)) as packed:
        names = packed.namelist()
    assert {"tiny/model.safetensors", "tiny/config.json", "tiny/tokenizer.json"} <= {*names}
    assert not [name for name in names if "checkpoint" in name or "journal" in name]


def test_a_full_disk_is_told_where_a_child_meets_it(
    learned: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any, **__: Any) -> AsyncIterator[bytes]:
        raise ChildError(2, f"cannot write tiny.gguf: {NO_ROOM.strerror}")
        yield b""

    monkeypatch.setattr("minigpt.studio.downloads.read_child", fail)
    assert learned.post("/api/runs/tiny/export", {"kind": "gguf"}).status == 507


def test_an_export_is_an_archive(learned: Window) -> None:
    address = learned.post("/api/runs/tiny/export", {"kind": "gguf"}).json["address"]
    with zipfile.ZipFile(io.BytesIO(learned.get(address).body)) as packed:
        assert packed.namelist() == ["tiny-gguf/tiny.gguf"]


def test_what_was_found_copied_is_kept_with_the_run(learned: Window) -> None:
    figures = learned.post("/api/runs/tiny/copied").json
    assert 0 <= figures["share"] <= 1
    run = learned.get("/api/runs/tiny").json["run"]
    assert run["copied"] == {"share": figures["share"], "unseen": figures["usual_share"]}
