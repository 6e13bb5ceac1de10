"""What README and docs show works: Python runs as it stands, options are known, files exist."""

import os
import re
import shlex
from pathlib import Path

import pytest

from minigpt.cli import parse

ROOT = Path(__file__).parent.parent
README, COMPONENTS = ((ROOT / name).read_text() for name in ("README.md", "docs/components.md"))
PYTHON, PARTS = (re.findall(r"```python\n(.*?)```", text, re.S) for text in (README, COMPONENTS))
SHELL = re.findall(r"^    (python (?:train|generate)\.py|minigpt)( .*?)?\s*(?:#.*)?$", README, re.M)


@pytest.mark.parametrize("code", PYTHON)
def test_the_examples_run(code: str, workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.symlink(ROOT / "data", workplace / "data")
    exec(code.replace("minutes=0.2", "steps=3, num_evals=1"), {})
    if "writer" in code:
        assert "Once upon a time" in capsys.readouterr().out


@pytest.mark.parametrize("code", PARTS)
def test_the_examples_of_parts_run_and_their_assertions_hold(code: str, workplace: Path) -> None:
    exec(code, {"__name__": "example"})


@pytest.mark.parametrize(("program", "words"), SHELL)
def test_the_options_of_the_commands_are_known(program: str, words: str) -> None:
    command = re.findall(r"(train|generate)\.py", program)
    parse([*command, *shlex.split(words)], None)


def test_the_examples_were_found() -> None:
    assert len(PYTHON) == 3 and len(SHELL) >= 12
    assert len(PARTS) >= 4 and all("assert" in code for code in PARTS)
