"""The server: `make_api_app` is it as an ASGI app, `serve` runs that under uvicorn. Each request is
checked (`Api.check`), read (`protocol.py`) and answered (`answers.py`); `scheduler.py` writes the
texts."""

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
from starlette.types import ASGIApp
from uvicorn import Config, Server

from .. import UserError
from ..data.dialogue import MANNER, Dialogue
from ..data.readers.content import marked_encoding
from ..data.readers.encoding import FALLBACK
from ..page.build import build_page
from ..runs.find import load
from ..runs.found import FoundModel
from .answers import Answer
from .jobs import ApiError, Job
from .listening import listen
from .protocol import read_bias, read_order, read_prompts
from .scheduler import Scheduler
from .settings import (
    BODY,
    CLIENTS_OF_A_TEXT,
    GRACE,
    PATIENCE,
    READERS,
    SHORT,
    SPEAKERS,
    Order,
    ServeConfig,
    as_browsers_send,
    host_name,
)
from .slow_clients import CountedConnection, drop_the_slow

_BAD = (UserError, RecursionError, ClientDisconnect)  # the client's own


def serve(found: FoundModel, name: str, config: ServeConfig) -> None:
    """Serve a model until a signal ends it; a UserError if that cannot begin."""
    key = read_key(config)
    sockets = listen(config.host, config.port)
    # The loop that sends waits for Python's lock at most so long, in seconds, while texts are
    # written: 100 streams would feel the usual 0.005.
    sys.setswitchinterval(0.0005)

    writer = load(found.folder, device="cpu")
    config = with_answerer(config, writer.dialogue)
    scheduler = Scheduler(writer, config)
    app = make_api_app(scheduler, found, name, key=key)
    server = make_server(app, config)
    scheduler.is_leaving = lambda: server.should_exit
    scheduler.start()

    for opened in sockets:
        host, port = opened.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        logging.info("serving %s at http://%s:%d", name, shown, port)
    if writer.dialogue is not None and not config.chat_template:
        roles = writer.dialogue.roles(config.answerer)
        who = f"chats are answered as {roles['assistant']}, and the user is {roles['user']}"
        logging.info("%s: %s", who, MANNER)
    server.run(sockets)


def with_answerer(config: ServeConfig, dialogue: Dialogue | None) -> ServeConfig:
    """The settings with the full name of who answers; UserError if there is no such speaker."""
    if config.answerer is None:
        return config
    if dialogue is None:
        raise UserError("--as is for a model that learned from conversations; this one did not")
    return replace(config, answerer=dialogue.find(config.answerer))


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


def make_server(app: ASGIApp, config: ServeConfig) -> Server:
    """The app under uvicorn."""
    options = Config(
        app,
        http=CountedConnection,
        ws="none",
        lifespan="off",
        log_config=None,
        limit_concurrency=CLIENTS_OF_A_TEXT * config.max_waiting,
        timeout_graceful_shutdown=GRACE + 2,
        timeout_notify=PATIENCE,  # type: ignore[arg-type]
    )
    server = Server(options)
    clients = server.server_state.connections
    seen = set[Any]()
    options.callback_notify = lambda: drop_the_slow(clients, seen)
    return server


def make_api_app(scheduler: Scheduler, found: FoundModel, name: str, *, key: str = "") -> ASGIApp:
    """The API on a model; `key` is what clients have to send, if it is not empty."""
    api = Api(scheduler, found, name, key=key)
    got = {
        "/": api.page,
        "/health": api.health,
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

    handlers: Any = dict.fromkeys((HTTPException, ApiError, *_BAD, Exception), api.refuse)
    return CORSMiddleware(
        Starlette(routes=routes, exception_handlers=handlers),
        allow_origins=[as_browsers_send(origin) for origin in scheduler.config.cors_origin],
        allow_methods=("*",),
        allow_headers=("*",),
    )


class Api:
    """What the server does at each of its addresses."""

    def __init__(self, scheduler: Scheduler, found: FoundModel, name: str, *, key: str):
        self._scheduler = scheduler
        self._found = found
        self._name = name
        self._key = key.encode(errors="surrogateescape")  # as the environment has it
        self._hosts = scheduler.config.hosts
        self._page = ""
        self._names = _model_names(name, scheduler.writer.dialogue, scheduler.config.answerer)
        self._begun = int(time.time())
        # Of a hundred requests that come at once few are read in a turn of the event loop.
        self._readers = asyncio.Semaphore(READERS)

    async def check(self, act: Any, request: Request) -> Response:
        """Do something for a request, unless it is refused."""
        self._check_host(request)
        if self._key and act != self.health:
            self._check_key(request)
        return await act(request)

    def _check_host(self, request: Request) -> None:
        """Refuse a name that a web page has given to this machine (DNS rebinding)."""
        name = host_name(request.headers.get("host", ""))
        if self._scheduler.config.is_local and name not in self._hosts:
            raise ApiError(400, "Invalid host header; see --allowed-host.")

    def _check_key(self, request: Request) -> None:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        is_known = hmac.compare_digest(given.encode("latin-1"), self._key)
        if not is_known or scheme.lower() != "bearer":
            raise ApiError(401, "Incorrect API key provided.", None, "invalid_api_key")

    async def refuse(self, request: Request, error: Exception) -> Response:
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
        config = self._scheduler.config
        writer = self._scheduler.writer
        is_chat = request.url.path.startswith("/v1/chat")
        sent = await _read_body(request)
        arrived = time.monotonic()

        async with self._readers:
            await asyncio.sleep(0)  # a turn of the event loop for whatever else there is
            body = _parse(sent)
            asked = body.get("model")
            self._check_model(asked)
            answerer = self._names[self._name if asked is None else asked]

            # The queue is asked before any prompt is read, which takes longer.
            order, sent_prompts = read_order(
                body,
                is_chat=is_chat,
                context_length=writer.engine.context_length,
                config=config,
                dialogue=writer.dialogue,
            )
            self._scheduler.check_room(order.n * len(sent_prompts))

            read = partial(
                read_prompts,
                sent_prompts,
                is_chat=is_chat,
                writer=writer,
                config=config,
                answerer=answerer,
            )
            if len(sent) < SHORT:  # quicker than to hand it to a thread
                prompts = read()
            else:
                prompts = await run_in_threadpool(read)

            job = Job(order, prompts, read_bias(body, writer), arrived=arrived)
            self._scheduler.submit(job)

        return Answer(job, body, is_chat=is_chat, model=self._name, writer=writer)


def _model_names(name: str, dialogue: Dialogue | None, usual: str | None) -> dict[str, str | None]:
    """The names by which a model is asked for: its own and, of one that learned from conversations,
    ``name:speaker`` of the most frequent speakers; and who answers then."""
    names: dict[str, str | None] = {name: usual}
    if dialogue is not None:
        for speaker in itertools.islice(dialogue.speakers, SPEAKERS):
            names[f"{name}:{speaker}"] = speaker
    return names


async def _read_body(request: Request) -> bytes:
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
