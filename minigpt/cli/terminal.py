"""What a terminal shows: talk on standard error, colours where they are wanted."""

import os
import sys
from typing import TextIO


def say(line: str) -> None:
    """Talk goes to standard error; results to standard output."""
    print(line, file=sys.stderr, flush=True)


def has_colours(stream: TextIO) -> bool:
    """Whether to write colours there: a terminal that has them, unless NO_COLOR is set."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and stream.isatty()
