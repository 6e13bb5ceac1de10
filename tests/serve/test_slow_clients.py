"""A client that sends a body slowly is waited for as long as something comes, and no longer."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="make test-serve installs what these tests need")

from minigpt.serve.app import make_server
from minigpt.studio.app import Studio, make_app
from minigpt.studio.opening import make_studio_server
from minigpt.studio.workspace import Workspace

from .conftest import Local

LOOKS = 4  # of the server at its clients


async def ask_slowly(server: Any, listening: socket.socket, head: str, *, sends: bool) -> bytes:
    """The answer to a request whose body comes a byte at a time, the server looking for slow
    clients after each; or whose body does not come at all."""
    serving = asyncio.create_task(server.serve([listening]))
    port = listening.getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = b"{" + b" " * LOOKS + b"}"
    usual = f"Host: localhost:{port}\r\nConnection: close\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}\r\n{usual}Content-Length: {len(body)}\r\n\r\n".encode())

    for i in range(len(body)):
        if sends:
            writer.write(body[i : i + 1])
        await asyncio.sleep(0.02)  # in which it arrives
        if i < LOOKS:
            await server.config.callback_notify()
    try:
        answer = await reader.read()
    except ConnectionResetError:
        answer = b""
    writer.close()
    server.should_exit = True
    await serving
    return answer


@pytest.mark.parametrize("sends", [True, False])
def test_a_slow_request_is_waited_for_while_something_comes(tiny_run: Path, sends: bool) -> None:
    local = Local(tiny_run)
    server = make_server(local.app, local.config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        head = "POST /v1/completions HTTP/1.1"
        answer = asyncio.run(ask_slowly(server, listening, head, sends=sends))
    assert answer.startswith(b"HTTP/1.1 200") if sends else answer == b""


@pytest.mark.parametrize("sends", [True, False])
def test_a_slow_upload_is_waited_for_while_something_comes(tmp_path: Path, sends: bool) -> None:
    studio = Studio(Workspace(tmp_path), close=lambda: None)
    with studio.running(), socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        server = make_studio_server(make_app(studio, port))
        head = "POST /api/enter HTTP/1.1"
        answer = asyncio.run(ask_slowly(server, listening, head, sends=sends))
    assert answer.startswith(b"HTTP/1.1 401") if sends else answer == b""


async def send_a_slow_head(server: Any, listening: socket.socket) -> bytes:
    """The answer to a request whose head comes a byte at a time, the server looking for slow
    clients after each."""
    serving = asyncio.create_task(server.serve([listening]))
    port = listening.getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"GET /health HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n".encode()
    for i in range(LOOKS):
        writer.write(head[i : i + 1])
        await asyncio.sleep(0.02)  # in which it arrives
        await server.config.callback_notify()
    try:
        writer.write(head[LOOKS:])
        answer = await reader.read()
    except ConnectionResetError:
        answer = b""
    writer.close()
    server.should_exit = True
    await serving
    return answer


def test_a_head_that_comes_slowly_is_not_waited_for(tiny_run: Path) -> None:
    local = Local(tiny_run)
    server = make_server(local.app, local.config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        assert asyncio.run(send_a_slow_head(server, listening)) == b""
