"""The sockets that the server listens at, opened before the model is loaded."""

import errno
import os
import socket

from .. import UserError

_ABSENT = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)  # such as IPv6 where there is none


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
    opened = socket.socket(family, socket.SOCK_STREAM)
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
