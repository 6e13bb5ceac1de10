"""Where the prompt of a text comes from: the command line, or standard input."""

import os
import stat
import sys

from .. import UserError
from .terminal import say


def read_prompt(given: str | None) -> str:
    """How a text begins: as `given`, or as on standard input.

    Standard input is read to its end if "-" is given, or if nothing is given and it is a pipe or a
    file. A last line end is dropped.
    """
    is_asked_for = given == "-" or (given is None and _is_redirected())
    if not is_asked_for:
        return given or ""
    if sys.stdin is None:
        raise UserError("standard input is closed; leave out the - or give the prompt itself")
    waiting = "type the prompt; Ctrl-D ends it" if sys.stdin.isatty() else "reading the prompt"
    say(f"{waiting} (standard input)")
    try:
        text = sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"the prompt is not UTF-8 (offset {error.start})") from None
    return text.removesuffix("\n").removesuffix("\r")


def _is_redirected() -> bool:
    """Whether standard input is a pipe, a socket or a file, not a terminal or /dev/null."""
    try:
        kind = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):  # it is closed, or not a real file
        return False
    return stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or stat.S_ISREG(kind)
