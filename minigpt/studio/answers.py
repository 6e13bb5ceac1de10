"""What a request says, and what it is answered: JSON, or a refusal. Files are read where they are
stored, in texts/upload.py."""

import errno
import json
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from .. import UserError
from ..system.json_objects import to_json, without_halves
from ..system.platforms import is_windows

_MOST_BYTES = 1 << 20  # of a JSON object that a window sends


class Refusal(Exception):
    """What the studio answers where it cannot do what it was asked for.

    Attributes:
        status: 400 for what was asked wrongly, 404 for what is not there, 409 for the wrong state,
            413 for too much, 507 for a full disk.
        message: what was wrong and what to do, in a sentence.
        field: the name of the field that was wrong, if it was one.
        kind: the name under which the window has its own words for this sentence, if it has any.
        values: what is filled into those words.
    """

    def __init__(
        self,
        status: int,
        message: str,
        field: str | None = None,
        *,
        kind: str | None = None,
        **values: str,
    ):
        super().__init__(message)
        self.status = status
        self.message = message
        self.field = field
        self.kind = kind
        self.values = values


class JSONAnswer(JSONResponse):
    """An answer in JSON. It may hold any name that a file can have."""

    def render(self, content: Any) -> bytes:
        """The body."""
        return to_json(content).encode()


async def read_json(request: Request) -> dict[str, Any]:
    """The object in the body of a request, empty if there is no body. Refusal if the body is no
    JSON object. Half a surrogate pair in it becomes U+FFFD."""
    sent = bytearray()
    async for part in request.stream():
        sent += part
        if len(sent) > _MOST_BYTES:
            raise Refusal(413, "That is too much at once.")
    if not sent:
        return {}

    try:
        found = json.loads(sent)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Refusal(400, "The body must be a JSON object.")
    whole: dict[str, Any] = without_halves(found)
    return whole


# Errors


REFUSALS = (Refusal, UserError, HTTPException, ClientDisconnect, OSError)


async def refuse(request: Request, error: Exception) -> Response:
    """The answer to a request that ended with an error: what went wrong, as {"message", "field",
    "kind", "values"}. What is none of REFUSALS is a mistake of the studio, and printed."""
    if not isinstance(error, REFUSALS) and not isinstance(error.__cause__, REFUSALS):
        print_mistake(error)

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
    """The answer to an error of the system. Windows moves and removes no file that is open: that of
    a training which has just ended is, for a moment."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return 507, "Nothing new can be saved. Free some space."
    if is_windows() and isinstance(error, PermissionError):
        name = Path(error.filename).name if error.filename else "A file"
        return 409, f"{name} is still open in another program. Try again in a moment."
    return 500, f"{error.filename or 'A file'}: {error.strerror}."


_printed = set[tuple[type[BaseException], str, int | None]]()
_printing = threading.Lock()


def print_mistake(error: BaseException) -> None:
    """Print where an error comes from, once: a window asks for the same again and again. Nothing is
    kept of its message, which can hold what somebody sent."""
    frames = traceback.extract_tb(error.__traceback__)
    place = (frames[-1].filename, frames[-1].lineno) if frames else ("", None)
    with _printing:
        key = (type(error), *place)
        if key in _printed:
            return
        _printed.add(key)
    print("".join(traceback.format_exception(error)), end="", file=sys.stderr, flush=True)
