"""The routes of texts: files that arrive, what was read in them, what to expect of a training."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ... import UserError
from ...system.json_objects import read_object
from .. import settings
from ..answers import JSONAnswer, Refusal, read_json
from ..context import Studio, studio_of
from ..runs.states import ACTIVE, WAITING
from . import states as text_states
from . import store
from .folder import PLANS, READING, SETTINGS, write_json


def _folder(request: Request) -> Path:
    return studio_of(request).workspace.text_folder(request.path_params["text"])


async def create(request: Request) -> Response:
    """POST {"names", "sizes"}: announce the files of a new text. {"tales": true}: the tales that
    come with minigpt, which are there at once. The id."""
    studio = studio_of(request)
    sent = await read_json(request)
    names, sizes = sent.get("names"), sent.get("sizes")
    are_tales = sent.get("tales") is True

    def make() -> str:
        workspace = studio.workspace
        text = store.create_tales(workspace) if are_tales else store.create(workspace, names, sizes)
        folder = workspace.text_folder(text)
        write_json(studio.checked_settings({}), folder / SETTINGS)
        if are_tales:
            studio.text_work.keep_going(folder)
        return text

    return JSONAnswer({"id": await run_in_threadpool(make)}, 201)


async def show(request: Request) -> Response:
    """GET: all of a text. What was left undone for it goes on."""
    studio = studio_of(request)
    folder = _folder(request)
    await run_in_threadpool(studio.text_work.keep_going, folder)
    return JSONAnswer(await run_in_threadpool(text_states.whole_text, folder))


async def add(request: Request) -> Response:
    """POST {"names", "sizes"}: announce more files; the number of the first."""
    folder = _folder(request)
    sent = await read_json(request)

    def announce() -> int:
        studio_of(request).text_work.stop(folder)
        return store.add(folder, sent.get("names"), sent.get("sizes"))

    return JSONAnswer({"first": await run_in_threadpool(announce)}, 201)


async def receive(request: Request) -> Response:
    """POST the bytes of a file that was announced; the name under which it is kept."""
    kept = await store.receive(_folder(request), _number(request), request.stream())
    return JSONAnswer({"kept": kept}, 201)


async def remove_file(request: Request) -> Response:
    """POST: remove a file. The others are read again."""
    folder = _folder(request)

    def remove() -> None:
        work = studio_of(request).text_work
        work.stop(folder)
        store.remove_file(folder, _number(request))
        work.keep_going(folder)

    await run_in_threadpool(remove)
    return Response(status_code=204)


async def read(request: Request) -> Response:
    """POST: all files have arrived: read them, and plan. What was refused is read again."""
    folder = _folder(request)

    def begin() -> None:
        store.complete(folder)
        _forget_problem(folder / READING)
        studio_of(request).text_work.keep_going(folder)

    await run_in_threadpool(begin)
    return Response(status_code=202)


async def plan(request: Request) -> Response:
    """POST {"settings": {...}}: read and plan with these settings, which replace those chosen
    before; without them, plan again."""
    folder = _folder(request)
    sent = await read_json(request)
    chosen = sent.get("settings")
    if chosen is not None:
        chosen = _checked(studio_of(request), chosen)

    def begin() -> None:
        work = studio_of(request).text_work
        work.stop(folder)
        if chosen is not None:
            write_json(chosen, folder / SETTINGS)
        _forget_problem(folder / PLANS)
        work.keep_going(folder)

    await run_in_threadpool(begin)
    return Response(status_code=202)


async def delete(request: Request) -> Response:
    """POST: delete a text, unless it is being trained on."""
    folder = _folder(request)

    def remove() -> None:
        if (run := training_on(folder.name, studio_of(request))) is not None:
            message = f"{run} is learning from this text. Stop that first."
            raise Refusal(409, message, kind="text_learned", name=str(run))
        studio_of(request).text_work.stop(folder)
        store.delete(folder)

    await run_in_threadpool(remove)
    return Response(status_code=204)


def training_on(text: str, studio: Studio) -> str | None:
    """The name of a run that learns from a text, or waits to; None if there is none."""
    for run in studio.states.all():
        learns_from = (run["text"] or {}).get("id")
        if learns_from == text and run["state"] in (WAITING, *ACTIVE):
            return str(run["name"])
    return None


def _number(request: Request) -> int:
    number: int = request.path_params["number"]
    return number


def _forget_problem(path: Path) -> None:
    """Let a reading or plans that ended with a problem be made again."""
    if read_object(path).get("problem"):
        path.unlink(missing_ok=True)


def _checked(studio: Studio, sent: Any) -> dict[str, Any]:
    """The settings that were sent; Refusal if one is wrong."""
    try:
        return studio.checked_settings(sent)
    except UserError as error:
        message = settings.for_window(str(error))
        raise Refusal(400, message, settings.named_in(message)) from None


_Act = Callable[[Request], Awaitable[Response]]
_ONE = "/api/texts/{text}"
_POSTED: dict[str, _Act] = {
    "/api/texts": create,
    f"{_ONE}/files": add,
    f"{_ONE}/files/{{number:int}}": receive,
    f"{_ONE}/files/{{number:int}}/remove": remove_file,
    f"{_ONE}/read": read,
    f"{_ONE}/plan": plan,
    f"{_ONE}/delete": delete,
}
ROUTES = [
    Route(_ONE, show, methods=["GET"]),
    *(Route(path, act, methods=["POST"]) for path, act in _POSTED.items()),
]
