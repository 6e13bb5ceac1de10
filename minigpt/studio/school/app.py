"""The server of a class: pupils reach it from other computers, and see what is theirs.

It is an app of its own at a port of its own: the teacher's studio stays on this machine alone.
"""

import contextlib
import socket
import time
from ipaddress import ip_address
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ..app import ERRORS, Studio, refuse, window_routes
from ..bodies import read_json
from ..errors import Refusal
from ..guard import KEY_HEADER, Guard
from ..runs import routes as run_routes
from ..runs.events import Streams
from ..runs.removal import everything_of_text
from ..runs.states import ACTIVE, WAITING, States, runs_in
from ..runs.trainings import stop
from ..texts import routes as text_routes
from ..texts.store import text_folders
from .classroom import ADMITTED, Classroom, Pupil

COOKIE = "minigpt-class"
_SECONDS_TO_END = 15.0  # for trainings that were told to end at once
_AT_THE_DOOR = ("/api/join", "/api/joined")
# What pupils may do with runs; all routes of texts are theirs.
_OF_RUNS = ("/api/state", "/api/events", "/api/runs", "/api/runs/{name}")
_WITH_A_RUN = ("stop", "stop-now", "go-on", "rename", "delete", "restore", "write", "page")


class ClassApp:
    """A class that goes on, as an ASGI app.

    Args:
        classroom: who is in it.
        studio: the teacher's, whose line, children and tickets are those of all.
        port: that it listens at.
    """

    def __init__(self, classroom: Classroom, studio: Studio, port: int):
        self._classroom = classroom
        self._studio = studio
        self._port = port
        self._streams = Streams()  # beside those of the teacher
        self._studios: dict[str, Studio] = {}  # by the folders of their pupils
        self._apps: dict[str, ASGIApp] = {}

        routes = [
            *window_routes("pupil.js", studio.tickets),
            Route("/api/join", self._join, methods=["POST"]),
            Route("/api/joined", self._joined),
            Mount("/", self._of_pupil),
        ]
        app = Starlette(routes=routes, exception_handlers=dict.fromkeys(ERRORS, refuse))

        self._guard = Guard(
            app,
            classroom.find,
            self._is_host,
            cookie=f"{COOKIE}-{port}",
            is_open=_AT_THE_DOOR,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a pupil."""
        await self._guard(scope, receive, send)

    # What the teacher sees and does

    @property
    def name(self) -> str:
        """The name of the class."""
        return self._classroom.name

    @property
    def address(self) -> str:
        """What pupils type into their browsers."""
        return f"http://{own_address()}:{self._port}/"

    def in_short(self) -> dict[str, Any]:
        """Its name, and how many wait at the door."""
        return {"name": self._classroom.name, "waiting": self._classroom.waiting}

    def told(self) -> dict[str, Any]:
        """The class as the teacher's window shows it."""
        return {
            "name": self._classroom.name,
            "code": self._classroom.code,
            "address": self.address,
            "folder": str(self._classroom.folder),
            "isLesson": self._studio.is_lesson,
            "hasEnded": self._classroom.has_ended,
            "pupils": [self._told_of(pupil) for pupil in self._classroom.pupils],
        }

    def _told_of(self, pupil: Pupil) -> dict[str, Any]:
        told: dict[str, Any] = {
            "name": pupil.name,
            "folder": pupil.folder,
            "state": pupil.state,
            "hasBeenHere": pupil.state != ADMITTED and self._classroom.has_been_here(pupil),
            "models": 0,
            "bytes": 0,
            "learning": None,
            "waits": None,
        }
        studio = self._studios.get(pupil.folder)
        if studio is None or pupil.state != ADMITTED:
            return told

        states = studio.states.all()
        learning = [state["name"] for state in states if state["state"] in ACTIVE]
        places = self._studio.line.places()
        waits = [place for run, place in places.items() if run.parent == studio.workspace.runs]
        told["models"] = sum(bool(state["has_page"]) for state in states)
        told["bytes"] = sum(_size(text) for text in text_folders(studio.workspace))
        told["learning"] = learning[0] if learning else None
        told["waits"] = min(waits, default=None)
        return told

    def admit(self, folder: str) -> None:
        """Let a pupil in."""
        self._classroom.admit(folder)
        if folder in self._studios:
            return
        pupil = next(one for one in self._classroom.pupils if one.folder == folder)
        studio = self._studio.of_pupil(self._classroom.workspace(pupil))
        studio.streams = self._streams
        self._studios[folder] = studio
        self._apps[folder] = _app_of(studio)

    def refuse(self, folder: str) -> None:
        """Send a pupil away; what learns or waits in line is stopped."""
        self._classroom.refuse(folder)
        studio = self._studios.pop(folder, None)
        self._apps.pop(folder, None)
        if studio is not None:
            self._leave(studio)

    def end(self, *, deletes: bool) -> None:
        """End the class. With `deletes`, nothing that it has made is left, not even tokens of its
        texts elsewhere on this computer."""
        self._classroom.end()
        for folder in list(self._studios):
            self._leave(self._studios.pop(folder))
            self._apps.pop(folder)
        if not deletes:
            return

        for workspace in self._classroom.workspaces():
            states = States(workspace.runs)
            for text in text_folders(workspace):
                everything_of_text(workspace, text.name).remove(states)
        self._studio.tickets.drop_all()
        self._classroom.delete()

    def _leave(self, studio: Studio) -> None:
        """End what somebody's studio does, and wait until the last process is gone."""
        studio.watch.is_over = True  # their windows ask anew, and are told
        self._studio.line.dismiss(studio.workspace)
        for run in runs_in(studio.workspace.runs):
            state = studio.states.of(run)["state"]
            if state == WAITING or state in ACTIVE:
                with contextlib.suppress(Refusal):  # it has ended just now
                    stop(studio.states, run, at_once=True)
        late = time.monotonic() + _SECONDS_TO_END
        while time.monotonic() < late:
            if not any(studio.states.is_busy(run) for run in runs_in(studio.workspace.runs)):
                return
            time.sleep(0.2)

    # What pupils do

    def _is_host(self, host: str) -> bool:
        """Whether a request addresses this machine: by a number, or by a name of its own. A name
        that some web page has given to it is none of these."""
        name, _, port = host.rpartition(":")
        if port != str(self._port):
            return False
        own = socket.gethostname().lower()
        try:
            ip_address(name.strip("[]"))
        except ValueError:
            return name in ("localhost", own, f"{own}.local")
        return True

    async def _join(self, request: Request) -> Response:
        """POST {"code", "name"}: wait at the door. The cookie, and the key in the body."""
        sent = await read_json(request)
        code, name = sent.get("code"), sent.get("name")
        if not isinstance(code, str) or not isinstance(name, str):
            raise Refusal(400, "Type the code and your name.")
        address = request.client.host if request.client else ""
        pupil = self._classroom.join(code, name, address)

        answer = JSONResponse({"key": pupil.login.key})
        cookie = f"{COOKIE}-{self._port}"
        answer.set_cookie(cookie, pupil.login.cookie, httponly=True, samesite="strict")
        return answer

    async def _joined(self, request: Request) -> Response:
        """GET: how somebody stands who has joined."""
        cookie = request.cookies.get(f"{COOKIE}-{self._port}", "")
        pupil = self._classroom.at_the_door(cookie, request.headers.get(KEY_HEADER, ""))
        if pupil is None:
            raise Refusal(401, "This window has not joined.")
        return JSONResponse({"state": pupil.state, "name": pupil.name})

    async def _of_pupil(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What is asked of a pupil's own studio."""
        pupil = scope.get("state", {}).get("login")
        app = self._apps.get(pupil.folder) if isinstance(pupil, Pupil) else None
        if app is None:
            raise Refusal(404, "Nothing is here.")
        await app(scope, receive, send)


def _app_of(studio: Studio) -> ASGIApp:
    """A pupil's own studio: the routes that are for pupils."""
    may = {*_OF_RUNS, *(f"/api/runs/{{name}}/{what}" for what in _WITH_A_RUN)}
    routes: list[BaseRoute] = [*text_routes.ROUTES]
    routes += [route for route in run_routes.ROUTES if route.path in may]
    app = Starlette(routes=routes, exception_handlers=dict.fromkeys(ERRORS, refuse))
    app.state.studio = studio
    return app


def own_address() -> str:
    """The number of this machine in its network; that of itself if there is none. Nothing is
    sent: the system only chooses a way."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("192.0.2.1", 9))
            address: str = asking.getsockname()[0]
        except OSError:
            return "127.0.0.1"
    return address


def _size(folder: Any) -> int:
    """Bytes of the files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
