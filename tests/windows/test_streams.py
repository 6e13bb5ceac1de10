"""Any text, and any name, reaches files, pipes and terminals whatever the system's encoding is."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from minigpt.cli.terminal import prepare_streams, print_message, write
from minigpt.training.messages import print_result

from ..conftest import TINY

pytestmark = pytest.mark.systems

ROOT = Path(__file__).parents[2]
TEXT = "Жил-был старик, и у него была кошка. Кошка сидела у печки и мурлыкала «мур».\n" * 30
OPTIONS = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]
COMMANDS = [
    ["read", "книга.txt"],
    ["train", "книга.txt", *OPTIONS],
    ["generate", "Кошка", "--run", "книга", "--max-new-tokens", "5"],
    ["generate", "Кошка", "--run", "книга", "--max-new-tokens", "5", "--json"],
    ["generate", "--interactive", "--run", "книга", "--max-new-tokens", "5"],
    ["explain", "книга", "Кошка сидела"],
    ["evaluate", "книга", "книга.txt", "--copied"],
    ["page", "книга"],
    ["export", "книга"],
    ["runs"],
    ["runs", "--delete", "книга", "--yes"],
]
# All in one process, as on a system with cp1252; what this package opens without naming an encoding
# is an error.
SESSION = """
import json, sys, warnings
from minigpt.cli import main
warnings.filterwarnings("error", category=EncodingWarning, module=r"minigpt\\.")
for command in json.loads(sys.argv[1]):
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        stream.reconfigure(encoding="cp1252", errors="strict")
    sys.stdout.buffer.write(f"[{command[0]}]\\n".encode())
    status = main(command)
    assert status == 0, command
"""


def test_pipes_get_utf_8_from_every_command(tmp_path: Path) -> None:
    (tmp_path / "книга.txt").write_text(TEXT, encoding="utf-8")
    environment = os.environ | {"MINIGPT_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONIOENCODING", None)
    done = subprocess.run(
        [sys.executable, "-X", "warn_default_encoding", "-c", SESSION, json.dumps(COMMANDS)],
        check=False,
        cwd=tmp_path,
        env=environment,
        input="Кошка\n".encode(),
        capture_output=True,
    )
    out, err = done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
    assert done.returncode == 0, err

    parts = re.split(r"^\[(\w+)\]\n", out, flags=re.M)
    of_commands = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert "мурлыкала «мур»" in of_commands["read"] and "runs/книга" in out
    assert "Кошка" in of_commands["generate"] and "сиде" in of_commands["explain"]
    assert "книга.txt" in err and "??" not in out + err


class Terminal(io.TextIOWrapper):
    """A terminal with an encoding of its own."""

    def __init__(self, encoding: str):
        self.shown = io.BytesIO()
        super().__init__(self.shown, encoding=encoding, errors="strict", write_through=True)

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise OSError("not one of the system")


@pytest.mark.parametrize("encoding", ["cp1252", "cp437", "ascii"])
def test_a_terminal_shows_a_mark_for_what_it_does_not_know(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = Terminal(encoding)
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.delenv("PYTHONIOENCODING", raising=False)
    prepare_streams()
    write("a Ж b")
    assert out.encoding == encoding and out.shown.getvalue() == b"a ? b\n"


@pytest.mark.parametrize(
    ("chosen", "shown"),
    [(None, "Ж é".encode()), ("latin1", b"? \xe9"), ("ascii:xmlcharrefreplace", b"&#1046; &#233;")],
)
def test_a_file_gets_utf_8_or_what_the_user_asks_for(
    chosen: str | None, shown: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoding, _, errors = (chosen or "cp1252").partition(":")  # as Python opens it
    content = io.BytesIO()
    file = io.TextIOWrapper(content, encoding=encoding, errors=errors or "strict")
    monkeypatch.setattr("sys.stdout", file)
    if chosen is None:
        monkeypatch.delenv("PYTHONIOENCODING", raising=False)
    else:
        monkeypatch.setenv("PYTHONIOENCODING", chosen)
    prepare_streams()
    write("Ж é", end="")
    assert content.getvalue() == shown


def test_a_training_of_somebodys_own_program_ends_well_where_its_result_cannot_be_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(content, encoding="cp1252"))
    print_result("runs/книга: 2 bits/byte")
    assert content.getvalue() == b"runs/?????: 2 bits/byte\n"


def test_streams_that_are_closed_or_a_programs_own_stay_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = io.StringIO()
    closed = io.TextIOWrapper(io.BytesIO())
    closed.close()
    monkeypatch.setattr("sys.stdout", own)
    monkeypatch.setattr("sys.stdin", closed)
    monkeypatch.setattr("sys.stderr", None)
    prepare_streams()
    write("Ж", end="")
    print_message("nobody reads this")
    assert own.getvalue() == "Ж" and sys.stderr is not None
    sys.stderr.close()
