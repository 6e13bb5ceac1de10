"""The studio as an ASGI app: the routes of its parts, the files of its window, the guard around
them."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from .. import UserError
from .bodies import JSONAnswer, read_json
from .children import Children
from .errors import Refusal
from .failures import tell
from .guard import Guard, Logins, cookie_name
from .runs import routes as run_routes
from .runs.events import Streams, Watch
from .runs.line import Line
from .runs.making import Making
from .runs.states import States
from .texts import routes as text_routes
from .texts import store
from .texts.chosen import checked_settings
from .texts.work import TextWork
from .tickets import Tickets
from .workspace import Workspace

WINDOW = Path(__file__).parent / "window"
_PAGE = Path(__file__).parent.parent / "page"  # its colours and its helpers are the window's, too
_REFUSALS = (Refusal, UserError, HTTPException, ClientDisconnect, OSError)
_ERRORS = (*_REFUSALS, Exception)
_ADDRESSES = ("/", "/text/{id}", "/run/{name}")


class Studio:
    """What the routes share: a request finds it as ``request.app.state.studio``.

    Attributes:
        workspace: where everything lies.
        states: what all runs are doing.
        line: the trainings that wait.
        watch: looks at the state of everything, for all windows together.
        streams: the streams of events that are open.
        children: the programs that end with the studio.
        text_work: what is read and planned in the background.
        tickets: files for the browser to fetch.
        turns: limit how many children compute at once while somebody waits.
        making: makes the files that tickets are for.
        logins: who may come in.
        close: ends the studio; trainings go on.
        is_lesson: whether trainings are begun in lesson mode.
    """

    def __init__(self, workspace: Workspace, close: Callable[[], None], *, is_lesson: bool = False):
        self.workspace = workspace
        self.states = States(workspace.runs)
        self.line = Line(workspace, self.states)
        self.watch = Watch(lambda: run_routes.state_of(self))
        self.streams = Streams()
        self.children = Children()
        self.text_work = TextWork(self.children, workspace.root)
        self.tickets = Tickets()
        self.turns = asyncio.Semaphore(max(2, os.cpu_count() or 1))
        self.making = Making(workspace, self.tickets, self.turns)
        self.logins = Logins()
        self.close = close
        self.is_lesson = is_lesson

    def checked_settings(self, sent: Any) -> dict[str, Any]:
        """Settings of a training, from JSON; in a lesson those of a lesson. A UserError if one is
        wrong."""
        if self.is_lesson and isinstance(sent, dict):
            sent = {**sent, "lesson": True}
        return checked_settings(sent)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """While the studio is open; afterwards nothing of it is left but what it has stored."""
        store.restore(self.workspace)
        self.line.open()
        try:
            yield
        finally:
            self.line.close()
            self.text_work.close()
            self.children.end_all()
            self.tickets.close()


def make_app(studio: Studio, port: int) -> ASGIApp:
    """The studio at a port of this machine."""
    routes = [
        *_window_routes(studio.tickets),
        Route("/api/enter", _enter, methods=["POST"]),
        Route("/api/token", _token, methods=["POST"]),
        Route("/api/close", _close, methods=["POST"]),
        *text_routes.ROUTES,
        *run_routes.ROUTES,
    ]
    app = Starlette(routes=routes, exception_handlers=dict.fromkeys(_ERRORS, _refuse))
    app.state.studio = studio
    app.state.port = port
    return Guard(app, studio.logins, port)


def _window_routes(tickets: Tickets) -> list[BaseRoute]:
    """The window at its addresses: the same page at each, without any data, for which its scripts
    ask."""

    async def window(request: Request) -> Response:
        return FileResponse(WINDOW / "index.html")

    async def helpers(request: Request) -> Response:
        return FileResponse(_PAGE / "basics" / "dom.js")

    return [
        *(Route(address, window) for address in _ADDRESSES),
        Mount("/static/page", StaticFiles(directory=_PAGE / "style")),
        Route("/static/basics/dom.js", helpers),
        Mount("/static", StaticFiles(directory=WINDOW)),
        Route("/t/{ticket}", tickets.fetch),
    ]


async def _refuse(request: Request, error: Exception) -> Response:
    """What went wrong, as {"message", "field", "kind", "values"}. A mistake of the studio is
    printed."""
    if not isinstance(error, _REFUSALS) and not isinstance(error.__cause__, _REFUSALS):
        tell(error)

    status = 500
    message = "Something went wrong in the studio."
    field = kind = None
    values: dict[str, str] = {}
    if isinstance(error, Refusal):
        status, message, field = error.status, error.message, error.field
        kind, values = error.kind, error.values
    elif isinstance(error, HTTPException):
        status, message = error.status_code, f"{error.detail}."
    elif isinstance(error, UserError | ClientDisconnect):
        status, message = 400, str(error) or "The window left."
    elif isinstance(error, OSError) and error.strerror:
        status, message = _of_system(error)
    told = {"message": message, "field": field, "kind": kind, "values": values}
    return JSONAnswer(told, status)


def _of_system(error: OSError) -> tuple[int, str]:
    import errno

    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return 507, "Nothing new can be saved. Free some space."
    return 500, f"{error.filename or 'A file'}: {error.strerror}."


async def _enter(request: Request) -> Response:
    """A login for a token: the cookie, and the key in the body."""
    studio: Studio = request.app.state.studio
    sent = await read_json(request)
    token = sent.get("token")
    login = studio.logins.enter(token) if isinstance(token, str) else None
    if login is None:
        raise Refusal(401, "This address has been used before. Open the one that was printed.")

    answer = JSONAnswer({"key": login.key})
    name = cookie_name(request.app.state.port)
    answer.set_cookie(name, login.cookie, httponly=True, samesite="strict")
    return answer


async def _token(request: Request) -> Response:
    """A token that opens one more window."""
    studio: Studio = request.app.state.studio
    return JSONAnswer({"token": studio.logins.token_for_once()})


async def _close(request: Request) -> Response:
    """End the studio."""
    studio: Studio = request.app.state.studio
    studio.close()
    return Response(status_code=204)
