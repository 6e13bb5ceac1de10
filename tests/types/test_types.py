"""What type checkers see of the package in a user's script: its mistakes, and nothing else."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RIGHT = ROOT / "tests/types/right.py"
WRONG = ROOT / "tests/types/wrong.py"
MARK = "# wrong"

pytestmark = pytest.mark.types


def lines_found_by_mypy(script: Path) -> list[int]:
    """The lines in which `mypy --strict` finds an error, without the project's own settings."""
    as_installed = "--follow-imports=silent"  # nothing is said of the package itself
    cache = f"--cache-dir={ROOT / '.mypy_cache/user'}"
    options = ["--strict", "--config-file=", as_installed, cache]
    command = [sys.executable, "-m", "mypy", *options, str(script)]
    environment = os.environ | {"MYPYPATH": str(ROOT)}
    ran = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    assert not ran.stderr
    return [int(line) for line in re.findall(r"\.py:(\d+): error", ran.stdout)]


def lines_found_by_pyright(script: Path) -> list[int]:
    command = [str(ROOT / "node_modules/.bin/pyright"), "--outputjson"]
    command += ["--pythonpath", sys.executable, str(script)]
    ran = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    assert not ran.stderr
    found = json.loads(ran.stdout)["generalDiagnostics"]
    return [problem["range"]["start"]["line"] + 1 for problem in found]


def planted() -> list[int]:
    lines = WRONG.read_text().splitlines()
    return [number for number, line in enumerate(lines, start=1) if line.endswith(MARK)]


CHECKERS = [lines_found_by_mypy, lines_found_by_pyright]


@pytest.mark.parametrize("lines_found", CHECKERS)
def test_a_checker_finds_each_planted_mistake_and_nothing_else(lines_found) -> None:
    assert len(planted()) > 10
    assert lines_found(WRONG) == planted()


@pytest.mark.parametrize("lines_found", CHECKERS)
def test_a_checker_finds_nothing_in_a_script_without_mistakes(lines_found) -> None:
    assert lines_found(RIGHT) == []
