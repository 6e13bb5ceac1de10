"""Where the prompt of a text comes from: the command line, a file, or standard input."""

import contextlib
import select
import sys
from pathlib import Path

from .. import UserError

STANDARD_INPUT = "-"
_PATIENCE = 1.0  # seconds


def read_prompt(given: str | None, file: str | None, *, stdin: bool = True) -> str:
    """How a text is to begin.

    One line end at the end of a file or of standard input is dropped, because editors and `echo`
    put it there; whoever wants the text to go on in a new line leaves an empty one.

    Args:
        given: the prompt itself; "-" reads standard input to its end; None reads it if something
            comes from there within a second, and so begins from nothing at a terminal, in a
            scheduled job, or beside a pipe in which nothing moves.
        file: a file to read instead.
        stdin: whether standard input is there for the prompt.

    Raises:
        UserError: if both are given, or what is read is not UTF-8 text.
    """
    if given is not None and file is not None:
        raise UserError("the prompt is given twice: leave out --prompt-file or the other one")
    if file is not None:
        return _text(_content(Path(file)), file)
    if given == STANDARD_INPUT and not stdin:
        raise UserError("standard input is for the session; give the prompt with --prompt-file")
    if given == STANDARD_INPUT or (given is None and stdin and _something_comes()):
        return _text(_standard_input(), "standard input")
    return given or ""


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None


def _standard_input() -> bytes:
    """All of it; nothing if it is closed."""
    if sys.stdin is None:
        return b""
    if sys.stdin.isatty():
        print("type the prompt; Ctrl-D ends it", file=sys.stderr, flush=True)
    return sys.stdin.buffer.read()


def _something_comes() -> bool:
    """Whether standard input is no terminal and has something to read, or its end."""
    if sys.stdin is None or sys.stdin.isatty():
        return False
    with contextlib.suppress(OSError, ValueError):  # where pipes cannot be waited for
        return bool(select.select([sys.stdin], [], [], _PATIENCE)[0])
    return False


def _text(content: bytes, name: str) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"the prompt in {name} is not UTF-8 (offset {error.start})") from None
    return text.removesuffix("\n").removesuffix("\r")
