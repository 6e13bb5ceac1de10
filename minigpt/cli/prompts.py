"""Where the prompt of a text comes from: the command line, a file, or standard input."""

import os
import stat
import sys
from pathlib import Path

from .. import UserError
from .terminal import say


def read_prompt(given: str | None, file: str | None) -> str:
    """How a text begins: `given`, or the content of `file`, or of standard input.

    Standard input is read to its end if "-" is given, or if nothing is given and it is a pipe or a
    file. A last line end is dropped.
    """
    if given is not None and file is not None:
        raise UserError("the prompt is given twice: leave out --prompt-file or the other one")
    if file is not None:
        try:
            return _text(Path(file).read_bytes(), file)
        except OSError as error:
            raise UserError(f"cannot read {file}: {error.strerror}") from None
    if given == "-" or (given is None and _is_redirected()):
        if sys.stdin is None:
            raise UserError("standard input is closed; leave out the - or give the prompt itself")
        waiting = "type the prompt; Ctrl-D ends it" if sys.stdin.isatty() else "reading the prompt"
        say(f"{waiting} (standard input)")
        return _text(sys.stdin.buffer.read(), "standard input")
    return given or ""


def _is_redirected() -> bool:
    """Whether standard input is a pipe, a socket or a file, not a terminal or /dev/null."""
    try:
        kind = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):  # it is closed, or not a real file
        return False
    return stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or stat.S_ISREG(kind)


def _text(content: bytes, name: str) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"the prompt in {name} is not UTF-8 (offset {error.start})") from None
    return text.removesuffix("\n").removesuffix("\r")
