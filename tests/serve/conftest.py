"""Servers: in a process of its own, in a thread of this one, and without a network."""

import asyncio
import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from minigpt.generation.writer import Writer
from minigpt.runs.find import find_model, load
from minigpt.serve.settings import ServeConfig

from ..patience import PATIENCE

Result = TypeVar("Result")
COMMAND = "import sys; from minigpt.cli import main; sys.exit(main(['serve', *sys.argv[1:]]))"


class Server:
    """A server that has said that it is well."""

    def __init__(self, run: Path, *options: str, first: str = ""):
        """`first` is what its process does before it serves."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url, self.model = f"http://127.0.0.1:{self.port}", run.name
        command = [
            sys.executable,
            "-c",
            first + COMMAND,
            str(run),
            "--port",
            str(self.port),
            *options,
        ]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/health"):
                return
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.05)
        raise AssertionError("the server does not start")

    def end(self) -> str:
        """Its log, after a signal has ended it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.communicate(timeout=PATIENCE)[1]


class Served:
    """A model served at a port of its own, in a thread of this process."""

    def __init__(self, run: Path, key: str = "", **settings: Any):
        from minigpt.serve.app import make_api_app, make_api_server
        from minigpt.serve.batch import WritingThread

        found, self.model = find_model(run), run.name
        writing = WritingThread(load(run, device="cpu"), ServeConfig(**settings))
        self._server = make_api_server(writing, make_api_app(writing, found, self.model, key=key))
        writing.start()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.run, args=([self.listening],))
        self._thread.start()

    @property
    def connections(self) -> set[Any]:
        return self._server.server_state.connections

    def let_all_be_slow(self) -> None:
        """Drop nobody any more, as slow as this machine may make them."""
        self._server.config.callback_notify = None

    def end(self) -> None:
        self._server.should_exit = True
        self._thread.join(PATIENCE)
        self.listening.close()
        assert not self._thread.is_alive()


@contextlib.contextmanager
def served(run: Path, **settings: Any) -> Iterator[Served]:
    running = Served(run, **settings)
    try:
        yield running
    finally:
        running.end()


@pytest.fixture(scope="module")
def server(tiny_run: Path) -> Iterator[Served]:
    with served(tiny_run) as running:
        yield running


class Local:
    """The app itself, called as a server would call it, with few places and short limits."""

    def __init__(self, run: Path, key: str = "", writer: Writer | None = None, **settings: Any):
        from minigpt.serve.app import make_api_app
        from minigpt.serve.batch import WritingThread

        found = find_model(run)
        config = ServeConfig(**{"max_batch": 3, "max_tokens": 40, **settings})
        self.writer = writer or Writer(found.glass, found.tokenizer)
        self.writing = WritingThread(self.writer, config)
        self.writing.start()
        self.app = make_api_app(self.writing, found, "tiny", key=key)
        self._loop = asyncio.Runner()

    def complete(self, **body: Any) -> dict[str, Any]:
        """The answer to a request for completions, which must be one."""
        status, _, answer = self.ask("/v1/completions", body)
        assert status == 200, answer
        found: dict[str, Any] = json.loads(answer)
        return found

    def ask(self, path: str, body: Any = None, **options: Any) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of an answer; the client may leave before it comes."""
        return self.run(self.send(path, body, **options))

    def run(self, asking: Coroutine[Any, Any, Result]) -> Result:
        """In the event loop of this server."""
        return self._loop.run(asking)

    async def send(
        self,
        path: str,
        body: Any,
        method: str = "POST",
        headers: Any = None,
        leaves: bool = False,
    ) -> tuple[int, dict[str, str], bytes]:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        usual = {"host": "localhost", "content-type": "application/json", **(headers or {})}
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(),
            "query_string": b"", "client": ("127.0.0.1", 1), "http_version": "1.1",
            "headers": [(k.encode(), v.encode("latin-1")) for k, v in usual.items()],
        }  # fmt: skip
        incoming = [{"type": "http.request", "body": sent, "more_body": False}]
        outgoing: list[Any] = []

        async def receive() -> Any:
            if not incoming and not leaves:
                await asyncio.Event().wait()
            return incoming.pop() if incoming else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            outgoing.append(message)

        await asyncio.wait_for(self.app(scope, receive, send), PATIENCE)
        if not outgoing:
            return 0, {}, b""
        answer = {k.decode(): v.decode() for k, v in outgoing[0]["headers"]}
        return outgoing[0]["status"], answer, b"".join(m.get("body", b"") for m in outgoing[1:])


@pytest.fixture(scope="module")
def local(tiny_run: Path) -> Local:
    return Local(tiny_run)
