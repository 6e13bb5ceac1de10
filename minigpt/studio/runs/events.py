"""The stream of events that a window keeps open: what all runs are doing, and the rows of one.

A window reads it by `fetch`, which can send the key of its login. The id of an event is the cursor
after it, with which a window goes on where its stream was cut.
"""

import asyncio
import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ...system.json_objects import to_json
from ..answers import Refusal
from .rows import Event, rows_after
from .states import is_too_little

State = dict[str, Any]

_LOOK = 0.5  # seconds from one look to the next
_COMMENT = 5.0  # seconds without an event
_PATIENCE = 15.0  # seconds in which a client reads what it was sent
_MOST_ROWS = 256  # that wait for a client, beyond the first answer
_MOST_OF_A_LOGIN = 4
_MOST = 64
_LITTLE = 500_000_000  # bytes that are free on the disk
# What a window can tell by its own clock, or gets as rows, and what changes with every step.
_UNTOLD = ("elapsed", "ends_at", "starts_in", "step", "changed")


class Watch:
    """Looks at the state of everything, for all streams together."""

    def __init__(self, look: Callable[[], State]):
        self._look = look
        self._lock = threading.Lock()
        self._seen: State = {}
        self._key = ""
        self._until = 0.0

    def state(self) -> tuple[State, str]:
        """The state, at most half a second old, and a key that changes with the state."""
        with self._lock:
            if time.monotonic() >= self._until:
                self._seen = self._look()
                self._key = json.dumps(_told(self._seen))
                self._until = time.monotonic() + _LOOK / 2
            return self._seen, self._key


class Streams:
    """The streams that are open: not too many of one login, nor in all."""

    def __init__(self) -> None:
        self._open: Counter[int] = Counter()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def one(self, login: object) -> Iterator[None]:
        """While a stream is open. A Refusal of status 429 if there are too many."""
        key = id(login)
        with self._lock:
            if self._open[key] >= _MOST_OF_A_LOGIN or self._open.total() >= _MOST:
                raise Refusal(429, "Too many windows are open. Close some.", kind="many_windows")
            self._open[key] += 1
        try:
            yield
        finally:
            with self._lock:
                self._open[key] -= 1
                self._open += Counter()  # without those that are zero


class EventStream(Response):
    """The answer to GET /api/events: goes on until the client leaves, does not keep up, or has
    nothing more to see here."""

    media_type = "text/event-stream"

    def __init__(self, watch: Watch, streams: Streams, run: Path | None, cursor: str):
        super().__init__()
        del self.headers["content-length"]
        self._watch = watch
        self._streams = streams
        self._run = run
        self._cursor = cursor
        self._key = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._streams.one(scope.get("state", {}).get("login")):
            start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
            await send(start)
            leaving = asyncio.create_task(has_left(receive))
            try:
                await self._send_until(leaving, send)
            finally:
                leaving.cancel()

    async def _send_until(self, leaving: "asyncio.Task[None]", send: Send) -> None:
        """Send what happens, until the client leaves."""
        spoke = time.monotonic()
        is_first = True
        while not leaving.done():
            events = await run_in_threadpool(self._look)
            rows = sum(event["event"] != "state" for event in events)
            if rows > _MOST_ROWS and not is_first:
                break
            is_first = False

            text = "".join(map(_frame, events))
            if not text and time.monotonic() - spoke >= _COMMENT:
                text = ": still here\n\n"
            if text:
                try:
                    async with asyncio.timeout(_PATIENCE):
                        await send_body(send, text.encode(), more_body=True)
                except TimeoutError:  # nothing more can be sent; the server cuts it off
                    return
                spoke = time.monotonic()
            await asyncio.wait({leaving}, timeout=_LOOK)
        if not leaving.done():
            await send_body(send, b"", more_body=False)

    def _look(self) -> list[Event]:
        """What has happened since the last look, each with the cursor after it."""
        events: list[Event] = []
        state, key = self._watch.state()
        if key != self._key:
            self._key = key
            events.append({"event": "state", "data": state, "id": self._cursor})
        if self._run is not None:
            rows, self._cursor = rows_after(self._run, self._cursor)
            events += rows
            if rows:  # the cursor stands after all of them, so only the last row has it
                rows[-1]["id"] = self._cursor
        return events


def _told(state: State) -> State:
    """The state without what changes all the time."""
    runs = [
        {name: value for name, value in run.items() if name not in _UNTOLD}
        for run in state.get("runs", [])
    ]
    line = [{"name": one["name"], "place": one["place"]} for one in state.get("line", [])]
    is_nearly_full = is_too_little(state.get("free"), _LITTLE)
    return {**state, "runs": runs, "line": line, "free": is_nearly_full}


def _frame(event: Event) -> str:
    data = to_json(event["data"])
    mark = f"id: {event['id']}\n" if event.get("id") else ""
    return f"event: {event['event']}\n{mark}data: {data}\n\n"


async def send_body(send: Send, body: bytes, *, more_body: bool) -> None:
    """Send a part of an answer."""
    await send({"type": "http.response.body", "body": body, "more_body": more_body})


async def has_left(receive: Receive) -> None:
    """Wait until the client leaves."""
    while (await receive())["type"] != "http.disconnect":
        pass
