"""A session: at a real pseudo-terminal, and from lines."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import minigpt
from minigpt import UserError
from minigpt.cli.interactive import Session
from minigpt.config import SampleConfig

from .conftest import Type

ROOT = Path(__file__).parent.parent.parent
PATIENCE = 120  # seconds until a terminal that shows nothing has failed
# A session that opens a terminal comes under its control, so that Ctrl-C is a signal.
AT_TERMINAL = (
    "import os, runpy, sys; os.open(os.ttyname(0), os.O_RDWR); sys.argv = sys.argv[1:]; "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)


class Terminal:
    """A session at a pseudo-terminal, as somebody sees and uses it."""

    def __init__(self, folder: Path, *arguments: str | Path):
        self.keyboard, end = pty.openpty()
        environment = {"PYTHONPATH": str(ROOT), "TERM": "xterm", "NO_COLOR": ""}
        command = [sys.executable, "-c", AT_TERMINAL, ROOT / "generate.py", "--interactive"]
        self.process = subprocess.Popen(
            [*command, *arguments], cwd=folder, env=os.environ | environment,
            stdin=end, stdout=end, stderr=end, start_new_session=True,
        )  # fmt: skip
        os.close(end)
        self.seen = ""

    def type(self, keys: str) -> None:
        os.write(self.keyboard, keys.encode())

    def until(self, pattern: str, *, keys: str = "") -> str:
        """What is shown up to and with the next `pattern`; keys are typed again and again."""
        deadline = time.monotonic() + PATIENCE
        while (found := re.search(pattern, self.seen)) is None:
            self.type(keys)
            rest = deadline - time.monotonic()
            ready, _, _ = select.select([self.keyboard], [], [], min(rest, 1) if keys else rest)
            assert ready or (keys and rest > 0), f"{pattern!r} never came: {self.seen!r}"
            if ready:
                self.seen += os.read(self.keyboard, 1 << 16).decode(errors="replace")
        shown, self.seen = self.seen[: found.end()], self.seen[found.end() :]
        return shown


@pytest.fixture
def terminal(tiny_run: Path, tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path, "--run", tiny_run, "--max-new-tokens", "5")
    yield terminal
    terminal.process.kill()
    os.close(terminal.keyboard)
    terminal.process.wait(PATIENCE)


def test_a_session_at_a_terminal(terminal: Terminal) -> None:
    assert "writing with" in terminal.until("> ")
    terminal.type("the fox\n")
    assert "the fox" in terminal.until(r"\(\d tokens at [\d,]+ a second, seed \d+\)")
    terminal.type("/set temperature 0\n/set max-new-tokens 1000000\n")  # it never ends by itself
    terminal.until("max_new_tokens is now 1000000")
    terminal.type("a crow\n")
    terminal.until(r"a crow(?s:.){500}")  # in the middle of a long text
    terminal.type("\x03")
    terminal.until(r"tokens at [\d,]+ a second(?s:.)*> ")
    # A signal between the showing of the prompt and the waiting for keys acts on the next key.
    terminal.until("Ctrl-D or /quit leaves", keys="\x03")
    terminal.type("/set max-new-tokens 3\n/show\n")
    terminal.until("now shown")
    terminal.type("the\n")
    terminal.until(r"\x1b\[38;5;\d+;48;5;\d+m")
    # Between two prompts the terminal itself would take the control characters.
    terminal.until("seed(?s:.)*> ")
    terminal.type("\x1b[A\x1b[A\n")  # up and up again in the history, to /show
    terminal.until("no longer shown(?s:.)*> ")
    terminal.type("\x04")
    assert terminal.process.wait(PATIENCE) == 0


def test_standard_output_is_for_texts_alone_if_it_is_no_terminal(
    tiny_run: Path, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyboard, end = pty.openpty()
    os.write(keyboard, b"the fox\n/quit\n")
    with os.fdopen(end) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        status, out, err = type_("generate", "--interactive", "the", "--run", tiny_run)
    os.close(keyboard)
    assert status == 0 and out.startswith("the") and "\nthe fox" in out
    assert "> " in err and "> " not in out


# Lines


@pytest.fixture
def session(tiny_run: Path) -> Session:
    return Session(minigpt.load(tiny_run), SampleConfig(max_new_tokens=6, temperature=1.0))


def told(capsys: pytest.CaptureFixture[str], session: Session, line: str) -> tuple[str, str]:
    """Standard output and standard error of a line."""
    assert session.attempt(lambda: session.obey(line))
    out, err = capsys.readouterr()
    return out, err


def test_lines_from_a_pipe_are_a_session_too(
    tiny_run: Path, tmp_path: Path, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "/set temperature 0\n/set max-new-tokens 4\nthe fox\n/more\n\n/nonsense\n"
    (tmp_path / "lines").write_text(lines)
    with (tmp_path / "lines").open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        status, out, err = type_("generate", "--interactive", "--run", tiny_run)
    straight = minigpt.load(tiny_run).generate("the fox", max_new_tokens=8, temperature=0.0)
    assert status == 0 and out.replace("\n", "") == straight.replace("\n", "")
    assert "> " not in out and "there is no command /nonsense; /help" in err


def test_a_setting_holds_for_what_comes_after(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    for line, name, value in (
        ("/set temperature 0.5", "temperature", 0.5),
        ("/set top-k 3", "top_k", 3),
        ("/set top_k", "top_k", None),
        (r'/set stop "the end" \n ###', "stop", ("the end", "\n", "###")),
        ("/set stop", "stop", ()),
        ("/set logit-bias e=-2 a=1", "logit_bias", {"e": -2.0, "a": 1.0}),
        ("/set seed 7", "seed", 7),
    ):
        out, err = told(capsys, session, line)
        assert out == "" and err.startswith(f"{name} is now")
        assert getattr(session.config, name) == value
    assert told(capsys, session, "the")[0] == told(capsys, session, "the")[0]
    assert told(capsys, session, "/again")[0] != ""
    assert re.search(r"temperature +0\.5 ", told(capsys, session, "/settings")[1])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/set temperature -1", "temperature must be at least 0"),
        ("/set temperature hot", "'hot'"),
        ("/set temperature 1 2", "temperature takes one value"),
        ("/set temprature 1", "no setting 'temprature'; there are: max_new_tokens"),
        ("/set", "there are: max_new_tokens"),
        ("/set stop don't", "put quotes around"),
        ("/save", "/save FILE"),
        ("/save nowhere.txt", "there is no text yet"),
        ("/frobnicate", "no command /frobnicate; /help"),
        ("/", "no command /;"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    session: Session, capsys: pytest.CaptureFixture[str], line: str, words: str
) -> None:
    before = session.config
    out, err = told(capsys, session, line)
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("error: ") and words in err
    assert session.config == before


def test_a_prompt_that_cannot_be_encoded_leaves_the_last_text_alone(
    session: Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told(capsys, session, "the")
    before = (session.prompt, session.text)

    def refuse(text: str) -> list[int]:
        raise UserError("no such character")

    monkeypatch.setattr(session.writer.tokenizer, "encode", refuse)
    assert told(capsys, session, "€") == ("", "error: no such character\n")
    assert (session.prompt, session.text) == before


def test_more_goes_on_and_again_begins_anew(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    first = told(capsys, session, "the fox")[0].removesuffix("\n")
    assert session.text == first
    more = told(capsys, session, "/more")[0].removesuffix("\n")
    assert session.text == first + more and more
    texts = {told(capsys, session, "/again")[0] for _ in range(5)}
    assert len(texts) > 1 and all(text.startswith("the fox") for text in texts)


def test_ctrl_c_keeps_what_was_written(
    session: Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = minigpt.Writer.steps

    def cut(*arguments: object, **settings: object) -> Iterator[object]:
        for i, step in enumerate(steps(*arguments, **settings)):  # type: ignore[arg-type]
            if i == 4:
                raise KeyboardInterrupt
            yield step

    monkeypatch.setattr(minigpt.Writer, "steps", cut)
    out, err = told(capsys, session, "the")
    assert out == session.text + "\n" and "(4 tokens" in err


def test_texts_are_added_to_a_file(
    session: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "my texts.txt"
    told(capsys, session, "the")
    first = session.text
    assert "added to" in told(capsys, session, f"/save {file}")[1]
    told(capsys, session, "a")
    told(capsys, session, f"/save {file}")
    assert file.read_bytes().decode() == f"{first}\n{session.text}\n"  # a \r as it is
    assert "cannot write" in told(capsys, session, f"/save {tmp_path}/no/file.txt")[1]


def test_help_lists_every_command(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    names = re.findall(r"^  /(\w+)", told(capsys, session, "/help")[1], re.MULTILINE)
    assert names == "more again set settings show save help quit".split()
    assert not session.attempt(lambda: session.obey("/quit"))
