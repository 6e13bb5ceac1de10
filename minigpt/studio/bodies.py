"""What a window sends: a small JSON object; and what it gets. Files are read where they are stored,
in texts/store.py."""

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse

from ..system.json_objects import to_json, without_halves
from .errors import Refusal

_MOST_BYTES = 1 << 20


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
