"""The server: `make_api_app` is it as an ASGI app, `serve` runs that under uvicorn. Each request is
checked (`Api.check`) and read (`requests.py`); the texts that it asks for wait in the queue of
`batch.py`, and `sending.py` sends what is written of them, as `answers.py` words it.
"""

import asyncio
import contextlib
import hmac
import itertools
import json
import logging
import os
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn import Server

from .. import UserError
from ..data.dialogue import MANNER, Dialogue
from ..data.readers.content import marked_encoding
from ..data.readers.encoding import FALLBACK
from ..page.build import build_page
from ..runs.find import glass_writer
from ..runs.read_model import FoundModel
from .answers import Answer
from .batch import GRACE, Job, WritingThread
from .requests import ApiError, Order, read_bias, read_order, read_prompts
from .sending import TextsResponse
from .settings import ServeConfig, as_browsers_send, host_name
from .sockets import allow_open_files, listen, make_server

HEALTH = "/health"
BODY = 1 << 20  # bytes of a request; its head may have 16 KB, h11 sees to that
CLIENTS_OF_A_TEXT = 4  # connections at most, for each text that may wait
_OTHER_FILES = 1000  # that are open at most beside the connections

_SHORT = 1 << 12  # bytes of a request whose prompts are tokens in a millisecond
_READERS = 2  # requests whose prompts become tokens at the same time
_SPEAKERS = 100  # most frequent ones, by whose names a model can be asked for
_BAD = (UserError, RecursionError, ClientDisconnect)  # the client's own


def serve(found: FoundModel, name: str, config: ServeConfig) -> None:
    """Serve a model until a signal ends it; a UserError if that cannot begin."""
    key = read_key(config)
    allow_open_files(_most_clients(config) + _OTHER_FILES)
    sockets = listen(config.host, config.port)
    # The loop that sends waits for Python's lock at most so long, in seconds, while texts are
    # written: 100 streams would feel the usual 0.005.
    sys.setswitchinterval(0.0005)

    writer = glass_writer(found)
    config = with_answerer(config, writer.dialogue)
    writing = WritingThread(writer, config)
    server = make_api_server(writing, make_api_app(writing, found, name, key=key))
    writing.start()

    for opened in sockets:
        host, port = opened.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        logging.info("serving %s at http://%s:%d", name, shown, port)
    if writer.dialogue is not None and not config.chat_template:
        roles = writer.dialogue.roles(config.answerer)
        who = f"chats are answered as {roles['assistant']}, and the user is {roles['user']}"
        logging.info("%s: %s", who, MANNER)
    server.run(sockets)


def read_key(config: ServeConfig) -> str:
    """The key that clients have to send; empty if they need none. A UserError if other machines
    could reach the server without a key."""
    key = os.environ.get("MINIGPT_API_KEY", "")
    if config.api_key_file:
        key = _text_of(Path(config.api_key_file))
    if not key and (config.api_key_file or not config.is_local):
        raise UserError(
            "clients on other machines need a key: set MINIGPT_API_KEY or --api-key-file"
        )
    return key


def _text_of(file: Path) -> str:
    """What a file holds, in whatever encoding an editor or a shell of Windows has written it."""
    data = file.read_bytes()
    encoding = marked_encoding(data)
    if encoding == "utf-8-sig" and b"\0" in data:  # UTF-16 without a mark
        encoding = "utf-16-le"
    try:
        return data.decode(encoding).strip()
    except UnicodeError:
        return data.decode(FALLBACK, errors="replace").strip()


def with_answerer(config: ServeConfig, dialogue: Dialogue | None) -> ServeConfig:
    """The settings with the full name of who answers; UserError if there is no such speaker."""
    if config.answerer is None:
        return config
    if dialogue is None:
        raise UserError("--as is for a model that learned from conversations; this one did not")
    return replace(config, answerer=dialogue.find(config.answerer))


def make_api_server(writing: WritingThread, app: ASGIApp) -> Server:
    """The app under uvicorn. When that is told to end, the texts that it writes end too."""
    most = _most_clients(writing.config)

    async def limited(scope: Scope, receive: Receive, send: Send) -> None:
        """The app for so many clients at most. More can only learn that the server is well."""
        if len(clients) <= most or scope["path"] == HEALTH:
            await app(scope, receive, send)
            return
        response = await refuse(Request(scope), ApiError(503, "Too many clients; try again."))
        response.headers["connection"] = "close"
        await response(scope, receive, send)

    server = make_server(limited, log_config=None, timeout_graceful_shutdown=GRACE + 2)
    clients = server.server_state.connections
    writing.is_leaving = lambda: server.should_exit
    return server


def _most_clients(config: ServeConfig) -> int:
    """How many connections there may be."""
    return CLIENTS_OF_A_TEXT * config.max_waiting


def make_api_app(writing: WritingThread, found: FoundModel, name: str, *, key: str = "") -> ASGIApp:
    """The API on a model; `key` is what clients have to send, if it is not empty."""
    api = Api(writing, found, name, key=key)
    got = {
        "/": api.page,
        HEALTH: api.health,
        "/v1/models": api.models,
        "/v1/models/{name:path}": api.models,
    }
    posted = {
        "/v1/completions": api.completions,
        "/v1/chat/completions": api.completions,
    }
    routes = [Route(path, partial(api.check, act)) for path, act in got.items()]
    for path, act in posted.items():
        routes.append(Route(path, partial(api.check, act), methods=["POST"]))

    handlers: Any = dict.fromkeys((HTTPException, ApiError, *_BAD, Exception), refuse)
    return CORSMiddleware(
        Starlette(routes=routes, exception_handlers=handlers),
        allow_origins=[as_browsers_send(origin) for origin in writing.config.cors_origin],
        allow_methods=("*",),
        allow_headers=("*",),
    )


class Api:
    """What the server does at each of its addresses."""

    def __init__(self, writing: WritingThread, found: FoundModel, name: str, *, key: str):
        self._writing = writing
        self._config = writing.config
        self._found = found
        self._name = name
        self._key = key.encode(errors="surrogateescape")  # as the environment has it
        self._hosts = writing.config.hosts
        self._page = ""
        self._begun = int(time.time())
        # Of a hundred requests that come at once few are read in a turn of the event loop.
        self._readers = asyncio.Semaphore(_READERS)

        # The names by which the model is asked for, and who answers then: its own and, of one that
        # learned from conversations, ``name:speaker`` of the most frequent speakers.
        self._names: dict[str, str | None] = {name: writing.config.answerer}
        dialogue = writing.writer.dialogue
        if dialogue is not None:
            for speaker in itertools.islice(dialogue.speakers, _SPEAKERS):
                self._names[f"{name}:{speaker}"] = speaker

    async def check(self, act: Any, request: Request) -> Response:
        """Do something for a request, unless it is refused: by its host or key here, as another
        site's by its kind of body (`_read_body`)."""
        # A web page may have given this machine another name (DNS rebinding).
        host = host_name(request.headers.get("host", ""))
        if self._config.is_local and host not in self._hosts:
            raise ApiError(400, "Invalid host header; see --allowed-host.")

        if self._key and act != self.health:
            scheme, _, given = request.headers.get("authorization", "").partition(" ")
            is_known = hmac.compare_digest(given.encode("latin-1"), self._key)
            if not is_known or scheme.lower() != "bearer":
                raise ApiError(401, "Incorrect API key provided.", None, "invalid_api_key")
        return await act(request)

    async def page(self, request: Request) -> Response:
        """The page. Its own strict policy cannot say who may frame it: a header does."""
        if not self._page:
            self._page = await run_in_threadpool(build_page, self._found, self._name)
        headers = {"content-security-policy": "frame-ancestors 'none'"}
        return HTMLResponse(self._page, 200, headers)

    async def health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def models(self, request: Request) -> Response:
        name = request.path_params.get("name")
        self._check_model(name)
        if name:
            return JSONResponse(self._about_model(name))
        models = [self._about_model(name) for name in self._names]
        return JSONResponse({"object": "list", "data": models})

    def _about_model(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": self._begun, "owned_by": "minigpt"}

    def _check_model(self, name: Any) -> None:
        is_known = name is None or (isinstance(name, str) and name in self._names)
        if not is_known:
            raise ApiError(404, "No such model; see /v1/models.", "model", "model_not_found")

    async def completions(self, request: Request) -> Response:
        """Texts, as the body asks for; a chat is a text too."""
        writer = self._writing.writer
        is_chat = request.url.path.startswith("/v1/chat")
        sent = await _read_body(request)
        deadline = time.monotonic() + self._config.max_seconds

        async with self._readers:
            await asyncio.sleep(0)  # a turn of the event loop for whatever else there is
            body = _parse(sent)
            asked = body.get("model")
            self._check_model(asked)

            # The queue is asked before any prompt is read, which takes longer.
            order, sent_prompts = read_order(
                body, is_chat=is_chat, writer=writer, config=self._config
            )
            self._writing.check_room(order.n * len(sent_prompts))

            read = partial(
                read_prompts,
                sent_prompts,
                is_chat=is_chat,
                writer=writer,
                config=self._config,
                answerer=self._names[self._name if asked is None else asked],
            )
            if len(sent) < _SHORT:  # quicker than to hand it to a thread
                prompts = read()
            else:
                prompts = await run_in_threadpool(read)

            job = Job(order, prompts, read_bias(body, writer), deadline)
            self._writing.submit(job)

        answer = Answer(order, body, prompts, is_chat=is_chat, model=self._name, writer=writer)
        return TextsResponse(job, answer)


async def _read_body(request: Request) -> bytes:
    """The body of a request. Another site's page could send one unasked if it were a form or plain
    text; for JSON the browser asks first, and is told no (`CORSMiddleware`, see --cors-origin)."""
    kind = request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != "application/json":
        raise ApiError(415, "The body must be sent as application/json.")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > BODY:
            raise ApiError(413, f"The body has more than {BODY} bytes.")
    return bytes(body)


def _parse(sent: bytes) -> dict[str, Any]:
    found = None
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(sent)
    if not isinstance(found, dict):
        raise ApiError(400, "The body must be a JSON object.")
    return found


async def refuse(request: Request, error: Exception) -> Response:
    """What went wrong, in the shape of OpenAI's errors."""
    if isinstance(error, HTTPException):
        error = ApiError(error.status_code, f"{error.detail}.")
    elif isinstance(error, _BAD):
        message = f"{error}"[:300] or "The client left."
        first_word = message.partition(" ")[0]  # of a config's error, the name of the field
        param = first_word if hasattr(Order, first_word) else None
        error = ApiError(400, message, param)
    elif not isinstance(error, ApiError):
        error = ApiError(500, "Something went wrong.")

    headers = {"Retry-After": "1"} if error.status in (429, 503) else {}
    return JSONResponse(error.content(), error.status, headers)
