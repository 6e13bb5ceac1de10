"""`generate --interactive`: what the keys of a terminal do, and what each line does, also without
one."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import minigpt
from minigpt.cli.interactive import Session, Task
from minigpt.cli.terminal import write

from ..patience import PATIENCE
from .conftest import Outcome, Type, assert_refused

CTRL_C = "\x03"
CTRL_D = "\x04"
ARROW_UP = "\x1b[A"
AT_ITS_TERMINAL = """
import fcntl, sys, termios
from minigpt.cli import main

fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # from now on its keys are signals of this process
sys.exit(main(sys.argv[1:]))
"""

Talk = Callable[..., Outcome]


# At a terminal


class Terminal:
    """A session at a terminal of its own: what is typed, and what is seen."""

    def __init__(self, run: Path, *options: str, stdout: Path | None = None, **variables: str):
        pty = pytest.importorskip("pty", reason="Windows has other terminals")
        self._keys, terminal = pty.openpty()
        self._shown = b""
        command = [sys.executable, "-c", AT_ITS_TERMINAL, "generate", "--interactive"]
        with open(stdout or os.devnull, "w") as file:
            self.process = subprocess.Popen(
                [*command, "--run", str(run), *options],
                stdin=terminal,
                stdout=terminal if stdout is None else file,
                stderr=terminal,
                env={**os.environ, "TERM": "dumb", **variables},
                start_new_session=True,
            )
        os.close(terminal)

    def type(self, keys: str) -> None:
        os.write(self._keys, keys.encode())

    def see(self, text: str) -> str:
        """What has been shown since the last call, up to this text, which is waited for."""
        while text.encode() not in self._shown:
            assert self._reads(PATIENCE), f"{text!r} is not in {self._shown!r}"
        before, _, self._shown = self._shown.partition(text.encode())
        return before.decode(errors="replace") + text

    def interrupt(self) -> str:
        """Press Ctrl-C, and see what is shown up to the next prompt. Pressed at once after another
        key, it can be lost in Python's input(); then it is pressed again."""
        self.type(CTRL_C)
        while b"> " not in self._shown:
            if not self._reads(PATIENCE / 10):
                self.type(CTRL_C)
        return self.see("> ")

    def _reads(self, seconds: float) -> bool:
        """Whether there is more to read within some seconds; it is read."""
        ready, _, _ = select.select([self._keys], [], [], seconds)
        if ready:
            shown = self._shown + os.read(self._keys, 1 << 16)
            self._shown = shown.replace(b"\r\n", b"\n")
        return bool(ready)

    def leave(self) -> int:
        self.type(CTRL_D)
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._keys)


@pytest.fixture
def terminal(tiny_run: Path, workplace: Path) -> Iterator[Callable[..., Terminal]]:
    """Opens a terminal with a session."""
    opened = []

    def open_terminal(*options: str, **others: Any) -> Terminal:
        opened.append(Terminal(tiny_run, *options, **others))
        opened[-1].see("to leave: Ctrl-D")
        return opened[-1]

    yield open_terminal
    for one in opened:
        one.close()


def test_ctrl_c_clears_a_line_or_stops_a_text_and_enter_and_the_arrow_go_on(
    terminal: Callable[..., Terminal],
) -> None:
    session = terminal("--max-new-tokens", "100000000", "--wrap", "0")
    session.see("> ")
    session.type("zebra")
    session.see("zebra")
    session.interrupt()

    session.type("the fox\n")
    seen = [session.see(words) for words in ("the fox", "the fox", "a")]  # typed, written, more
    assert "zebra" not in "".join(seen)
    assert "stopped   more: Enter" in session.interrupt()

    session.type("\n")
    session.see("a")
    assert "stopped   more: Enter" in session.interrupt()

    session.type(f"{ARROW_UP}\n")
    seen = [session.see("the fox") for _ in range(2)]
    assert "zebra" not in "".join(seen)
    session.interrupt()
    assert session.leave() == 0


def test_a_file_holds_the_texts_alone_and_one_that_was_stopped_goes_on_where_it_ended(
    terminal: Callable[..., Terminal], tmp_path: Path, type_: Type, tiny_run: Path
) -> None:
    """A line is read as UTF-8, whatever the language of the system."""

    def written() -> str:
        return file.read_text(encoding="utf-8")

    file = tmp_path / "texts.txt"
    variables = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    session = terminal("--max-new-tokens", "100000000", "--seed", "1", stdout=file, **variables)
    texts = []
    for prompt in ("the café", ""):
        length = len(written())
        session.see("> ")
        session.type(f"{prompt}\n")
        deadline = time.monotonic() + PATIENCE
        while len(written()) < length + 20:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        session.type(CTRL_C)
        session.see("stopped   more: Enter")
        texts.append(written()[length:].removesuffix("\n"))
    session.see("> ")
    session.type("/help\n")
    session.see("/temperature N")
    session.see("> ")
    assert session.leave() == 0

    before, rest = texts
    assert before.startswith("the café") and not set(written()) & {">", "/"}
    given = ("--run", tiny_run, "--max-new-tokens", str(len(rest)), "--seed", "1")
    assert type_("generate", before, *given)[1].startswith(before + rest)


def test_a_text_that_is_stopped_goes_on_after_all_that_was_shown_and_a_second_ctrl_c_acts_at_once(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also if the key is pressed between drawing a token and showing it."""
    writer = minigpt.load(tiny_run)
    settings = {"max_new_tokens": 30, "seed": 1}
    session = Session(Task(writer, settings, [], prompt="", shown=""), width=0)
    presses = iter([0, 0, 1])

    def press_and_write(text: str, end: str = "\n") -> None:
        for _ in range(next(presses, 0)):
            signal.raise_signal(signal.SIGINT)
        write(text, end)

    monkeypatch.setattr("minigpt.cli.terminal.write", press_and_write)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    session.take("the fox")
    shown, said = capsys.readouterr()
    assert "2 tokens" in said and "stopped   more: Enter" in said

    session.take("")
    before = shown.removesuffix("\n")
    rest = capsys.readouterr().out.removesuffix("\n")
    assert before + rest == writer.generate(before, max_new_tokens=30, seed=1)

    presses = iter([0, 2])
    with pytest.raises(KeyboardInterrupt):
        session.take("")


# Line by line


@pytest.fixture
def talk(tiny_run: Path, workplace: Path, type_: Type, monkeypatch: pytest.MonkeyPatch) -> Talk:
    """A session without a terminal, of these lines."""

    def talk(*lines: str | bytes, options: tuple[str, ...] = ()) -> Outcome:
        typed = [line.encode() if isinstance(line, str) else line for line in lines]
        Path("lines").write_bytes(b"".join(line + b"\n" for line in typed))
        with open("lines") as stdin, monkeypatch.context() as patched:
            patched.setattr("sys.stdin", stdin)
            short = ("--max-new-tokens", "9", "--run", str(tiny_run))
            return type_("generate", "--interactive", *short, *options)

    return talk


def seeds(err: str) -> list[int]:
    return [int(line.split("seed ")[1].split()[0]) for line in err.splitlines() if "seed " in line]


def errors(err: str) -> list[str]:
    return [line for line in err.splitlines() if line.startswith("error: ")]


def test_each_line_is_a_prompt_and_is_continued_as_by_generate(
    talk: Talk, type_: Type, tiny_run: Path
) -> None:
    status, out, err = talk("the fox", "", "/temperature 0.3", "a crow")
    assert status == 0 and "> " not in err
    given = ["generate", "--run", tiny_run, "--max-new-tokens", "9"]
    first, second, third = seeds(err)
    one = type_(*given, "the fox", "--seed", str(first))[1].removesuffix("\n")
    more = type_(*given, one, "--seed", str(second))[1].removeprefix(one)
    other = type_(*given, "a crow", "--seed", str(third), "--temperature", "0.3")[1]
    assert out == f"{one}\n{more}{other}"


def test_a_prompt_can_have_several_lines(talk: Talk) -> None:
    assert talk("the fox\\nsaw a")[1].startswith("the fox\nsaw a")
    assert talk(r"//a\nb")[1].startswith("/a\nb")
    assert talk(options=(r"the \nose",))[1].startswith("the \nose")  # as generate takes it


def test_what_ended_a_text_is_said(talk: Talk) -> None:
    stops = ("--stop", "a", "--stop", "e")
    for options, end in (((), "more: Enter"), (stops, "it came to a text that ends it (stop)")):
        err = talk("/temperature 0", "the fox", options=options)[2]
        assert err.splitlines()[-1].endswith(end)


def test_an_empty_line_at_first_lets_the_model_begin(
    talk: Talk, type_: Type, tiny_run: Path
) -> None:
    out = talk("", options=("--seed", "4"))[1]
    assert (
        out == type_("generate", "", "--run", tiny_run, "--max-new-tokens", "9", "--seed", "4")[1]
    )


def test_a_prompt_on_the_command_line_comes_first(talk: Talk) -> None:
    status, out, err = talk("a crow", options=("the fox",))
    assert status == 0 and out.startswith("the fox") and "\na crow" in out and len(seeds(err)) == 2


def test_a_prompt_on_the_command_line_that_is_not_utf_8_is_refused(talk: Talk) -> None:
    assert_refused(talk("the fox", options=("a\udcff",)), "the prompt is not UTF-8")


def test_again_is_the_same_prompt_with_another_seed(talk: Talk) -> None:
    _, out, err = talk("the fox", "", "/again", "/again", options=("--wrap", "0"))
    assert out.count("the fox") >= 3 and len(set(seeds(err))) == 4
    _, out, err = talk("the fox", "/again", "/again", "the fox", options=("--seed", "7"))
    assert seeds(err) == [7, 8, 9, 7]


def test_what_begins_with_two_slashes_is_a_prompt_that_begins_with_one(talk: Talk) -> None:
    status, out, err = talk("//again", "/ again")
    assert status == 0 and out.startswith("/again") and len(seeds(err)) == len(errors(err)) == 1


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/temperature hot", "temperature must be a number, got 'hot'"),
        ("/temperature -1", "temperature must be at least 0 and below 1e3, got -1.0"),
        ("/temperature", "temperature must be a number, got ''"),
        ("/top-p 2", "no command /top-p 2; there are /again, /temperature N, /help"),
        ("/save a.txt", "no command /save a.txt; there are /again, /temperature N, /help"),
        ("/undo", "no command /undo; there are /again, /temperature N, /help"),
        ("/again", "there is nothing yet to write again"),
        ("/help me", "no command /help me; there are /again, /temperature N, /help"),
        (b"caf\xe9", "this line is not UTF-8"),
    ],
)
def test_a_wrong_line_gets_one_line_and_the_session_goes_on(
    talk: Talk, line: str | bytes, words: str
) -> None:
    status, out, err = talk(line, "the fox", options=("--seed", "4"))
    assert status == 0 and out == talk("the fox", options=("--seed", "4"))[1]
    assert len(errors(err)) == 1 and words in errors(err)[0]


def test_the_help_lists_what_can_be_typed(talk: Talk) -> None:
    _, out, err = talk("/help", "/temperature 0.25")
    for typed in ("TEXT", "an empty line", "/again", "/temperature N", "/help"):
        assert f"\n{typed}  " in err
    assert out == "" and err.splitlines()[-1] == "temperature 0.25"


def test_a_script_is_ended_by_ctrl_c(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(*_: object, **__: object) -> Iterator[None]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(minigpt.Writer, "steps", steps)
    status, _, err = talk("the fox", "a crow")
    assert status == 130 and err.endswith("interrupted\n")


def test_a_prompt_that_the_model_cannot_read_changes_nothing(talk: Talk, type_: Type) -> None:
    _, out, err = talk("the fox", b"a\xff", "/again", options=("--seed", "4"))
    assert out.count("the fox") == 2 and len(errors(err)) == 1


def test_where_standard_input_is_closed_one_line_says_so(
    tiny_run: Path, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    outcome = type_("generate", "--interactive", "--run", tiny_run)
    assert_refused(outcome, "standard input is closed; --interactive reads its prompts there")
