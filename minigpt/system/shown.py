"""Names, texts, tokens and numbers, made fit to be shown: a file may be called anything."""

import os
import re
from typing import TextIO

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and line feed
_MARKS = str.maketrans({" ": "␣", "\n": "↵", "\t": "⇥"})


def in_utf8(name: str) -> str:
    """The name of a file; bytes of it that are not UTF-8 become U+FFFD."""
    return os.fsencode(name).decode(errors="replace")


def fit_for(stream: TextIO, text: str) -> str:
    """For a terminal, control characters become \\x1b and so on: there they would be commands."""
    if not stream.isatty():
        return text
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)


def visible(token: bytes) -> str:
    r"""A token to look at: ␣ for a space, ↵ a new line, ⇥ a tab, \xe2 a byte of a character."""
    text = token.decode("utf-8", errors="backslashreplace").translate(_MARKS)
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def percent(probability: float) -> str:
    """A probability in two digits or so: 83%, 2.4%, <0.1%."""
    if probability < 0.001:
        return "<0.1%"
    if probability < 0.0995:  # else it would be shown as 10.0%
        return f"{probability:.1%}"
    return f"{probability:.0%}"


def plural(number: int, noun: str) -> str:
    """1 step, 2 steps."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
