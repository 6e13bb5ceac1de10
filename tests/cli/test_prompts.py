"""Where a prompt comes from: an argument, a file, standard input."""

import io
import os
import pty
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from minigpt import UserError
from minigpt.cli.prompts import read_prompt


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
    assert read_prompt(given, None) == "Il était\nune fois"


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
    assert read_prompt(None, None) == "Once"


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
def test_one_line_end_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, prompt: str
) -> None:
    file = tmp_path / "prompt.txt"
    file.write_bytes(content)
    assert read_prompt(None, str(file)) == prompt
    with file.open() as redirected:
        monkeypatch.setattr("sys.stdin", redirected)
        assert read_prompt(None, None) == prompt


def test_a_given_prompt_is_taken_as_it_is_and_the_pipe_left_alone(
    pipe: io.FileIO, tmp_path: Path
) -> None:
    """The pipe is never closed: reading it would not end."""
    (tmp_path / "prompt.txt").write_text("from a file")
    assert read_prompt("Once\n", None) == "Once\n"
    assert read_prompt("", None) == ""
    assert read_prompt(None, str(tmp_path / "prompt.txt")) == "from a file"


def test_where_nothing_is_piped_in_the_text_begins_from_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", None)  # as Python has it where it is closed
    assert read_prompt(None, None) == ""
    with pytest.raises(UserError, match="standard input is closed"):
        read_prompt("-", None)
    with open(os.devnull) as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        assert read_prompt(None, None) == ""
        assert read_prompt("-", None) == ""


def test_at_a_terminal_only_a_dash_waits_for_typing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keyboard, terminal = pty.openpty()
    with os.fdopen(terminal) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert read_prompt(None, None) == ""
        os.write(keyboard, b"Once\n\x04")
        assert read_prompt("-", None) == "Once"
    os.close(keyboard)
    assert "Ctrl-D" in capsys.readouterr().err


def test_what_cannot_be_read_is_said(tmp_path: Path, pipe: io.FileIO) -> None:
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
    pipe.write(b"\xff")
    pipe.close()
    with pytest.raises(UserError, match="standard input is not UTF-8"):
        read_prompt(None, None)
