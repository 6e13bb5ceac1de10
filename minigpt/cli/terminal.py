"""What goes to a terminal: results to standard output, messages to standard error."""

import os
import re
import sys
from typing import TextIO

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and line feed


def say(line: str) -> None:
    """Print a message to standard error."""
    print(_fit(line, sys.stderr), file=sys.stderr, flush=True)


def write(text: str, end: str = "\n") -> None:
    """Print a result to standard output."""
    print(shown(text), end=end, flush=True)


def shown(text: str) -> str:
    """A text for standard output; unchanged if that is a file or a pipe."""
    return _fit(text, sys.stdout)


def _fit(text: str, stream: TextIO) -> str:
    """For a terminal, control characters become \\x1b and so on: there they would be commands."""
    if not stream.isatty():
        return text
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)


def has_colours(stream: TextIO) -> bool:
    """Whether to write colours: to a terminal that has them, unless NO_COLOR is set."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and stream.isatty()
