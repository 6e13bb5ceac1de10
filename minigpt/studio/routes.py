"""What the studio answers at which address: its window, logins, and the routes of texts and
trainings, with the guard around all of them."""

from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from .answers import REFUSALS, JSONAnswer, Refusal, read_json, refuse
from .context import Studio, studio_of
from .guard import Guard, cookie_name
from .texts import routes as text_routes
from .tickets import Tickets
from .trainings import routes as training_routes

WINDOW = Path(__file__).parent / "window"
WEB = WINDOW.parents[1] / "web"  # what the window and the page of a model share
_ERRORS = (*REFUSALS, Exception)
_ADDRESSES = ("/", "/text/{id}", "/run/{name}")


def make_app(studio: Studio, port: int) -> ASGIApp:
    """The studio at a port of this machine."""
    routes = [
        *_window_routes(studio.tickets),
        Route("/api/enter", _enter, methods=["POST"]),
        Route("/api/token", _token, methods=["POST"]),
        Route("/api/close", _close, methods=["POST"]),
        *text_routes.ROUTES,
        *training_routes.ROUTES,
    ]
    app = Starlette(routes=routes, exception_handlers=dict.fromkeys(_ERRORS, refuse))
    app.state.studio = studio
    app.state.port = port
    return Guard(app, studio.logins, port)


def _window_routes(tickets: Tickets) -> list[BaseRoute]:
    """The window at its addresses: the same page at each, without any data, for which its scripts
    ask."""

    async def window(request: Request) -> Response:
        return FileResponse(WINDOW / "index.html")

    return [
        *(Route(address, window) for address in _ADDRESSES),
        # As they lie in the package, so that a script imports from the same place in both.
        Mount("/static/web", StaticFiles(directory=WEB)),
        Mount("/static/studio/window", StaticFiles(directory=WINDOW)),
        Route("/t/{ticket}", tickets.fetch),
    ]


async def _enter(request: Request) -> Response:
    """A login for a token: the cookie, and the key in the body."""
    studio = studio_of(request)
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
    studio = studio_of(request)
    return JSONAnswer({"token": studio.logins.token_for_once()})


async def _close(request: Request) -> Response:
    """End the studio."""
    studio = studio_of(request)
    studio.close()
    return Response(status_code=204)
