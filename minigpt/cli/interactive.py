"""`generate --interactive`: a prompt is typed and continued, and then the next one; with a model
that learned from conversations it is a talk. And the task, which every text of `generate` has.

Texts go to standard output, everything else to standard error. Without a terminal each line of
standard input is a prompt or a command.
"""

import contextlib
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

from .. import UserError
from ..config import SampleConfig
from ..devices.memory import enough_memory
from ..generation.results import Sample, Step
from ..system.platforms import end_of_input
from ..system.shown import plural
from .options import typed_text
from .terminal import print_message, read_line, write_steps

if TYPE_CHECKING:
    from ..generation.processors import Processor
    from ..generation.talk import Talk
    from ..generation.writer import Writer


@dataclass(frozen=True)
class Task:
    """What is to be written."""

    writer: "Writer"
    settings: dict[str, Any]  # that were given, in the place of the model's own
    processors: "list[Processor]"
    prompt: str
    shown: str  # before what is written
    is_answer: bool = False

    @cached_property
    def config(self) -> SampleConfig:
        """How it is written."""
        return self.writer.usual.with_given(**self.settings)

    def with_given(self, **given: Any) -> "Task":
        """The same task with other settings."""
        return replace(self, settings={**self.settings, **given})

    def samples(self) -> "list[Sample]":
        """All texts, whole."""
        return self.writer.samples(self.prompt, processors=self.processors, **self.settings)

    def steps(self, **more: Any) -> Iterator[Step]:
        """Token after token; `more` is what :meth:`Writer.steps` takes besides."""
        return self.writer.steps(self.prompt, self.config, processors=self.processors, **more)

    def seeded(self, seed: int | None = None) -> "Task":
        """The same task with this seed, or with its own, or else with a new one."""
        seed = self.config.seed if seed is None else seed % (1 << 63)
        seed = random.randrange(2**31) if seed is None else seed
        return self.with_given(seed=seed)

    def as_answer(self, talk: "Talk") -> "Task":
        """The same task for the next turn of a talk."""
        prompt = talk.prompt(
            self.writer.tokenizer,
            context_length=self.writer.engine.context_length,
            max_new_tokens=self.config.max_new_tokens,
        )
        task = self.with_given(stop=talk.settings(self.config).stop)
        return replace(task, prompt=prompt, shown=talk.opening, is_answer=True)

    def summary(self, samples: list[list[Step]], seconds: float, seed: str, more: str) -> str:
        """What is said below a text: how fast it was written, and why its samples end where they
        do; `more` if one of them could go on."""
        count = sum(len(sample) for sample in samples)
        end = more
        reasons = {sample[-1].stop_reason for sample in samples if sample}
        if reasons and not reasons & {None, "length"}:
            end = "it ended by itself"
            if self.is_answer:
                end = "the turn is over"
            elif "stop" in reasons:
                end = "it came to a text that ends it (stop)"
        speed = f"{plural(count, 'token')} at {count / seconds:,.0f} a second"
        return f"{speed}   {seed} {self.config.seed}   {end}"


def hold(session: "Session", first: str | None) -> None:
    """Take one line after the other until standard input ends, after the `first` prompt, if any."""
    if sys.stdin is None:
        raise UserError("standard input is closed; --interactive reads its prompts there")
    is_typed = sys.stdin.isatty()
    if is_typed:
        with contextlib.suppress(ImportError):  # Windows has none, and edits lines by itself
            import readline  # noqa: F401, input() uses it from now on
        print_message(f"type a text, or /help; Ctrl-C stops one; to leave: {end_of_input()}")

    if first is not None:
        session.begin(first)
    while True:
        try:
            with enough_memory("a smaller model"):
                session.take(read_line())
        except UserError as error:
            print_message(f"error: {error}")
        except KeyboardInterrupt:  # the line that was being typed is cleared
            if not is_typed:
                raise
            print_message("")
        except EOFError:
            if is_typed:
                print_message("")  # what the shell prints next begins a line
            return


class CtrlC:
    """Within, the key is noted, so that what is shown and what is kept of a text end at the same
    token. Pressed again, it acts at once."""

    def __init__(self) -> None:
        self.is_pressed = False

    def __enter__(self) -> "CtrlC":
        self._usual = signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, *_: object) -> None:
        if self.is_pressed:
            raise KeyboardInterrupt
        self.is_pressed = True

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._usual)


class Session:
    """A text that goes on; each line that is typed changes it."""

    lines: ClassVar = {
        "TEXT": "write a text that begins with TEXT (\\n: new line; // for a / at first)",
        "an empty line": "go on with the last text",
        "/again": "the last prompt again, with the next seed",
        "/temperature N": "below 1 favours likely tokens, above 1 evens them out",
        "/help": "this list",
    }

    def __init__(self, task: Task, width: int | None):
        self._task = task  # the model and its settings
        self._width = width  # of lines, as `write_steps` takes it
        self._text = ""  # the last one, its prompt included
        self._seed = 0  # of what was written last
        self._again: Callable[[int], None] | None = None  # writes it with another seed

    def take(self, line: str) -> None:
        """Do what a line asks for; a UserError says what is wrong with it."""
        if line.startswith("/") and not line.startswith("//"):
            name, _, value = line[1:].partition(" ")
            self._obey(name, value.strip())
        elif line:
            self.begin(typed_text(line.removeprefix("/")))
        else:
            self._go_on()

    def begin(self, prompt: str) -> None:
        """Write a text that begins with a prompt."""
        self._continue(prompt, shown=prompt)
        self._again = partial(self._continue, prompt, prompt)

    def _go_on(self) -> None:
        if self._again is None:
            self.begin("")
        else:
            self._continue(self._text, shown="")

    def _continue(self, text: str, shown: str, seed: int | None = None) -> None:
        task = replace(self._task, prompt=text, shown=shown).seeded(seed)
        self._text = text + self._write(task, more="more: Enter")

    def _obey(self, name: str, value: str) -> None:
        """Carry out a command."""
        if name == "temperature":
            try:
                temperature = float(value)
            except ValueError:
                raise UserError(f"temperature must be a number, got {value!r}") from None
            task = self._task.with_given(temperature=temperature)
            print_message(f"temperature {task.config.temperature:g}")  # a wrong one is refused
            self._task = task
        elif name == "again" and not value:
            if self._again is None:
                raise UserError("there is nothing yet to write again")
            self._again(self._seed + 1)
        elif name == "help" and not value:
            for typed, purpose in self.lines.items():
                print_message(f"{typed:<16}{purpose}")
        else:
            known = ", ".join(typed for typed in self.lines if typed.startswith("/"))
            raise UserError(f"no command /{name} {value}".rstrip() + f"; there are {known}")

    def _write(self, task: Task, more: str) -> str:
        """What is written for a task, shown as it comes. At a terminal Ctrl-C ends the text, not
        the session."""
        self._seed = task.config.seed or 0
        written: list[Step] = []

        def kept(stop: CtrlC) -> Iterator[Step]:
            for step in task.steps():
                written.append(step)
                yield step
                if stop.is_pressed:
                    return

        start = time.perf_counter()
        if sys.stdin.isatty():
            with CtrlC() as stop:
                write_steps(task.shown, kept(stop), self._width)
            more = f"stopped   {more}" if stop.is_pressed else more
        else:
            write_steps(task.shown, kept(CtrlC()), self._width)
        print_message(task.summary([written], time.perf_counter() - start, "seed", more))
        return "".join(step.text for step in written)


class TalkSession(Session):
    """What has been said, and who answers; a line that is typed is somebody's turn."""

    lines: ClassVar = {
        **Session.lines,
        "TEXT": "your turn (\\n: new line; // for a / at first); NAME: TEXT is that of a speaker",
        "an empty line": "let the model speak the next turn, whoever's it is",
        "/again": "the last answer again, with the next seed",
        "/as NAME": "let another speaker answer",
        "/undo": "take back your last turn, and the answers to it",
        "/new": "forget all that was said",
    }

    def __init__(self, task: Task, width: int | None, talk: "Talk"):
        super().__init__(task, width)
        self._talk = talk
        self._typed: list[Talk] = []  # the talk before each turn that was typed

    def begin(self, prompt: str) -> None:
        """Answer a turn."""
        before = self._talk
        self._speak(before.hear(prompt), before.answerer)
        self._typed.append(before)

    def _go_on(self) -> None:
        """Let the model speak the next turn: the answer, or what follows the answer."""
        self._speak(self._talk, self._talk.next_speaker)

    def _speak(self, talk: "Talk", speaker: str, seed: int | None = None) -> None:
        """Write the next turn of a talk, as a speaker, and add it."""
        task = self._task.as_answer(replace(talk, answerer=speaker)).seeded(seed)
        if seed is None:  # not all answers are to be alike
            task = task.seeded((task.config.seed or 0) + len(talk.turns))
        written = self._write(task, more="longer: --max-new-tokens N")
        self._talk = replace(self._talk, turns=talk.add(speaker, written).turns)
        self._again = partial(self._speak, talk, speaker)

    def _obey(self, name: str, value: str) -> None:
        if name == "as":
            self._talk = replace(self._talk, answerer=self._talk.dialogue.find(value))
            print_message(f"{self._talk.answerer} answers; you are {self._talk.asker}")
        elif name in ("undo", "new") and not value:
            self._take_back(everything=name == "new")
        else:
            super()._obey(name, value)

    def _take_back(self, *, everything: bool) -> None:
        """Forget the last turn that was typed and what followed, or all turns."""
        if not everything and not self._typed:
            raise UserError("there is no turn of yours to take back")
        turns = () if everything else self._typed.pop().turns
        self._talk = replace(self._talk, turns=turns)
        self._typed = [] if everything else self._typed
        self._again = None
        print_message(
            f"the last turn is {turns[-1].speaker}'s" if turns else "nothing was said yet"
        )
