"""`generate.py --interactive`: a conversation with a model. A line is the beginning of a text, or a
command such as /set temperature 0.5. Texts go to standard output, talk to standard error.
"""

import contextlib
import dataclasses
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import UserError, __version__
from ..config import InferenceConfig, SampleConfig, cache_folder
from ..generation.writer import Writer
from .generate import Draft, described, open_writer, print_samples, seeded
from .options import changed
from .terminal import say

try:
    import readline
except ImportError:  # as on Windows: lines can still be typed
    readline = None  # type: ignore[assignment]

_HISTORY, _LONGEST_HISTORY = "history", 1000  # lines
_PROMPT = "> "


def interact(
    prompt: str,
    run: str | None,
    machine: InferenceConfig,
    config: SampleConfig,
    *,
    show: bool = False,
) -> None:
    """Hold a session at the terminal, until Ctrl-D or /quit.

    Args:
        prompt: of a first text; none if it is empty.
        run: anything that :func:`minigpt.load` takes, or None for the newest run.
        machine: how to run it.
        config: how to generate, to begin with.
        show: whether to show each token with its probability, to begin with.

    Raises:
        UserError: if there is no such run, or it is damaged.
    """
    if machine.compile == "auto":
        machine = replace(machine, compile="off")  # nobody wants to wait for it in a session
    name, writer = open_writer(run, machine)
    say(f"minigpt {__version__}: writing with {described(name, writer)}")
    say("type how a text begins; Ctrl-C stops it; /help lists what else there is; Ctrl-D leaves")
    session = Session(writer, config, show)
    with _history():
        session.attempt(lambda: session.write(prompt) if prompt else None)
        while session.attempt(lambda: session.obey(_read_line())):
            pass


class Session:
    """What a session remembers, and what its commands do.

    Args:
        writer: writes.
        config: the settings; without a seed every text draws its own.
        show: whether to show each token with its probability.
    """

    def __init__(self, writer: Writer, config: SampleConfig, show: bool = False):
        self.writer, self.config, self.showing = writer, config, show
        self.prompt = self.text = ""  # the last text, and how it began

    def attempt(self, action: Callable[[], Any]) -> bool:
        """Do something; what goes wrong is said. Returns whether the session goes on."""
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
        """Carry out a command, or write a text that begins with `line`.

        Raises:
            UserError: if it cannot be done.
            EOFError: if the session is to end.
        """
        name, _, rest = line[1:].partition(" ")
        if line.startswith("/") and name in COMMANDS:
            COMMANDS[name].act(self, rest.strip())
        elif line.startswith("/"):
            raise UserError(f"there is no command /{name}; /help lists them")
        elif line:
            self.write(line)

    def write(self, prompt: str, *, more: bool = False, config: SampleConfig | None = None) -> None:
        """Write a text that begins with `prompt`, or go on with the last one."""
        config = seeded(config or self.config)
        draft = Draft(self.text if more else prompt)
        steps = draft.steps(self.writer, config, self.showing)
        if not more:
            self.prompt = prompt
        try:
            print_samples(prompt, steps, config.samples, self.writer, self.showing)
        except KeyboardInterrupt:
            print(flush=True)
        self.text = draft.text
        say(f"({draft.figures()}, seed {config.seed})")


def _more(session: Session, rest: str) -> None:
    session.write("", more=True)


def _again(session: Session, rest: str) -> None:
    session.write(session.prompt, config=replace(session.config, seed=None))


def _set(session: Session, rest: str) -> None:
    words = shlex.shlex(rest, posix=True)
    words.whitespace_split, words.commenters, words.escape = True, "", ""
    try:
        name, *values = list(words) or [""]
    except ValueError as error:
        raise UserError(f"{error}; put quotes around a text with spaces") from None
    name = name.replace("-", "_")
    session.config = changed(session.config, name, values)
    say(f"{name} is now {_shown(getattr(session.config, name))}")


def _settings(session: Session, rest: str) -> None:
    for field in dataclasses.fields(session.config):
        value = getattr(session.config, field.name)
        say(f"  {field.name:<19} {_shown(value):<10} {field.metadata['help']}")


def _shown(value: Any) -> str:
    return "unset" if value is None or value == () else str(value)


def _show(session: Session, rest: str) -> None:
    session.showing = not session.showing
    say(f"tokens are {'now' if session.showing else 'no longer'} shown with their probabilities")


def _save(session: Session, rest: str) -> None:
    if not rest:
        raise UserError("say where: /save FILE")
    if not session.text:
        raise UserError("there is no text yet; type how it begins")
    path = Path(rest).expanduser()
    try:
        with path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(session.text + "\n")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
    say(f"added to {path}")


def _quit(session: Session, rest: str) -> None:
    raise EOFError


def _help(session: Session, rest: str) -> None:
    for name, command in COMMANDS.items():
        say(f"  {'/' + name + ' ' + command.takes:<22} {command.help}")
    say("  anything else is how a text begins")


@dataclass(frozen=True)
class Command:
    """Something to type that begins with a slash."""

    takes: str  # what stands behind its name
    help: str
    act: Callable[[Session, str], None]


COMMANDS = {
    "more": Command("", "go on with the last text", _more),
    "again": Command("", "the same beginning, another text", _again),
    "set": Command("NAME VALUE", "change a setting; without a value, back to its default", _set),
    "settings": Command("", "the settings, and what they mean", _settings),
    "show": Command("", "show tokens with their probabilities, or no longer", _show),
    "save": Command("FILE", "add the last text to a file", _save),
    "help": Command("", "this list", _help),
    "quit": Command("", "leave, as Ctrl-D does", _quit),
}


def _read_line() -> str:
    """The next line that is typed.

    Raises:
        EOFError: at the end of standard input.
    """
    typed = sys.stdin.isatty()
    if typed and not sys.stdout.isatty():  # into a file, say, which is for the texts alone
        print(_PROMPT, end="", file=sys.stderr, flush=True)
    try:
        return input(_PROMPT if typed and sys.stdout.isatty() else "")
    except EOFError:
        if typed:
            say("")  # what comes next begins a line
        raise


@contextlib.contextmanager
def _history() -> Iterator[None]:
    """Lines typed in earlier sessions, to go back to; those of this one are kept as well."""
    file = cache_folder() / _HISTORY
    if readline is None or not sys.stdin.isatty():
        yield
        return
    readline.set_history_length(_LONGEST_HISTORY)
    with contextlib.suppress(OSError):
        readline.read_history_file(file)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(file)
