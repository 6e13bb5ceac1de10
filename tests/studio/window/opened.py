"""Studios for windows: one of the real program, and one in the process of the tests, which opens in
no time."""

import asyncio
import contextlib
import importlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from minigpt.serve.sockets import listen
from minigpt.studio.children import Children
from minigpt.studio.context import Studio
from minigpt.studio.opening import make_studio_server
from minigpt.studio.routes import make_app
from minigpt.studio.texts.work import TextWork
from minigpt.studio.workspace import Workspace
from tests.patience import PATIENCE

_STARTED = [sys.executable, "-m", "minigpt", "studio", "--no-browser"]
_WORK = {
    "minigpt.studio.texts.reading": "read",
    "minigpt.studio.texts.planning": "write_plans",
}


class Opened:
    """A studio in a folder, at a port of this machine; `address` is the one that lets in.

    It can be killed and started again at the same port.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.port = "0"
        self.start()

    def start(self) -> None:
        """Open it."""
        workspace = Workspace(self.folder)
        workspace.runs.mkdir(exist_ok=True)
        sockets = listen("localhost", int(self.port))
        self.port = str(sockets[0].getsockname()[1])
        self.url = f"http://localhost:{self.port}"

        self.studio = Studio(workspace, self._close)
        self.studio.text_work.close()
        self.studio.children = _ThreadChildren()
        self.studio.text_work = TextWork(self.studio.children, workspace.root)
        self.address = f"{self.url}/#{self.studio.logins.token}"
        self._server = make_studio_server(make_app(self.studio, int(self.port)))
        self._server.config.timeout_graceful_shutdown = 0  # a killed one waits for nobody
        self._thread = threading.Thread(target=self._serve, args=(sockets,), daemon=True)
        self._thread.start()

    def _serve(self, sockets: list[Any]) -> None:
        with self.studio.running():
            asyncio.run(self._serve_until_closed(sockets))

    async def _serve_until_closed(self, sockets: list[Any]) -> None:
        await self._server.serve(sockets)
        for _ in range(5):  # as the connections of a process that ends; some have just come
            for connection in list(self._server.server_state.connections):
                connection.transport.abort()
            await asyncio.sleep(0)

        # What answers still do is ended once: ended again, it would not wait for its own child.
        answers = asyncio.all_tasks() - {asyncio.current_task()}
        for answer in answers:
            if not answer.cancelling():
                answer.cancel()
        if answers:
            await asyncio.wait(answers)

    def _close(self) -> None:
        self._server.should_exit = True

    def is_open(self) -> bool:
        """Whether it answers."""
        return self._thread.is_alive() and not self._server.should_exit

    def kill(self) -> None:
        """End it; trainings go on."""
        self._close()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


class _ThreadChildren(Children):
    """Reads and plans in threads, for which no torch has to be loaded anew."""

    def start(self, module: str, arguments: Sequence[str], folder: Path) -> Any:
        return _ThreadChild(module, Path(arguments[0]))


class _ThreadChild:
    """What is asked of a process; it cannot be ended, but ends soon."""

    def __init__(self, module: str, folder: Path):
        work = getattr(importlib.import_module(module), _WORK[module])
        self._thread = threading.Thread(target=_do, args=(work, folder), daemon=True)
        self._thread.start()

    def wait(self, timeout: float = PATIENCE) -> int:
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise subprocess.TimeoutExpired("a thread", timeout)
        return 0

    def terminate(self) -> None:
        pass

    kill = terminate


def _do(work: Any, folder: Path) -> None:
    with contextlib.suppress(OSError):  # the text may be deleted meanwhile
        work(folder)


def trainings_in(folder: Path) -> dict[int, str]:
    """The processes that train in the folder of a studio, and their command lines."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            is_in = os.readlink(process / "cwd") == str(folder)
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:  # it has ended meanwhile
            continue
        if is_in and " -m minigpt train " in command:
            found[int(process.name)] = command
    return found


def kill_trainings(folder: Path) -> None:
    """End what still trains in the folder of a studio that was killed: nobody waits for it."""
    for process in trainings_in(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


class Program:
    """The real program in a folder."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.port = "0"
        self.start()

    def start(self) -> None:
        """Start it; afterwards `address` is the one that it printed."""
        self.process = subprocess.Popen(
            [*_STARTED, "--port", self.port],
            cwd=self.folder,
            env=os.environ | {"MINIGPT_CACHE": str(self.folder / "cache")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("minigpt studio: "), line
        self.address = line.split()[-1]
        self.url = self.address.partition("#")[0].rstrip("/")
        self.port = self.url.rpartition(":")[2]

    def is_open(self) -> bool:
        """Whether it runs."""
        return self.process.poll() is None

    def kill(self) -> str:
        """End it at once; trainings go on. What it has printed besides its address."""
        self.process.kill()
        self.process.wait()
        printed = self.process.stdout
        if printed is None or printed.closed:  # it was killed before
            return ""
        with printed:
            return printed.read()


real_program = pytest.mark.parametrize("program", [Program], indirect=True, ids=["program"])
