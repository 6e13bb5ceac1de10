"""The connections that are open: so many that the files which this process may open are never used
up, however many somebody opens and leaves."""

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any

from ..serve import slow_clients
from ..system.platforms import is_windows

_WANTED = 4096  # open files that the system should allow, if it does
_OWN = 400  # of them for other things than connections: files, the pipes of children


def allow_open_files() -> None:
    """Let a thousand connections not use up the files that this process may open."""
    if is_windows():
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED if hard == resource.RLIM_INFINITY else min(_WANTED, hard)
    if soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_connections() -> int:
    """How many may be open at once."""
    if is_windows():  # it has no such limit
        return _WANTED
    import resource

    return max(resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _OWN, 16)


class Connection(slow_clients.CountedConnection):
    """A connection with a client. One that comes when there are too many takes the place of the
    oldest that asks for nothing."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin with a client."""
        super().connection_made(transport)
        self.since = self.loop.time()
        if len(self.connections) > most_connections():
            _drop_the_oldest(self.connections)


def _drop_the_oldest(clients: Iterable[Any]) -> None:
    """Drop the oldest connection of those on which no request is being answered."""
    idle = [one for one in clients if one.cycle is None or one.cycle.response_complete]
    min(idle, key=lambda one: one.since).transport.abort()  # at least the newest is idle
