"""The routes of texts: files that come and go, what was read in them, what to expect of
trainings."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ... import UserError
from ...runs.state import ACTIVE
from ...system.json_objects import read_object
from .. import settings
from ..answers import JSONAnswer, Refusal, read_json
from ..context import Studio, studio_of
from ..trainings.shown import WAITING
from . import upload
from .about import whole_text
from .folder import PLANS_FILE, READING_FILE, SETTINGS_FILE, write_json


def _folder(request: Request) -> Path:
    return studio_of(request).workspace.text_folder(request.path_params["text"])


async def create(request: Request) -> Response:
    """POST: a new text, whose files are to come. {"tales": true}: one of the tales that come with
    minigpt. The id."""
    studio = studio_of(request)
    sent = await read_json(request)
    are_tales = sent.get("tales") is True

    def make() -> str:
        settings = studio.checked_settings({})
        return upload.create(studio.workspace, settings, are_tales=are_tales).name

    return JSONAnswer({"id": await run_in_threadpool(make)}, 201)


async def show(request: Request) -> Response:
    """GET: all of a text. What was left undone for it goes on."""
    studio = studio_of(request)
    folder = _folder(request)
    await run_in_threadpool(studio.text_work.keep_going, folder)
    return JSONAnswer(await run_in_threadpool(whole_text, folder))


async def receive(request: Request) -> Response:
    """POST ?name= the bytes of a file; the name under which it is kept."""
    folder = _folder(request)
    name = request.query_params.get("name")
    if name is None:
        raise Refusal(400, "Say what the file is called.", "name")
    length = request.headers.get("content-length", "")
    expected = int(length) if length.isdecimal() else 0

    kept = await upload.receive(folder, name, request.stream(), expected)
    await run_in_threadpool(studio_of(request).text_work.stop, folder)  # it has read too few files
    return JSONAnswer({"kept": kept}, 201)


async def remove(request: Request) -> Response:
    """POST {"kept"}: remove a file, by the name under which it is kept, unless the text is being
    trained on. The others are read again."""
    studio = studio_of(request)
    folder = _folder(request)
    kept = str((await read_json(request)).get("kept"))

    def remove_file() -> None:
        _check_is_free(folder, studio)
        studio.text_work.stop(folder)
        upload.remove_file(folder, kept)
        studio.text_work.keep_going(folder)

    await run_in_threadpool(remove_file)
    return Response(status_code=204)


async def read(request: Request) -> Response:
    """POST: all files have come: read them, and plan. What was refused is read again."""
    folder = _folder(request)

    def begin() -> None:
        _forget_problem(folder / READING_FILE)
        studio_of(request).text_work.keep_going(folder)

    await run_in_threadpool(begin)
    return Response(status_code=202)


async def choose_settings(request: Request) -> Response:
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
            write_json(chosen, folder / SETTINGS_FILE)
        _forget_problem(folder / PLANS_FILE)
        work.keep_going(folder)

    await run_in_threadpool(begin)
    return Response(status_code=202)


async def delete(request: Request) -> Response:
    """POST: delete a text, unless it is being trained on."""
    studio = studio_of(request)
    folder = _folder(request)

    def remove() -> None:
        _check_is_free(folder, studio)
        studio.text_work.stop(folder)
        upload.delete(folder)

    await run_in_threadpool(remove)
    return Response(status_code=204)


def _check_is_free(folder: Path, studio: Studio) -> None:
    """Refuse a text from which a run learns, or waits to."""
    for run in studio.runs():
        learns_from = (run["text"] or {}).get("id")
        if learns_from == folder.name and run["state"] in (WAITING, *ACTIVE):
            message = f"{run['name']} is learning from this text. Stop that first."
            raise Refusal(409, message, kind="text_learned", name=str(run["name"]))


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
    f"{_ONE}/files": receive,
    f"{_ONE}/remove": remove,
    f"{_ONE}/read": read,
    f"{_ONE}/plan": choose_settings,
    f"{_ONE}/delete": delete,
}
ROUTES = [
    Route(_ONE, show, methods=["GET"]),
    *(Route(path, act, methods=["POST"]) for path, act in _POSTED.items()),
]
