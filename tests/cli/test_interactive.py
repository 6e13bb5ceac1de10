"""`generate --interactive`: what the keys of a terminal do, and what each line does, also without
one."""

import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import minigpt
from minigpt.config import SampleConfig

from .conftest import Outcome, Type, assert_refused

CTRL_C = "\x03"
CTRL_D = "\x04"
ARROW_UP = "\x1b[A"
PATIENCE = 10  # seconds
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
            if not self._reads(1.0):
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


def test_ctrl_c_stops_a_text_and_an_empty_line_goes_on_with_it(
    terminal: Callable[..., Terminal],
) -> None:
    session = terminal("--max-new-tokens", "100000000", "--wrap", "0")
    session.see("> ")
    session.type("the fox\n")
    for words in ("the fox", "the fox", "a"):  # as typed, as written, and what follows
        session.see(words)
    assert "stopped   more: Enter" in session.interrupt()

    session.type("/max-new-tokens 3\n")
    session.see("> ")
    session.type("/save before.txt\n")
    session.see("> ")
    session.type("\n")
    more = session.see("\n3 tokens at ").removesuffix("\n3 tokens at ").removeprefix("\n")
    session.see("> ")
    session.type("/save after.txt\n")
    session.see("> ")
    assert session.leave() == 0

    before = Path("before.txt").read_text().removesuffix("\n")
    assert before.startswith("the fox") and len(before) > len("the fox")
    assert Path("after.txt").read_text() == f"{before}{more}\n"


def test_ctrl_c_clears_a_line_that_is_being_typed_and_the_arrow_brings_back_the_last(
    terminal: Callable[..., Terminal],
) -> None:
    session = terminal("--max-new-tokens", "2")
    session.see("> ")
    session.type("zebra")
    session.see("zebra")
    session.interrupt()
    for keys in ("the fox\n", f"{ARROW_UP}\n"):
        session.type(keys)
        seen = session.see("tokens at")
        assert seen.count("the fox") == 2 and "zebra" not in seen  # as typed, and as written
        session.see("> ")
    assert session.leave() == 0


def test_a_file_of_texts_holds_nothing_else(
    terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    session = terminal("--max-new-tokens", "2", "--seed", "1", stdout=tmp_path / "texts.txt")
    session.see("> ")
    session.type("the fox\n")
    session.see("> ")
    session.type("/help\n")
    session.see("/seed 1")
    session.see("> ")
    assert session.leave() == 0
    text = (tmp_path / "texts.txt").read_text()
    assert text.startswith("the fox") and ">" not in text and "/" not in text


def test_a_line_is_read_as_utf_8_whatever_the_language_of_the_system(
    terminal: Callable[..., Terminal],
) -> None:
    session = terminal("--max-new-tokens", "2", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    for line in ("café\n", "/save text.txt\n"):
        session.see("> ")
        session.type(line)
    session.see("> ")
    assert session.leave() == 0
    assert Path("text.txt").read_text(encoding="utf-8").startswith("café")


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
    status, out, err = talk("the fox", "", "/temperature 0.3", "/seed 4", "a crow")
    assert status == 0 and "> " not in err
    given = ["generate", "--run", tiny_run, "--max-new-tokens", "9"]
    first, second = seeds(err)[:2]
    one = type_(*given, "the fox", "--seed", str(first))[1].removesuffix("\n")
    more = type_(*given, one, "--seed", str(second))[1].removeprefix(one)
    other = type_(*given, "a crow", "--seed", "4", "--temperature", "0.3")[1]
    assert out == f"{one}\n{more}{other}"


def test_a_prompt_can_have_several_lines(talk: Talk) -> None:
    assert talk("the fox\\nsaw a")[1].startswith("the fox\nsaw a")
    assert talk(r"//a\nb")[1].startswith("/a\nb")
    assert talk(options=(r"the \nose",))[1].startswith(r"the \nose")  # as generate takes it


def test_what_ended_a_text_is_said(talk: Talk) -> None:
    err = talk("/temperature 0", "the fox", "/stop a", "/stop e", "the fox")[2].splitlines()
    ends = [line for line in err if "seed " in line]
    assert ends[0].endswith("more: Enter")
    assert ends[1].endswith("it came to a text that ends it (stop)")


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
    status, out, err = talk("the fox", options=("a\udcff",))
    assert status == 0 and out.startswith("the fox") and len(errors(err)) == 1


def test_again_is_the_same_prompt_with_another_seed(talk: Talk) -> None:
    _, out, err = talk("the fox", "", "/again", "/again", options=("--wrap", "0"))
    assert out.count("the fox") >= 3 and len(set(seeds(err))) == 4
    _, out, err = talk("/seed 7", "the fox", "/again", "/again", "the fox")
    assert seeds(err) == [7, 7, 8, 9, 7]  # the first is the setting


def test_what_begins_with_two_slashes_is_a_prompt_that_begins_with_one(talk: Talk) -> None:
    status, out, err = talk("//again", "/ again")
    assert status == 0 and out.startswith("/again") and len(seeds(err)) == 1
    assert "type // for a prompt with a /" in errors(err)[0]


def test_a_text_is_saved_whole_and_never_over_another_file(talk: Talk) -> None:
    Path("poem.txt").write_text("mine")
    lines = (
        "/save a.txt",
        "the fox",
        "",
        "/save poem.txt",
        "/save",
        "/save no/a.txt",
        "/save ~nobody-here/a.txt",
        "/save a\0.txt",
        "/save b.txt",
    )
    _, out, err = talk(*lines, options=("--seed", "4"))
    refused = [error.split(": ", 1)[1] for error in errors(err)]
    nobodys = refused.pop(4)  # Windows names a folder for anybody
    assert nobodys.endswith("nobody-here/a.txt: No such file or directory")
    assert refused == [
        "there is no text yet; type a prompt",
        "poem.txt is there already; choose another name",
        "name a file, as in /save story.txt",
        "cannot write no/a.txt: No such file or directory",
        "cannot write a\0.txt: its name holds a NUL",
    ]
    assert Path("poem.txt").read_text() == "mine" and not Path("a.txt").exists()
    first, rest = Path("b.txt").read_text()[: len("the fox")], Path("b.txt").read_text()
    assert first == "the fox" and len(rest) == len(out) - 1  # the line end between its two parts


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/temperature hot", "temperature must be a number, got 'hot'"),
        ("/temperature -1", "temperature must be at least 0 and below 1e3, got -1.0"),
        ("/max-new-tokens 2.5", "max_new_tokens must be a whole number, got '2.5'"),
        ("/top-p 2", "top_p must be above 0 and at most 1, got 2.0"),
        ("/whole-sentences maybe", "whole_sentences must be on or off, got 'maybe'"),
        ("/samples 3", "no command /samples (/help lists them)"),
        ("/agian", "no command /agian (did you mean /again?)"),
        ("/temprature 1", "did you mean /temperature?"),
        ("/again", "there is no prompt yet; type one"),
        ("/help me", "/help takes no value, got me"),
        (b"caf\xe9", "this line is not UTF-8"),
    ],
)
def test_a_wrong_line_gets_one_line_and_the_session_goes_on(
    talk: Talk, line: str | bytes, words: str
) -> None:
    status, out, err = talk(line, "the fox", options=("--seed", "4"))
    assert status == 0 and out == talk("the fox", options=("--seed", "4"))[1]
    assert len(errors(err)) == 1 and words in errors(err)[0]


def test_a_setting_is_shown_changed_and_set_back(talk: Talk) -> None:
    lines = ["/top-k", "/top-k 4", "/top-k", "/top-k off", "/stop a", r"/stop b\n", "/stop off"]
    lines += ["/whole-sentences on", "/whole-sentences off", "/temperature 0.25"]
    err = talk(*lines)[2]
    assert err.splitlines()[1:] == [
        "/top-k off", "/top-k 4", "/top-k 4", "/top-k off", "/stop a", r"/stop a b\n", "/stop off",
        "/whole-sentences on", "/whole-sentences off", "/temperature 0.25",
    ]  # fmt: skip


def test_the_help_lists_every_setting_of_a_text_with_its_value(talk: Talk) -> None:
    err = talk("/temperature 0.25", "/help")[2]
    for field in fields(SampleConfig):
        option = f"/{field.name.replace('_', '-')} "
        assert (option in err) == (field.name != "samples"), option
    assert "/temperature 0.25  " in err and "/quit" in err


def test_what_follows_quit_is_not_read(talk: Talk) -> None:
    status, out, _ = talk("/quit", "the fox")
    assert (status, out) == (0, "")


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
