"""The connections of a server: the sockets that it listens at, opened before a model is loaded, how
many the system allows, and the clients that it drops because they keep a connection without using
it. The studio's too.
"""

import contextlib
import errno
import os
import socket
from typing import Any

import h11
from starlette.types import ASGIApp
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from .. import UserError
from ..system.platforms import is_windows

PATIENCE = 15.0  # seconds for a client to send its request, or to read on

_ABSENT = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)  # such as IPv6 where there is none


# Where it listens


def listen(host: str, port: int) -> list[socket.socket]:
    """A listening socket for each address of a host: localhost may have two. Port 0 stands for any
    free port. A UserError says why it cannot listen."""
    try:
        return _listen(host.strip("[]"), port)
    except (OSError, UnicodeError) as error:  # a name that is none is a UnicodeError
        reason = getattr(error, "strerror", None) or "not the name of a host"
        raise UserError(f"cannot listen at {host}, port {port}: {reason}") from None


def _listen(host: str, port: int) -> list[socket.socket]:
    kind = socket.SOCK_STREAM
    found = socket.getaddrinfo(host or None, port, type=kind, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    absent: OSError | None = None

    for family, _, _, _, address in dict.fromkeys(found):
        chosen = sockets[0].getsockname()[1] if sockets else port
        try:
            sockets.append(_bind(family, (address[0], chosen, *address[2:])))
        except OSError as error:
            if error.errno not in _ABSENT:
                for opened in sockets:
                    opened.close()
                raise
            absent = error

    if absent and not sockets:
        raise absent
    return sockets


def _bind(family: int, address: tuple[object, ...]) -> socket.socket:
    # asyncio sends the last packet of an answer at once only where the protocol is named. Without
    # that, it waits up to 40 ms until the client has acknowledged the first.
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # no wait for connections of a server that has ended
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        opened.bind(address)
        opened.listen()
    except OSError:
        opened.close()
        raise
    return opened


def allow_open_files(number: int) -> None:
    """Let so many files be open, connections among them, if the system lets this process decide:
    some begin with 256, and when all are used up nothing can be opened."""
    if is_windows():  # it has no such limit
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = number if hard == resource.RLIM_INFINITY else min(number, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


# Whom it drops


class CountedConnection(H11Protocol):
    """A connection with a client, which counts what comes.

    Attributes:
        received: bytes so far.
    """

    received = 0

    def data_received(self, data: bytes) -> None:
        """Take what has come."""
        self.received += len(data)
        super().data_received(data)


def make_server(app: ASGIApp, **options: Any) -> Server:
    """An app under uvicorn, with options of uvicorn's. Slow clients are dropped."""
    config = Config(app, http=CountedConnection, ws="none", lifespan="off", **options)
    config.timeout_notify = PATIENCE  # type: ignore[assignment]  # uvicorn takes fractions too
    server = Server(config)

    clients = server.server_state.connections
    seen = set[Any]()
    config.callback_notify = lambda: _drop_the_slow(clients, seen)
    return server


async def _drop_the_slow(clients: set[Any], seen: set[Any]) -> None:
    """Drop those that since the last look have sent no whole head of a request, nothing of its
    body, or have read nothing. One whose body the server is not ready to take is not slow."""
    now = {_state(client) for client in clients}
    for client, _, sends, _, unread in now & seen:
        is_sending = sends is h11.SEND_BODY and not client.flow.read_paused
        if unread or sends is h11.IDLE or is_sending:
            client.transport.abort()

    seen.clear()
    seen.update(now)


def _state(client: Any) -> tuple[Any, ...]:
    """A client with what changes when it sends or reads: its request, how much of that is here, how
    many bytes of its body have come, and how many bytes it has not read."""
    sends = client.conn.their_state
    sent = client.received if sends is h11.SEND_BODY else 0  # a head has to come whole
    unread = client.transport.get_write_buffer_size()
    return client, client.cycle, sends, sent, unread
