"""What a training tells a person: lines and bars on standard error."""

import contextlib
import os
import sys
import textwrap
import unicodedata
import warnings
from collections.abc import Callable
from typing import Any, Self

from tqdm import TqdmWarning

from ..system.shown import fit_for

# A notebook without ipywidgets gets tqdm's plain bar, and no warning at the import.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", TqdmWarning)
    from tqdm.auto import tqdm

clock = tqdm.format_interval  # seconds as minutes:seconds


def say(line: str, indent: int = 2, prefix: str = "") -> None:
    """Print a message above the bars, wrapped to the terminal's width."""
    width = 1 << 20  # where there is no terminal there is nothing to fit
    with contextlib.suppress(OSError, ValueError, AttributeError):
        width = max(os.get_terminal_size(sys.stderr.fileno()).columns - len(prefix), 20)
    if any(unicodedata.east_asian_width(c) in "WF" for c in line):
        width //= 2  # such characters are two columns wide
    for part in line.split("\n"):
        how: dict[str, Any] = {"break_on_hyphens": False, "break_long_words": bool(prefix)}
        for row in textwrap.wrap(part, width, subsequent_indent=" " * indent, **how) or [""]:
            _print(prefix + row)


def say_meanwhile(line: str) -> None:
    """Show at a terminal, until the next line takes its place, what takes a moment. That line must
    be at least as long."""
    if sys.stderr is not None and sys.stderr.isatty():
        with contextlib.suppress(OSError, ValueError):
            print(line, end="\r", file=sys.stderr, flush=True)


def say_command(purpose: str, command: str) -> None:
    """Print a command on a line of its own, never broken, so that it can be copied."""
    _print(f"{purpose}:\n  {command}")


def print_result(line: str) -> None:
    """Print a line to standard output, which may not know all of its characters."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    line = fit_for(sys.stdout, line)
    print(line.encode(encoding, errors="replace").decode(encoding), flush=True)


def say_row(heading: str, row: str) -> None:
    """Print a row of a table."""
    say(f"  {heading:<11}{row}", indent=13)


def say_text_of_a_model(text: str) -> None:
    """Print what a model has written, without characters that control the terminal."""
    shown = "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)
    say(shown.strip("\n"), indent=0, prefix="    | ")


def _print(line: str) -> None:
    """Print a line above the bars. Where nobody can read it any more, since the reader of a pipe or
    the terminal is gone or standard error is closed, training goes on without it."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            tqdm.write(fit_for(sys.stderr, line), file=sys.stderr)
            sys.stderr.flush()


def duration(seconds: float) -> str:
    """In seconds, minutes or hours, whichever reads better, in three digits."""
    if seconds < 100:
        number = seconds
        unit = "second"
    elif seconds < 300 * 60:
        number = seconds / 60
        unit = "minute"
    else:
        number = seconds / 3600
        unit = "hour"

    shown = f"{float(f'{number:.3g}'):,g}"
    return f"{shown} {unit}" if shown == "1" else f"{shown} {unit}s"


def rough(number: float) -> str:
    """A number in three digits: 1.23 million, 45,600."""
    if number >= 999.5e6:
        return f"{number / 1e9:,.3g} billion"
    if number >= 999_500:
        return f"{number / 1e6:,.3g} million"
    return f"{float(f'{number:.3g}'):,.0f}"


def progress_bar(what: str, total: int | None = None) -> tqdm:
    """A bar over characters of text, shown when it takes more than a second."""
    how: dict[str, Any] = {"unit": "char", "unit_scale": True, "delay": 1}
    return bar(total=total, desc=what, **how)


class ToldBar:
    """A bar over characters of text that also tells the share of them that is done."""

    def __init__(self, what: str, total: int, tell_share: Callable[[float], None]):
        self._bar = progress_bar(what, total)
        self._total = max(total, 1)
        self._tell_share = tell_share
        self._done = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def update(self, characters: int) -> None:
        """So many more are done."""
        self._bar.update(characters)
        self._done += characters
        self._tell_share(self._done / self._total)


def bar(**how: Any) -> tqdm:
    """A bar at a terminal. If that goes away, tqdm stops drawing it."""
    is_hidden = True  # standard error may be closed, or may never have been open
    with contextlib.suppress(ValueError, AttributeError):
        is_hidden = not sys.stderr.isatty()
    return tqdm(file=sys.stderr, disable=is_hidden, leave=False, dynamic_ncols=True, **how)
