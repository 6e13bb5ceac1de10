"""Clients that keep a connection without using it."""

from typing import Any

import h11


async def drop_the_slow(clients: set[Any], seen: set[Any]) -> None:
    """Drop those that have not sent a whole request, or have read nothing, since the last look."""
    now = {_state(client) for client in clients}
    for client, _, sends, unread in now & seen:
        if unread or sends in (h11.IDLE, h11.SEND_BODY):
            client.transport.abort()

    seen.clear()
    seen.update(now)


def _state(client: Any) -> tuple[Any, ...]:
    """A client with what changes when it sends or reads: its request, how much of that is here, and
    how many bytes it has not read."""
    unread = client.transport.get_write_buffer_size()
    return client, client.cycle, client.conn.their_state, unread
