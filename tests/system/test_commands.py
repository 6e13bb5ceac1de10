"""Messages name a command as the user called the one that prints them."""

import subprocess
import sys
from pathlib import Path

import pytest

from minigpt.system.commands import command, started_as

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("started", "train", "page"),
    [
        ("/usr/bin/minigpt", "minigpt train", "minigpt page"),
        ("C:/Scripts/minigpt.exe", "minigpt train", "minigpt page"),
        ("lib/minigpt/__main__.py", "python -m minigpt train", "python -m minigpt page"),
        ("train.py", "python train.py", "minigpt page"),
        ("../generate.py", "python train.py", "minigpt page"),
        ("my_script.py", "minigpt train", "minigpt page"),
        ("lib/pytest/__main__.py", "minigpt train", "minigpt page"),
    ],
)
def test_a_command_is_named_as_this_one_was_called(
    started: str, train: str, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [started])
    assert (command("train"), command("page")) == (train, page)


def test_a_program_of_somebodys_own_is_none_of_the_commands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.argv", ["lib/pytest/__main__.py"])
    assert started_as() is None


def test_a_command_can_be_copied_where_the_environment_is_not_activated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = tmp_path / ".venv/bin", tmp_path / "bin"
    for folder in (own, other):
        folder.mkdir(parents=True)
        for name in ("python", "minigpt"):
            (folder / name).touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(own / "python"))
    monkeypatch.setattr(sys, "argv", ["train.py"])

    for path, cwd, expected in (
        (other, tmp_path, ".venv/bin/"),
        (other, other, f"{own}/"),
        (own, tmp_path, ""),
    ):
        monkeypatch.setenv("PATH", str(path))
        monkeypatch.chdir(cwd)
        assert command("generate") == f"{expected}python generate.py"
        assert command("page") == f"{expected}minigpt page"


def typed(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "minigpt", *words]
    environment = {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, check=False, env=environment, capture_output=True, text=True)


def test_the_package_is_a_program_too_and_its_help_says_how_it_was_called() -> None:
    helped = typed("--help")
    assert helped.returncode == 0 and helped.stdout.startswith("usage: python -m minigpt [-h]")
    assert typed("page", "--help").stdout.startswith("usage: python -m minigpt page [-h]")

    refused = typed("page", "--opne")
    assert refused.returncode == 2 and "did you mean --open?" in refused.stderr
