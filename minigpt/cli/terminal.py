"""What goes to a terminal: results to standard output, messages to standard error."""

import contextlib
import os
import re
import sys
import textwrap
from typing import Any, TextIO

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and line feed


def say(line: str) -> None:
    """Print a message to standard error, wrapped to the terminal's width; of several processes
    that torchrun has started the first does. Where nobody can read it any more, since the reader of
    a pipe or the terminal is gone, the command goes on without it."""
    if "LOCAL_RANK" in os.environ and os.environ.get("RANK", "0") != "0":
        return
    with contextlib.suppress(OSError, ValueError):
        print(_wrapped(line), file=sys.stderr, flush=True)


def _wrapped(line: str) -> str:
    """A message for standard error, wrapped if that is a terminal."""
    if sys.stderr.isatty():
        width = os.get_terminal_size(sys.stderr.fileno()).columns or 80
        line, _, command = line.partition(":  ")  # which is not broken, so that it can be copied
        how: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
        line = textwrap.fill(f"{line}:" if command else line, width, subsequent_indent="  ", **how)
        line += f"\n  {command}" if command else ""
    return _fit(line, sys.stderr)


def write(text: str, end: str = "\n") -> None:
    """Print a result to standard output."""
    print(_fit(text, sys.stdout), end=end, flush=True)


def _fit(text: str, stream: TextIO) -> str:
    """For a terminal, control characters become \\x1b and so on: there they would be commands."""
    if not stream.isatty():
        return text
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)
