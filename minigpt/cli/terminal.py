"""What goes to a terminal: results to standard output, messages to standard error; and a line that
is typed there."""

import contextlib
import io
import itertools
import os
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterable

from .. import UserError
from ..generation.results import Step
from ..system.shown import fit_for


def prepare_streams() -> None:
    """Make standard input, output and error ready for any text.

    Files and pipes hold UTF-8, whatever the system's own encoding is, unless PYTHONIOENCODING names
    another. A terminal has its own, and shows a mark for what it does not know. Where standard
    output or error was closed, as by `2>&-`, what is written goes nowhere.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, stays open

    chosen, _, chosen_errors = os.environ.get("PYTHONIOENCODING", "").partition(":")
    unknown = {"stdin": "surrogateescape", "stdout": "replace", "stderr": "backslashreplace"}
    for name, errors in unknown.items():
        stream = getattr(sys, name)
        if not isinstance(stream, io.TextIOWrapper) or stream.closed:  # of a program's own
            continue
        encoding = stream.encoding if chosen or stream.isatty() else "utf-8"
        stream.reconfigure(encoding=encoding, errors=chosen_errors or errors)


def print_message(line: str) -> None:
    """Print a message to standard error, wrapped to the terminal's width. Of several processes that
    torchrun has started, only the first prints it. Where nobody can read it any more, since the
    reader of a pipe or the terminal is gone, the command goes on without it."""
    if "LOCAL_RANK" in os.environ and os.environ.get("RANK", "0") != "0":
        return
    with contextlib.suppress(OSError, ValueError):
        print(_wrapped(line), file=sys.stderr, flush=True)


def _wrapped(line: str) -> str:
    """A message for standard error, wrapped if that is a terminal."""
    if not sys.stderr.isatty():
        return line

    # What follows a colon and two spaces is a command; it is not broken, so that it can be copied.
    text, _, command = line.partition(":  ")
    if command:
        text += ":"
    text = textwrap.fill(
        text,
        width=os.get_terminal_size(sys.stderr.fileno()).columns or 80,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    if command:
        text += f"\n  {command}"
    return fit_for(sys.stderr, text)


def write(text: str, end: str = "\n") -> None:
    """Print a result to standard output."""
    print(fit_for(sys.stdout, text), end=end, flush=True)


def terminal_width() -> int | None:
    """How many columns standard output has; None if it is no terminal."""
    if not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def read_line() -> str:
    """The next line of standard input; EOFError at the end. At a terminal a sign asks for it."""
    if sys.stdin.isatty():
        sign = "> "
        if not sys.stdout.isatty():  # there input() would write the sign among the texts
            print(sign, end="", file=sys.stderr, flush=True)
            sign = ""
        # UTF-8, also where the system's language is C, which knows ASCII.
        content = input(sign).encode(errors="surrogateescape")
    else:
        content = sys.stdin.buffer.readline()
        if not content:
            raise EOFError

    try:
        return content.decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise UserError("this line is not UTF-8") from None


def write_steps(beginning: str, steps: Iterable[Step], width: int | None) -> None:
    """Write a text as it comes, in lines of a width: 0 for any, None for the terminal's. It ends
    with its line also where it is interrupted."""
    if width is None:
        width = terminal_width()
    wrapper = Wrapper(width) if width else None
    try:
        for text in itertools.chain([beginning], (step.text for step in steps)):
            write(wrapper.add(text) if wrapper else text, end="")
    finally:
        write(wrapper.end() if wrapper else "")


class Wrapper:
    """Breaks the lines of a text that comes in pieces, between words, at so many columns.

    A word is held back until it has ended. One that is longer than a line is not broken.
    """

    def __init__(self, width: int):
        self._width = width
        self._column = 0  # where the next character goes
        self._gap = ""  # white space before the word
        self._word = ""

    def add(self, text: str) -> str:
        """What can be printed after another piece."""
        return "".join(map(self._add, text))

    def end(self) -> str:
        """What was held back."""
        return self._take_word() + self._take_gap()

    def _add(self, character: str) -> str:
        if character == "\n":
            line = self._take_word() + "\n"
            self._gap = ""
            self._column = 0
            return line

        if character in " \t":
            word = self._take_word()
            self._gap += character
            return word

        if _columns(character) == 2:  # Chinese, say: a line may be broken before and after it
            word = self._take_word()
            self._word = character
            return word + self._take_word()

        self._word += character
        return ""

    def _take_word(self) -> str:
        """The word and what stands before it: white space, or the end of a line."""
        word = self._word
        self._word = ""
        if not word:
            return ""

        columns = sum(_columns(character) for character in word)
        end = self._column + len(self._gap) + columns
        if self._column > 0 and end > self._width:
            self._gap = ""
            self._column = columns
            return "\n" + word

        gap = self._take_gap()
        self._column += columns
        return gap + word

    def _take_gap(self) -> str:
        gap = self._gap
        self._gap = ""
        self._column += len(gap)
        return gap


def _columns(character: str) -> int:
    """How many columns a character takes."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
