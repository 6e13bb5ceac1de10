"""The routes of runs: what there is, how they are trained, removed and used."""

import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...runs.state import facts_of
from ...system.json_objects import to_json, without_halves
from ..answers import JSONAnswer, Refusal, read_json
from ..context import Studio, studio_of
from ..texts.about import for_run
from ..texts.folder import chosen_settings
from ..writing import WrittenText, checked_command
from . import asking, removal
from .rows import rows_after
from .shown import WAITING, free_space, told_of

_LITTLE = 300_000_000  # bytes: less is too little for the files of a run


def _name(request: Request) -> str:
    return str(request.path_params["name"])


def _run(request: Request) -> Path:
    return studio_of(request).workspace.run_folder(_name(request))


# What there is


async def show_all(request: Request) -> Response:
    """GET ?seen=KEY: all runs, texts, and the line; nothing if that is what the key is of."""
    return await _unless_seen(request, studio_of(request).state)


async def show(request: Request) -> Response:
    """GET ?after=N&seen=KEY: a run, and the rows of its files after N, see `rows_after`; nothing if
    that is what the key is of. A run that is not there is "gone"."""
    studio = studio_of(request)
    name = str(request.path_params["name"])
    after = request.query_params.get("after", "")

    def look() -> dict[str, Any]:
        try:
            run = studio.workspace.run_folder(name)
        except Refusal:
            gone = told_of(studio.workspace.runs / ".nothing")
            return {"run": {**gone, "name": name}, "rows": {}, "anew": [], "after": ""}
        rows = rows_after(run, after)
        told = told_of(run)
        if told["state"] == WAITING:
            told = next((one for one in studio.runs() if one["name"] == run.name), told)
        return {"run": told, **rows}

    return await _unless_seen(request, look)


async def _unless_seen(request: Request, look: Callable[[], dict[str, Any]]) -> Response:
    """What there is, with a key of it; nothing if the window has sent this key."""

    def answer() -> Response:
        told = look()
        key = hashlib.blake2b(to_json(told).encode(), digest_size=8).hexdigest()
        if request.query_params.get("seen") == key:
            return Response(status_code=204)
        return JSONAnswer({**told, "key": key})

    return await run_in_threadpool(answer)


# Trainings


async def ask(request: Request) -> Response:
    """POST {"text", "name", "minutes", "settings"}: put a training into the line; its name and
    place there. Without "settings" it has those that were chosen for the text."""
    studio = studio_of(request)
    sent = await read_json(request)
    text = sent.get("text")
    if not isinstance(text, str):
        raise Refusal(400, "Say which text.", "text")
    folder = studio.workspace.text_folder(text)

    def put() -> dict[str, Any]:
        about = for_run(folder)
        free = free_space(studio.workspace.root)
        if free is not None and free < _LITTLE:
            raise Refusal(507, "The disk is full. Free some space.")
        given = sent.get("settings")
        chosen = studio.checked_settings(chosen_settings(folder) if given is None else given)
        with studio.line.paused():
            run = asking.ask(
                studio.workspace,
                text=about,
                name=_text(sent.get("name") or about["name"], "name"),
                minutes=sent.get("minutes", 5.0),
                settings=chosen,
            )
            found = next(one for one in studio.runs() if one["name"] == run.name)
        return {name: found[name] for name in ("name", "place", "starts_in")}

    return JSONAnswer(await run_in_threadpool(put), 201)


async def stop(request: Request) -> Response:
    """POST: end a training, which saves what it has learned; or leave the line."""
    return await _change(request, lambda studio, run: asking.stop(run))


async def stop_now(request: Request) -> Response:
    """POST: end a training at once. It goes back to what it saved last."""
    return await _change(request, lambda studio, run: asking.stop(run, at_once=True))


async def go_on(request: Request) -> Response:
    """POST {"minutes"}: put a training into the line again, for so many minutes more; without them
    to its planned end."""
    minutes = (await read_json(request)).get("minutes")

    def change(studio: Studio, run: Path) -> None:
        asking.go_on(run, minutes)

    return await _change(request, change)


# Names, the bin, deleting


async def rename(request: Request) -> Response:
    """POST {"name"}: give a run another name, or one like it that is free."""
    sent = await read_json(request)
    name = _text(sent.get("name"), "name")
    await run_in_threadpool(removal.wait_for_processes, [_run(request)])
    return await _change(
        request, lambda studio, run: removal.rename_run(studio.workspace, run, name)
    )


async def delete(request: Request) -> Response:
    """POST: move a run into the bin."""
    await run_in_threadpool(removal.wait_for_processes, [_run(request)])
    return await _change(request, lambda studio, run: removal.put_into_bin(studio.workspace, run))


async def restore(request: Request) -> Response:
    """POST: move a run out of the bin; its name may be another then."""
    studio = studio_of(request)

    def put_back() -> dict[str, Any]:
        with studio.line.paused():
            return told_of(removal.put_back(studio.workspace, _name(request)))

    return JSONAnswer(await run_in_threadpool(put_back))


async def empty_bin(request: Request) -> Response:
    """POST: remove all runs in the bin for good; why some could not be removed, in "problems"."""
    studio = studio_of(request)

    def empty() -> list[str]:
        with studio.line.paused():
            return removal.empty_bin(studio.workspace)

    return JSONAnswer({"problems": await run_in_threadpool(empty)})


async def delete_all(request: Request) -> Response:
    """POST {"named"}: what came from the text that a run has learned from, each part with its size.
    If "named" are the kind and name of each of them, and no others, all of it is removed."""
    studio = studio_of(request)
    run = _run(request)
    named = (await read_json(request)).get("named")

    def act() -> dict[str, Any]:
        if named is not None:
            removal.wait_for_processes(removal.everything_of_run(studio.workspace, run).runs)
        with studio.line.paused():
            everything = removal.everything_of_run(studio.workspace, run)
            parts = everything.parts(studio.workspace)
            listed = [[part["kind"], without_halves(part["name"])] for part in parts]
            is_as_named = named == listed
            if is_as_named:
                if everything.text is not None:
                    studio.text_work.stop(everything.text)
                everything.remove()
                studio.tickets.drop_all()
        return {"parts": parts, "removed": is_as_named}

    return JSONAnswer(await run_in_threadpool(act))


# What a run is for


async def write(request: Request) -> Response:
    """POST {"prompt", "settings"}: what a run writes, as it writes it."""
    studio = studio_of(request)
    run = _run(request)
    sent = await read_json(request)
    await run_in_threadpool(_check_has_learned, run)
    command = checked_command(run.relative_to(studio.workspace.root).as_posix(), sent)
    return WrittenText(studio.workspace, command, studio.turns)


async def page(request: Request) -> Response:
    """POST {"show"}: the address of a run's page, to be shown in a frame or, without, saved."""
    sent = await read_json(request)
    downloads = studio_of(request).downloads
    return await _made(request, lambda run: downloads.page(run, is_shown=sent.get("show") is True))


async def export(request: Request) -> Response:
    """POST {"kind"}: the address of an archive for other programs, "hf" or "gguf"."""
    sent = await read_json(request)
    downloads = studio_of(request).downloads
    return await _made(request, lambda run: downloads.export(run, sent.get("kind")))


async def download(request: Request) -> Response:
    """POST: the address of an archive with the run."""
    return await _made(request, studio_of(request).downloads.copy)


async def copied(request: Request) -> Response:
    """POST: how much of what a run writes is in its text word for word."""
    studio = studio_of(request)
    run = _run(request)
    await run_in_threadpool(_check_has_learned, run)
    return JSONAnswer(await studio.downloads.copied(run))


async def _made(request: Request, make: Callable[[Path], Awaitable[str]]) -> Response:
    run = _run(request)
    await run_in_threadpool(_check_has_learned, run)
    return JSONAnswer({"address": await make(run)})


def _check_has_learned(run: Path) -> None:
    """Refuse what needs weights, before there are any that an evaluation has chosen."""
    if not facts_of(run).has_learned:
        message = f"{run.name} has saved nothing yet. Wait a little."
        raise Refusal(409, message, kind="nothing_saved", name=run.name)


# Helpers of all


async def _change(request: Request, change: Callable[[Studio, Path], Path | None]) -> Response:
    """Change a run while nothing is started; the run afterwards, "gone" where nothing is left."""
    studio = studio_of(request)
    run = _run(request)

    def act() -> dict[str, Any]:
        with studio.line.paused():
            try:
                return told_of(change(studio, run) or run)
            except FileNotFoundError:  # somebody has moved it meanwhile
                studio.workspace.run_folder(run.name)
                raise

    return JSONAnswer(await run_in_threadpool(act))


def _text(value: Any, field: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Refusal(400, f"{field} must be a text.", field)
    return value


_Act = Callable[[Request], Awaitable[Response]]
_ONE = "/api/runs/{name}"
_POSTED: dict[str, _Act] = {
    "/api/runs": ask,
    f"{_ONE}/stop": stop,
    f"{_ONE}/stop-now": stop_now,
    f"{_ONE}/go-on": go_on,
    f"{_ONE}/rename": rename,
    f"{_ONE}/delete": delete,
    f"{_ONE}/restore": restore,
    f"{_ONE}/write": write,
    f"{_ONE}/page": page,
    f"{_ONE}/export": export,
    f"{_ONE}/download": download,
    f"{_ONE}/copied": copied,
    f"{_ONE}/delete-all": delete_all,
    "/api/empty-bin": empty_bin,
}
_READ: dict[str, _Act] = {"/api/state": show_all, _ONE: show}
ROUTES = [
    *(Route(path, act, methods=["GET"]) for path, act in _READ.items()),
    *(Route(path, act, methods=["POST"]) for path, act in _POSTED.items()),
]
