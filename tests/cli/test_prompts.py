"""Where a prompt comes from: an argument, a file, standard input; nothing is waited for in vain."""

import os
import pty
from collections.abc import Iterator
from pathlib import Path

import pytest

from minigpt import UserError
from minigpt.cli import prompts
from minigpt.cli.prompts import read_prompt


class Pipe:
    """Takes the place of standard input."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.end, self._in = os.pipe()
        monkeypatch.setattr("sys.stdin", os.fdopen(self.end, closefd=False))

    def put(self, content: bytes) -> None:
        os.write(self._in, content)
        self.close()

    def close(self) -> None:
        if self._in >= 0:
            os.close(self._in)
            self._in = -1


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pipe]:
    pipe = Pipe(monkeypatch)
    yield pipe
    pipe.close()
    os.close(pipe.end)


@pytest.mark.parametrize("given", ["-", None])
def test_what_is_piped_in_is_the_prompt(pipe: Pipe, given: str | None) -> None:
    pipe.put("Il était\nune fois\n".encode())
    assert read_prompt(given, None) == "Il était\nune fois"


@pytest.mark.parametrize(
    ("content", "prompt"),
    [
        (b"Once\n", "Once"),
        (b"Once\r\n", "Once"),
        (b"Once", "Once"),
        (b"Once \n\n", "Once \n"),
        (b"\xef\xbb\xbfOnce\n", "Once"),
        (b"\n", ""),
        (b"", ""),
    ],
)
def test_one_line_end_is_dropped(tmp_path: Path, content: bytes, prompt: str) -> None:
    (tmp_path / "prompt.txt").write_bytes(content)
    assert read_prompt(None, str(tmp_path / "prompt.txt")) == prompt


def test_an_argument_is_taken_as_it_is_and_nothing_else_is_read(pipe: Pipe) -> None:
    assert read_prompt("Once\n", None) == "Once\n"
    assert read_prompt("", None) == ""
    pipe.put(b"more")
    assert os.read(pipe.end, 9) == b"more"


def test_with_nothing_to_read_a_text_begins_from_nothing(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompts, "_PATIENCE", 0.01)
    assert read_prompt(None, None) == ""  # a pipe that is open, and in which nothing moves
    pipe.close()
    assert read_prompt(None, None) == ""
    for given in ("-", None):
        with open(os.devnull) as nothing:
            monkeypatch.setattr("sys.stdin", nothing)
            assert read_prompt(given, None) == ""
        monkeypatch.setattr("sys.stdin", None)  # as Python has it where it is closed
        assert read_prompt(given, None) == ""


def test_at_a_terminal_only_a_dash_waits_for_typing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keyboard, terminal = pty.openpty()
    monkeypatch.setattr("sys.stdin", os.fdopen(terminal))
    assert read_prompt(None, None) == ""
    os.write(keyboard, b"Once\n\x04")
    assert read_prompt("-", None) == "Once"
    out, err = capsys.readouterr()
    assert out == "" and "Ctrl-D" in err
    os.close(keyboard)


def test_what_cannot_be_used_is_said(tmp_path: Path, pipe: Pipe) -> None:
    (tmp_path / "latin1.txt").write_bytes(b"caf\xe9")
    for given, file, words in (
        ("Once", "prompt.txt", "given twice"),
        ("-", "prompt.txt", "given twice"),
        (None, "nowhere.txt", "cannot read nowhere.txt: No such file"),
        (None, str(tmp_path), "Is a directory"),
        (None, str(tmp_path / "latin1.txt"), r"latin1.txt is not UTF-8 \(offset 3\)"),
    ):
        with pytest.raises(UserError, match=words):
            read_prompt(given, file)
    with pytest.raises(UserError, match="for the session"):
        read_prompt("-", None, stdin=False)
    pipe.put(b"\xff")
    with pytest.raises(UserError, match="standard input is not UTF-8"):
        read_prompt(None, None)
