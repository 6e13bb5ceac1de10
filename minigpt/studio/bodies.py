"""What a window sends: a small JSON object. Files are read where they are stored, in texts.py."""

import json
from typing import Any

from starlette.requests import Request

from .errors import Refusal

_MOST_BYTES = 1 << 20


async def read_json(request: Request) -> dict[str, Any]:
    """The object in the body of a request, empty if there is no body. Refusal if it is none."""
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
    return found
