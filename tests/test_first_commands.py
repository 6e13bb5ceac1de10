"""The commands as a new user types them, in processes of their own: nothing is patched, and every
attempt to reach another machine is noted and refused."""

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .conftest import some_text
from .patience import PATIENCE
from .studio.person import Person

ROOT = Path(__file__).parent.parent
MINIGPT = [sys.executable, "-m", "minigpt"]
ONE_AFTER_THE_OTHER = """
import sys
from minigpt.cli import main

for command in sys.argv[1:]:
    print(f"$ {command}", file=sys.stderr, flush=True)
    status = main(command.split())
    sys.stdout.flush()
    assert status == 0
"""
REFUSING = '''
"""Python reads this file at the start of each process, also of those that a command starts."""
import os
import sys

THIS_MACHINE = ("localhost", "127.0.0.1", "::1", "")


def refuse(event, arguments):
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event in ("socket.connect", "socket.sendto") and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    if (host or "") not in THIS_MACHINE:
        with open(os.environ["NOTED_CONNECTIONS"], "a") as file:
            file.write(f"{event} {host}\\n")
        raise PermissionError("there is no network")


sys.addaudithook(refuse)
'''


class Beginner:
    """Somebody with a text in an empty folder, and with an empty home."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.text = folder / "my.txt"
        self.text.write_text(some_text(3000))
        self.before = self._of_the_text()
        self.connections = folder / "connections"

        (folder / "home").mkdir()
        (folder / "python").mkdir()
        (folder / "python/sitecustomize.py").write_text(REFUSING)
        self.environment = os.environ | {
            "HOME": str(folder / "home"),
            "USERPROFILE": str(folder / "home"),
            "PYTHONPATH": os.pathsep.join([str(folder / "python"), str(ROOT)]),
            "NOTED_CONNECTIONS": str(self.connections),
        }
        self.environment.pop("MINIGPT_CACHE", None)

    def type(self, *words: str) -> str:
        """What a command prints, which must succeed."""
        return self._run(*MINIGPT, *words)

    def type_all(self, *commands: str) -> str:
        """The same of several commands, one after the other in one process."""
        return self._run(sys.executable, "-c", ONE_AFTER_THE_OTHER, *commands)

    def _run(self, *command: str) -> str:
        typed = subprocess.run(
            command,
            check=False,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
        )
        assert typed.returncode == 0, typed.stdout
        self.check()
        return typed.stdout

    @contextmanager
    def open(self, *words: str) -> Iterator[str]:
        """A command that goes on, by what it says first; it is ended afterwards."""
        opened = subprocess.Popen(
            [*MINIGPT, *words],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert opened.stdout is not None
        try:
            yield opened.stdout.readline()
        finally:
            opened.terminate()
            opened.communicate(timeout=PATIENCE)
        self.check()

    def check(self) -> None:
        """The text is as it was, and nobody has tried to reach another machine."""
        assert self._of_the_text() == self.before
        assert not self.connections.exists(), self.connections.read_text()

    def _of_the_text(self) -> tuple[bytes, int, int]:
        status = self.text.stat()
        return self.text.read_bytes(), status.st_mtime_ns, status.st_mode


@pytest.fixture
def beginner(tmp_path: Path) -> Beginner:
    return Beginner(tmp_path)


@pytest.mark.long
def test_the_first_training_measures_trains_draws_and_counts_and_can_be_deleted(
    beginner: Beginner,
) -> None:
    said = beginner.type("train", "my.txt", "--minutes", "0.05")
    for words in (
        "  text       my.txt, ",
        "  begins     ",
        "  model      qwen3, ",
        "  training   3 seconds on cpu with ",
        ", done about ",
        "  run        runs/my (Ctrl-C saves and stops",
        "the 3 seconds are over",
        "counting which token follows which four gives ",
    ):
        assert words in said
    first_screen, _, _ = said.partition("\nstep ")
    assert first_screen.count("\n") <= 6  # and the command itself
    run = beginner.folder / "runs/my"
    assert (run / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((run / "plan.json").read_text())["speed"]["flops"] > 0

    assert "deleted: runs/my" in beginner.type("runs", "--delete", "my", "--yes")
    assert list((beginner.folder / "runs").iterdir()) == []
    left = [path for path in (beginner.folder / "home").rglob("*") if path.is_file()]
    assert [path for path in left if path.suffix != ".lock" and "matplotlib" not in str(path)] == []


@pytest.mark.long
def test_no_command_changes_the_text_or_reaches_another_machine(beginner: Beginner) -> None:
    shutil.copy(ROOT / "data/fables.txt", beginner.folder / "fables.txt")
    said = beginner.type_all(
        "train my.txt --steps 3 --emb-dim 32 --num-layers 1",
        "generate the --max-new-tokens 5",
        "evaluate my my.txt",
        "evaluate my --copied",
        "compare my base my.txt",
        "compare my counting",
        "explain my the-old-mill",
        "page my",
        "export my --to hf",
        "export my --to gguf",
        "read my.txt",
        "read --summary my.txt",
        "runs",
        "train --resume --steps 4",
        "train fables.txt --max-characters 30000 --plan",
    )
    # A short English text is planned to begin with the base.
    planned = said.rpartition("$ train")[2]
    assert "begins with the base, which has read 214 MB of English: " in planned
    assert "bits/byte on this text before the first step and about " in planned

    with beginner.open("serve", "my", "--port", "0") as line:
        address = line.split()[-1]
        asked = urllib.request.Request(
            f"{address}/v1/completions",
            json.dumps({"prompt": "the", "max_tokens": 5}).encode(),
            {"content-type": "application/json"},
        )
        with urllib.request.urlopen(asked) as answer:
            assert json.load(answer)["choices"][0]["text"]

    with beginner.open("studio", "--port", "0", "--no-browser") as line:
        address, _, token = line.split()[-1].partition("#")
        person = Person(int(address.rstrip("/").rpartition(":")[2]))
        person.enter(token)
        assert "my" in json.dumps(person.get("/api/state"))
        said = person.post("/api/runs/my/write", {"prompt": "the"})
        assert said


@pytest.mark.long
def test_the_demo_prints_a_scene(tmp_path: Path) -> None:
    """In a folder of its own, where all files of the repository are but not its runs."""
    for path in ROOT.iterdir():
        if path.name != "runs":
            (tmp_path / path.name).symlink_to(path)
    made = subprocess.run(
        ["make", "--assume-old=.venv/ready", "demo", "MINUTES=0.05"],
        check=False,
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if "MAKE" not in name},
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    of_the_base, after_training = made.stdout.split("runs/plays: validation ")
    opening = "TORELLO.\nI love you, lady.\n\nVERIDIANA.\nProve it, sir.\n\nTORELLO."
    assert of_the_base.startswith(opening) and len(of_the_base.split()) > 30
    scene = after_training.partition("Three things to try next")[0].partition(opening)[2]
    assert len(scene.split()) > 30  # of a model that has hardly learned
