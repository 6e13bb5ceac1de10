"""A client that sends a body slowly is waited for as long as something comes, and no longer."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="make installs what these tests need")

from minigpt.serve.app import make_api_server
from minigpt.studio.context import Studio
from minigpt.studio.opening import make_studio_server
from minigpt.studio.routes import make_app
from minigpt.studio.workspace import Workspace

from ..patience import PATIENCE
from .conftest import Local

LOOKS = 4  # of the server at its clients
BODY = b"{" + b" " * LOOKS + b"}"


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not is_so():
            await asyncio.sleep(0.001)


async def answer_to(server: Any, listening: socket.socket, begins: bytes, rest: bytes) -> bytes:
    """The answer to a request of which all begins at once but the rest, which comes a byte at a
    time. After each of the first bytes the server looks for slow clients."""
    clients = server.server_state.connections
    serving = asyncio.create_task(server.serve([listening]))
    reader, writer = await asyncio.open_connection("127.0.0.1", listening.getsockname()[1])
    writer.write(begins)
    await until(lambda: bool(clients))
    for i in range(max(len(rest), LOOKS)):
        writer.write(rest[i : i + 1])
        sent = len(begins + rest[: i + 1])
        if i < LOOKS:
            await until(lambda sent=sent: all(client.received == sent for client in clients))
            await server.config.callback_notify()

    try:
        answer = await reader.read()
    except ConnectionResetError:
        answer = b""
    writer.close()
    server.should_exit = True
    await serving
    return answer


def head_of(request: str, port: int) -> bytes:
    """The head of a request with a body of the bytes in `BODY`."""
    lines = [request, f"Host: localhost:{port}", "Connection: close"]
    lines += ["Content-Type: application/json", f"Content-Length: {len(BODY)}", "", ""]
    return "\r\n".join(lines).encode()


@pytest.mark.parametrize("sends", [True, False])
def test_a_slow_request_is_waited_for_while_something_comes(tiny_run: Path, sends: bool) -> None:
    local = Local(tiny_run)
    server = make_api_server(local.writing, local.app)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        head = head_of("POST /v1/completions HTTP/1.1", listening.getsockname()[1])
        answer = asyncio.run(answer_to(server, listening, head, BODY if sends else b""))
    assert answer.startswith(b"HTTP/1.1 200") if sends else answer == b""


@pytest.mark.parametrize("sends", [True, False])
def test_a_slow_upload_is_waited_for_while_something_comes(tmp_path: Path, sends: bool) -> None:
    studio = Studio(Workspace(tmp_path), close=lambda: None)
    with studio.running(), socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        server = make_studio_server(make_app(studio, port))
        head = head_of("POST /api/enter HTTP/1.1", port)
        answer = asyncio.run(answer_to(server, listening, head, BODY if sends else b""))
    assert answer.startswith(b"HTTP/1.1 401") if sends else answer == b""


def test_a_head_that_comes_slowly_is_not_waited_for(tiny_run: Path) -> None:
    local = Local(tiny_run)
    server = make_api_server(local.writing, local.app)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        head = head_of("GET /health HTTP/1.1", listening.getsockname()[1])
        assert asyncio.run(answer_to(server, listening, b"", head)) == b""
