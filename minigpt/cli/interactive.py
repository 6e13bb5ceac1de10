"""`generate.py --interactive`: a session with a model. A line is the beginning of a text, or a
command such as /set temperature 0.5. Texts go to standard output, messages to standard error.
"""

import contextlib
import dataclasses
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import UserError, __version__
from ..config import InferenceConfig, SampleConfig
from .generate import Draft, described, open_writer, seeded
from .options import changed
from .terminal import say, write

if TYPE_CHECKING:
    from ..generation.writer import Writer

with contextlib.suppress(ImportError):  # there is none on Windows
    import readline  # noqa: F401  # input() then has line editing, and the session's history


def interact(
    prompt: str, run: str | None, machine: InferenceConfig, config: SampleConfig, show: bool
) -> None:
    """Hold a session until Ctrl-D or /quit; a prompt that is not empty begins a first text."""
    name, writer = open_writer(run, machine)
    say(f"minigpt {__version__}: writing with {described(name, writer)}")
    say("type how a text begins; Ctrl-C stops it; /help lists the commands; Ctrl-D leaves")
    session = Session(writer, config, show)
    session.attempt(lambda: session.write(prompt) if prompt else None)
    while session.attempt(lambda: session.obey(_read_line())):
        pass


class Session:
    """What a session remembers, and its commands: do_NAME is /NAME, its docstring the help."""

    def __init__(self, writer: "Writer", config: SampleConfig, showing: bool = False):
        self.writer, self.config, self.showing = writer, config, showing
        self.prompt = self.text = ""  # the last text, and how it began

    def attempt(self, action: Callable[[], object]) -> bool:
        """Do something and print what goes wrong; returns whether the session goes on."""
        try:
            action()
        except EOFError:
            return False
        except UserError as error:
            say(f"error: {error}")
        except UnicodeDecodeError:
            say("error: what was typed is not UTF-8")
        except KeyboardInterrupt:
            say("\n(Ctrl-D or /quit leaves)")
        return True

    def obey(self, line: str) -> None:
        """Carry out a command, or write a text that begins with `line`; EOFError ends it all."""
        name, _, rest = line[1:].partition(" ")
        if not line.startswith("/"):
            self.write(line) if line else None
        elif (command := getattr(self, f"do_{name}", None)) is not None:
            command(rest.strip())
        else:
            raise UserError(f"there is no command /{name}; /help lists them")

    def write(self, prompt: str, *, more: bool = False, config: SampleConfig | None = None) -> None:
        """Write a text that begins with `prompt`, or continue the last one."""
        config = seeded(config or self.config)
        draft = Draft(self.writer, self.text if more else prompt, config, self.showing)
        self.prompt = self.prompt if more else prompt
        try:
            draft.write(prompt)
        except KeyboardInterrupt:
            write("")
        self.text = draft.text
        say(f"({draft.figures()}, seed {config.seed})")

    def do_more(self, rest: str) -> None:
        """/more: continue the last text"""
        self.write("", more=True)

    def do_again(self, rest: str) -> None:
        """/again: the same beginning, another text"""
        self.write(self.prompt, config=dataclasses.replace(self.config, seed=None))

    def do_set(self, rest: str) -> None:
        """/set NAME VALUE: change a setting; without a value, back to its default"""
        words = shlex.shlex(rest, posix=True)
        words.whitespace_split, words.commenters, words.escape = True, "", ""
        try:
            name, *values = list(words) or [""]
        except ValueError as error:
            raise UserError(f"{error}; put quotes around a text with spaces") from None
        name = name.replace("-", "_")
        self.config = changed(self.config, name, values)
        say(f"{name} is now {_shown(getattr(self.config, name))}")

    def do_settings(self, rest: str) -> None:
        """/settings: the settings, and what they mean"""
        for field in dataclasses.fields(self.config):
            value = _shown(getattr(self.config, field.name))
            say(f"  {field.name:<19} {value:<10} {field.metadata['help']}")

    def do_show(self, rest: str) -> None:
        """/show: show tokens with their probabilities, or stop showing them"""
        self.showing = not self.showing
        say(f"tokens are {'now' if self.showing else 'no longer'} shown with their probabilities")

    def do_save(self, rest: str) -> None:
        """/save FILE: add the last text to a file"""
        if not rest:
            raise UserError("name a file: /save FILE")
        if not self.text:
            raise UserError("there is no text yet; type how it begins")
        path = Path(rest).expanduser()
        try:
            with path.open("a", encoding="utf-8", errors="replace") as file:
                file.write(self.text + "\n")
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}") from None
        say(f"added to {path}")

    def do_help(self, rest: str) -> None:
        """/help: this list"""
        for name, command in vars(Session).items():
            if name.startswith("do_"):
                usage, _, purpose = command.__doc__.partition(": ")
                say(f"  {usage:<22} {purpose}")
        say("  anything else is how a text begins")

    def do_quit(self, rest: str) -> None:
        """/quit: leave, as Ctrl-D does"""
        raise EOFError


def _shown(value: Any) -> str:
    return "unset" if value is None or value == () else str(value)


def _read_line() -> str:
    """The next line that is typed; EOFError at the end of standard input."""
    mark = "> " if sys.stdin.isatty() else ""
    try:
        if sys.stdout.isatty():
            return input(mark)
        print(mark, end="", file=sys.stderr, flush=True)  # standard output is for texts alone
        return input()
    except EOFError:
        say("") if mark else None  # so that the next output begins on a new line
        raise
