"""`generate --interactive`: a prompt is typed and continued, and then the next one.

A line that begins with a slash is a command or a setting. Texts go to standard output, everything
else to standard error. Without a terminal each line of standard input is a prompt or a command.
"""

import contextlib
import difflib
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import ClassVar

from .. import UserError
from ..config import SampleConfig
from ..config.checked import is_utf8
from ..config.system import end_of_input, why_not_written
from ..generation.results import Step
from ..runs.memory import enough_memory
from .options import read_field, typed_text
from .terminal import print_message, terminal_width
from .writing import Task, how_it_ended, new_seed, speed_of, write_steps

SETTINGS = {field.name: field for field in fields(SampleConfig) if field.name != "samples"}
COMMANDS = {
    "again": "the last prompt again, with another seed",
    "save FILE": "write the last text, with its prompt, to a new file",
    "help": "this list",
    "quit": "end the session",
}
_SIGN = "> "  # where a prompt is to be typed
_COLUMN = 26  # where the help says what a command does


def talk(task: Task, *, begins: bool, width: int | None) -> None:
    """Write a text for each prompt that is typed, until the end of standard input.

    Args:
        task: the model, the settings at first and, if it `begins` with one, the first prompt.
        begins: whether to write a text before the first line is read.
        width: of lines, 0 for any; None for the terminal's.
    """
    greeting = "type how a text begins, or /help"
    hold(Session(task, width), greeting, first=task.prompt if begins else None)


def hold(session: "Session", greeting: str, first: str | None = None) -> None:
    """Take one line after the other until the session is over; the `first` one is given, if any."""
    if sys.stdin is None:
        raise UserError("standard input is closed; --interactive reads its prompts there")
    is_typed = sys.stdin.isatty()
    if is_typed:
        _greet(greeting)

    if first is not None:
        with _going_on(is_typed):
            session.begin(first)
    while session.is_open:
        with _going_on(is_typed):
            session.take(read_line())


def _greet(greeting: str) -> None:
    """Say how to use it, and let lines be edited and called back with the arrow keys."""
    with contextlib.suppress(ImportError):  # Windows has none, and edits lines by itself
        import readline  # noqa: F401, input() uses it from now on
    print_message(f"{greeting}; Ctrl-C stops a text; to leave: {end_of_input()}")


@contextlib.contextmanager
def _going_on(is_typed: bool) -> Iterator[None]:
    """Within, a wrong line is answered with what is wrong, and Ctrl-C clears a line that is being
    typed; the session goes on."""
    try:
        with enough_memory("a smaller model"):
            yield
    except UserError as error:
        print_message(f"error: {error}")
    except KeyboardInterrupt:
        if not is_typed:
            raise
        print_message("")


def read_line() -> str | None:
    """The next line of standard input, asked for at a terminal; None at the end."""
    try:
        if not sys.stdin.isatty():
            content = sys.stdin.buffer.readline()
            line = content.decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
            return line if content else None
        if sys.stdout.isatty():
            return _in_utf8(input(_SIGN))

        # Here input() would write its sign to standard output, among the texts.
        print(_SIGN, end="", file=sys.stderr, flush=True)
        typed = sys.stdin.readline()
        if typed:
            return _in_utf8(typed.removesuffix("\n"))
    except UnicodeDecodeError:
        raise UserError("this line is not UTF-8") from None
    except EOFError:
        pass
    print_message("")  # what the shell prints next begins a line
    return None


def _in_utf8(typed: str) -> str:
    """A line whose bytes are UTF-8, also where the system's language is C, which knows ASCII."""
    return typed.encode(errors="surrogateescape").decode()


class Session:
    """The last text and the settings; what is typed changes them."""

    commands: ClassVar = COMMANDS
    prompts: ClassVar = {  # what can be typed beside commands
        "TEXT": "write a text that begins with TEXT (\\n: new line)",
        "an empty line": "go on with the last text",
        "//TEXT": "the same as TEXT, for one that begins with a slash",
    }

    def __init__(self, task: Task, width: int | None):
        self.is_open = True
        self._task = task  # its prompt is that of the last text
        self._width = width
        self._text: str | None = None  # the last one, its prompt included
        self._seed = 0  # of the last text

    def take(self, line: str | None) -> None:
        """Do what a line asks for; None ends the session.

        Raises:
            UserError: if there is no such command, or a value is wrong; nothing has changed then.
        """
        if line is None:
            self.is_open = False
        elif line == "" and self._text is not None:
            self._go_on()
        elif line.startswith("//"):
            self.begin(typed_text(line[1:]))
        elif line.startswith("/"):
            name, _, value = line[1:].partition(" ")
            self._obey(name, value.strip())
        else:
            self.begin(typed_text(line))

    def begin(self, prompt: str) -> None:
        """Write a text that begins with a prompt."""
        if not is_utf8(prompt):
            raise UserError("the prompt is not UTF-8")
        self._write(prompt, shown=prompt, seed=self._next_seed())
        self._task = replace(self._task, prompt=prompt)

    def _go_on(self) -> None:
        """Continue the last text."""
        assert self._text is not None
        self._write(self._text, shown="", seed=self._next_seed())

    def _obey(self, name: str, value: str) -> None:
        """Carry out a command, or change or show a setting."""
        field = name.replace("-", "_")
        if field in SETTINGS:
            self._set(field, value)
        elif name == "save":
            self._save(value)
        elif name in self.commands and value:
            raise UserError(f"/{name} takes no value, got {value}")
        elif name == "again":
            self._again()
        elif name == "help":
            self._help()
        elif name == "quit":
            self.is_open = False
        else:
            meant = _meant(name, self.commands)
            raise UserError(f"no command /{name} ({meant}); type // for a prompt with a /")

    def _set(self, field: str, typed: str) -> None:
        """Change a setting, or show it if no value was typed."""
        config = self._task.config
        if typed:
            value = read_field(SampleConfig, field, typed)
            if field == "stop" and value:  # another one
                value = (*config.stop, *value)
            config = replace(config, **{field: value})

        self._task = replace(self._task, config=config)
        print_message(f"{_option(field)} {_shown(config, field)}")

    # Writing

    def _next_seed(self) -> int:
        """The seed that was set, or a new one."""
        seed = self._task.config.seed
        return new_seed() if seed is None else seed

    def _again(self) -> None:
        """Write another text with the last prompt."""
        if self._text is None:
            raise UserError("there is no prompt yet; type one")
        prompt = self._task.prompt
        is_set = self._task.config.seed is not None
        seed = (self._seed + 1) % (1 << 63) if is_set else new_seed()
        self._write(prompt, shown=prompt, seed=seed)

    def _write(self, text: str, *, shown: str, seed: int) -> None:
        """Continue a text, of which a part is shown first."""
        self._text = text
        self._show(replace(self._task, prompt=text), shown=shown, seed=seed, more="more: Enter")

    def _show(self, task: Task, *, shown: str, seed: int, more: str) -> None:
        """Show what is written for a task as it comes. At a terminal Ctrl-C ends the text, not the
        session."""
        self._seed = seed
        steps = replace(task, config=replace(task.config, seed=seed)).steps()
        width = terminal_width() if self._width is None else self._width

        start = time.perf_counter()
        written: list[Step] = []
        end = more
        try:
            write_steps(shown, self._kept(steps, written), width)
        except KeyboardInterrupt:
            if not sys.stdin.isatty():
                raise
            end = f"stopped   {more}"
        else:
            end = how_it_ended([written], more=more, is_answer=task.opening is not None)

        speed = speed_of(len(written), time.perf_counter() - start)
        print_message(f"{speed}   seed {seed}   {end}")

    def _kept(self, steps: Iterable[Step], written: list[Step]) -> Iterator[Step]:
        """Add each step to the text, and pass it on."""
        for step in steps:
            written.append(step)
            self._text = f"{self._text}{step.text}"
            yield step

    # Other commands

    def _save(self, name: str) -> None:
        """Write the last text to a file that is not there yet."""
        from ..runs.atomic import write_text  # needs numpy, which --help does not wait for

        text = self._saved_text()
        if not text:
            raise UserError("there is no text yet; type a prompt")
        if not name:
            raise UserError("name a file, as in /save story.txt")
        file = Path(os.path.expanduser(name))
        if os.path.lexists(file):
            raise UserError(f"{file} is there already; choose another name")

        try:
            write_text(f"{text}\n", file)
        except OSError as error:
            raise UserError(f"cannot write {file}: {why_not_written(error, file)}") from None
        except ValueError:
            raise UserError(f"cannot write {file}: its name holds a NUL") from None
        print_message(f"saved in {file}")

    def _saved_text(self) -> str:
        """What is written to a file."""
        return self._text or ""

    def _help(self) -> None:
        """List what can be typed, with the values of the settings."""
        rows = dict(self.prompts)
        rows |= {f"/{name}": purpose for name, purpose in self.commands.items()}
        rows["/SETTING off"] = "set it to its default; the settings are:"
        for name, field in SETTINGS.items():
            rows[f"{_option(name)} {_shown(self._task.config, name)}"] = field.metadata["help"]

        columns = max(shutil.get_terminal_size().columns, 2 * _COLUMN)
        for typed, purpose in rows.items():
            for line in textwrap.wrap(
                purpose,
                width=columns,
                initial_indent=f"{typed}  ".ljust(_COLUMN),
                subsequent_indent=" " * _COLUMN,
            ):
                print_message(line)


def _option(field: str) -> str:
    """What is typed to change a setting."""
    return f"/{field.replace('_', '-')}"


def _shown(config: SampleConfig, field: str) -> str:
    """The value of a setting as it is typed."""
    value = getattr(config, field)
    if value is True:
        return "on"
    if value in (None, ()) or value is False:
        return "off"
    if isinstance(value, tuple):
        return " ".join(repr(text)[1:-1] for text in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _meant(name: str, commands: Iterable[str]) -> str:
    """Which command a wrong name may mean."""
    known = [command.split()[0] for command in commands]
    known += [field.replace("_", "-") for field in SETTINGS]
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean /{near[0]}?" if near else "/help lists them"
