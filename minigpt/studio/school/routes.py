"""What the teacher does with a class: routes of the teacher's own studio."""

from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ..bodies import read_json
from ..errors import Refusal

if TYPE_CHECKING:
    from .app import ClassApp


def _class_of(request: Request) -> "ClassApp":
    found: ClassApp | None = request.app.state.studio.class_app
    if found is None:
        raise Refusal(404, "This studio has no class. Start one with --class NAME.")
    return found


async def show(request: Request) -> Response:
    """GET: the name, the code, the address for pupils, and the pupils with what they do."""
    return JSONResponse(await run_in_threadpool(_class_of(request).told))


async def admit(request: Request) -> Response:
    """POST {"pupil"}: let somebody in."""
    _class_of(request).admit(await _pupil(request))
    return Response(status_code=204)


async def refuse(request: Request) -> Response:
    """POST {"pupil"}: send somebody away. The pupil's training ends; what was made stays."""
    await run_in_threadpool(_class_of(request).refuse, await _pupil(request))
    return Response(status_code=204)


async def end(request: Request) -> Response:
    """POST {"deletes"}: end the class; with true, delete all that it has made."""
    deletes = (await read_json(request)).get("deletes") is True
    await run_in_threadpool(_class_of(request).end, deletes=deletes)
    return Response(status_code=204)


async def _pupil(request: Request) -> str:
    pupil = (await read_json(request)).get("pupil")
    if not isinstance(pupil, str):
        raise Refusal(400, "Which pupil?", "pupil")
    return pupil


ROUTES = [
    Route("/api/class", show, methods=["GET"]),
    Route("/api/class/admit", admit, methods=["POST"]),
    Route("/api/class/refuse", refuse, methods=["POST"]),
    Route("/api/class/end", end, methods=["POST"]),
]
