"""Opening the studio: one for each folder, at a port of this machine, in the browser."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
import urllib.request
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from filelock import FileLock, Timeout
from starlette.types import ASGIApp
from uvicorn import Server

from .. import UserError
from ..serve.sockets import allow_open_files, listen, make_server
from ..system.atomic import replace
from .context import Studio
from .guard import KEY_HEADER
from .routes import make_app
from .workspace import Workspace

USUAL_PORT = 8765
_SECONDS_TO_CLOSE = 2
# A thousand connections that ask for nothing, which are dropped half a minute later, leave room for
# the files and pipes of the studio.
_OPEN_FILES = 4096


def open_studio(
    workspace: Workspace,
    *,
    port: int | None,
    opens_browser: bool,
    is_lesson: bool = False,
) -> None:
    """Open the studio of a folder until a signal, or its window, closes it. If it is open already,
    open another window of it. With `is_lesson` all trainings are begun in lesson mode.

    A UserError if it cannot listen at `port`; None is the usual one, or any if that is taken. Also
    if it is open already, but at another port, or not in lesson mode.
    """
    workspace.runs.mkdir(exist_ok=True)
    lock = FileLock(workspace.lock)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        _open_other_window(workspace, port, opens_browser, is_lesson)
        return

    with lock, _listening(port) as sockets:
        port = sockets[0].getsockname()[1]
        allow_open_files(_OPEN_FILES)

        def close(*_: object) -> None:
            server.should_exit = True

        studio = Studio(workspace, close, is_lesson=is_lesson)
        server = make_studio_server(make_app(studio, port))
        address = f"http://localhost:{port}/"
        # uvicorn has handlers of its own while it runs, and sends the signal again at its end.
        for ending in (signal.SIGINT, signal.SIGTERM):
            signal.signal(ending, close)

        token = studio.logins.token
        with contextlib.suppress(OSError):  # the disk is full: only a second command needs the door
            workspace.door.unlink(missing_ok=True)  # that of a studio that was killed
            _write_door(workspace, {"address": address, "token": token, "is_lesson": is_lesson})

        print(f"minigpt studio: {address}#{token}", flush=True)
        print(
            "Nothing leaves this computer. Ctrl-C closes the studio; learning goes on.", flush=True
        )
        if opens_browser:
            window = f"{address}#{studio.logins.token_for_once()}"
            threading.Thread(target=_show, args=(window,), daemon=True).start()
        try:
            with studio.running():
                asyncio.run(server.serve(sockets))
        finally:
            workspace.door.unlink(missing_ok=True)


@contextlib.contextmanager
def _listening(port: int | None) -> Iterator[list[Any]]:
    sockets = []
    try:
        sockets = listen("localhost", USUAL_PORT if port is None else port)
    except UserError:
        if port is not None:
            raise
        sockets = listen("localhost", 0)
    try:
        yield sockets
    finally:
        for opened in sockets:
            opened.close()


def make_studio_server(app: ASGIApp) -> Server:
    """The app under uvicorn, which writes no log: it would hold names of runs, which are in
    addresses and in the traceback of a request that is cut off when the studio is closed."""
    return make_server(
        app,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_SECONDS_TO_CLOSE,
    )


def _write_door(workspace: Workspace, door: dict[str, Any]) -> None:
    """Tell a second command of the same account where the studio is."""

    def write(path: Path) -> None:
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)  # for this account
        with open(opened, "w", encoding="utf-8") as file:
            json.dump(door, file)

    replace(workspace.door, write)


def _open_other_window(
    workspace: Workspace, port: int | None, opens_browser: bool, is_lesson: bool
) -> None:
    """Open one more window of the studio that has the lock, if it is one as is asked for."""
    try:
        door = json.loads(workspace.door.read_text(encoding="utf-8"))
        address = door["address"]
        token = door["token"]
        open_port = urlsplit(address).port
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise UserError(
            f"another studio is opening or closing in {workspace.root}; try again in a moment"
        ) from None

    if port and port != open_port:
        raise UserError(f"the studio is open already, at port {open_port}; close it first")
    if is_lesson and not door.get("is_lesson"):
        raise UserError("the studio is open already, without --lesson; close it first")

    mode = ", with --lesson" if door.get("is_lesson") else ""
    print(f"The studio is open already{mode}: {address}#{token}", flush=True)
    if opens_browser:
        _show(f"{address}#{_token_of(address, token)}")


def _token_of(address: str, token: str) -> str:
    """A token that works once, from the studio at an address."""
    body = json.dumps({"token": token}).encode()
    entered, cookie = _post(f"{address}api/enter", body, {})
    login = {"cookie": cookie.partition(";")[0], KEY_HEADER: entered["key"]}
    answer, _ = _post(f"{address}api/token", b"{}", login)
    return answer["token"]


def _post(address: str, body: bytes, headers: dict[str, str]) -> tuple[dict[str, Any], str]:
    headers = {"content-type": "application/json", **headers}
    request = urllib.request.Request(address, body, headers)
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(request, timeout=5) as answer:
            return json.load(answer), answer.headers.get("set-cookie", "")
    except (OSError, ValueError) as error:
        raise UserError(f"the studio that is open does not answer: {error}") from None


def _show(address: str) -> None:
    """Show an address in a browser if there is a screen: a browser for terminals would take over
    this one."""
    is_desktop = os.name == "nt" or sys.platform == "darwin"
    has_screen = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    if is_desktop or has_screen or os.environ.get("BROWSER"):
        webbrowser.open(address)
