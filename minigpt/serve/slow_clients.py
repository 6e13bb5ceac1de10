"""Clients that keep a connection without using it."""

from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


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


async def drop_the_slow(clients: set[Any], seen: set[Any]) -> None:
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
