"""Where a prompt comes from: an argument, standard input."""

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from minigpt import UserError
from minigpt.cli.generate import read_prompt


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.FileIO]:
    """What is written here can be read from standard input."""
    end, start = os.pipe()
    with open(end) as stdin, open(start, "wb", buffering=0) as pipe:
        monkeypatch.setattr("sys.stdin", stdin)
        yield pipe


@pytest.mark.parametrize("given", ["-", None])
def test_what_is_piped_in_is_the_prompt(pipe: io.FileIO, given: str | None) -> None:
    pipe.write("Il était\nune fois\n".encode())
    pipe.close()
    assert read_prompt(given) == "Il était\nune fois"


def test_a_pipe_is_waited_for_however_long_it_takes(
    pipe: io.FileIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is in the pipe when it is looked at; the text comes while it is read."""
    end = sys.stdin.fileno()

    class Slow(io.BytesIO):
        buffer = property(lambda self: self)

        def fileno(self) -> int:
            return end

    monkeypatch.setattr("sys.stdin", Slow(b"Once"))
    assert read_prompt(None) == "Once"


@pytest.mark.parametrize(
    ("content", "prompt"),
    [
        (b"Once\n", "Once"),
        (b"Once\r\n", "Once"),
        (b"Once\r\nupon\r\n\r\na time\r", "Once\nupon\n\na time"),
        (b"Once", "Once"),
        (b"Once \n\n", "Once \n"),
        (b"\xef\xbb\xbfOnce\n", "Once"),
        (b"\n", ""),
        (b"", ""),
    ],
)
def test_line_ends_become_new_lines_and_one_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, prompt: str
) -> None:
    file = tmp_path / "prompt.txt"
    file.write_bytes(content)
    with file.open() as redirected:
        monkeypatch.setattr("sys.stdin", redirected)
        assert read_prompt(None) == prompt


def test_a_given_prompt_is_taken_as_it_is_and_the_pipe_left_alone(pipe: io.FileIO) -> None:
    """The pipe is never closed: reading it would not end."""
    assert read_prompt("Once\n") == "Once\n"
    assert read_prompt("") == ""


def test_where_nothing_is_piped_in_the_text_begins_from_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", None)  # as Python has it where it is closed
    assert read_prompt(None) == ""
    with pytest.raises(UserError, match="standard input is closed"):
        read_prompt("-")
    with open(os.devnull) as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        assert read_prompt(None) == ""
        assert read_prompt("-") == ""


def test_at_a_terminal_only_a_dash_waits_for_typing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pty = pytest.importorskip("pty", reason="Windows has other terminals")
    keyboard, terminal = pty.openpty()
    with os.fdopen(terminal) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert read_prompt(None) == ""
        os.write(keyboard, b"Once\n\x04")
        assert read_prompt("-") == "Once"
    os.close(keyboard)
    assert "Ctrl-D" in capsys.readouterr().err


def test_a_prompt_that_is_not_utf_8_is_refused(pipe: io.FileIO) -> None:
    pipe.write(b"caf\xe9")
    pipe.close()
    with pytest.raises(UserError, match=r"prompt is not UTF-8 \(offset 3\)"):
        read_prompt(None)
