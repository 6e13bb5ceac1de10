"""What the README shows works: its Python runs as it stands, its options and files exist."""

import os
import re
import shlex
from pathlib import Path

import pytest

from minigpt.cli import main as cli

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
SHELL = re.findall(
    r"^    (python (?:train|generate)\.py .*?|python train\.py|minigpt \w+ .*?)\s*(?:#.*)?$",
    README,
    re.M,
)


@pytest.mark.parametrize("code", PYTHON)
def test_the_examples_run(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINIGPT_CACHE", str(tmp_path / "cache"))
    os.symlink(ROOT / "data", tmp_path / "data")
    exec(code.replace("minutes=0.2", "steps=3, num_evals=1"), {})
    if "writer" in code:
        assert "Once upon a time" in capsys.readouterr().out


@pytest.mark.parametrize("command", SHELL)
def test_the_commands_parse(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every option is known and takes the value shown; nothing is run."""
    monkeypatch.setattr(cli, "_guarded", lambda run: 0)
    program, script, *arguments = shlex.split(command)
    if program == "minigpt":
        assert cli.main([script, *arguments]) == 0
        return
    main = {"train.py": cli.train_main, "generate.py": cli.generate_main}[script]
    assert main(arguments) == 0


def test_the_examples_were_found() -> None:
    assert len(PYTHON) == 3 and len(SHELL) >= 12


def test_the_layout_names_files_that_exist() -> None:
    layout = README.split("## How the code is laid out")[1]
    first_cells = re.findall(r"^\| (.*?) \|", layout, re.MULTILINE)
    names = [name for cell in first_cells for name in re.findall(r"`([^`]+)`", cell)]
    assert len(names) > 10
    for name in names:
        assert (ROOT / name).exists() or (ROOT / "minigpt" / name).exists(), name
