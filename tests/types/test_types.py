"""What type checkers see of the package in a user's script: its mistakes, and nothing else."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RIGHT = ROOT / "tests/types/right.py"
WRONG = ROOT / "tests/types/wrong.py"
MARK = "# wrong"

# `mypy --strict` for the package and the scripts, as a user has it. All other packages have the
# project's own settings, so that what `make test` found out about them need not be found again.
STRICT = """
[[tool.mypy.overrides]]
module = ["minigpt.*", "tests.types.*"]
disallow_any_generics = true
disallow_subclassing_any = true
disallow_untyped_calls = true
disallow_incomplete_defs = true
check_untyped_defs = true
disallow_untyped_decorators = true
warn_return_any = true
implicit_reexport = false
strict_equality = true
extra_checks = true

[[tool.mypy.overrides]]
module = ["minigpt.*"]
ignore_errors = true  # nothing is said of the package itself
"""

pytestmark = pytest.mark.types

Lines = dict[str, list[int]]  # in which a checker finds something, by the name of the script


def found_by_mypy() -> Lines:
    with tempfile.TemporaryDirectory() as folder:
        known = ROOT / ".mypy_cache"
        if known.exists():
            shutil.copytree(known, folder, dirs_exist_ok=True)
        settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        (Path(folder) / "mypy.toml").write_text(settings + STRICT, encoding="utf-8")
        command = [sys.executable, "-m", "mypy", f"--config-file={folder}/mypy.toml"]
        command += [f"--cache-dir={folder}", str(RIGHT), str(WRONG)]
        ran = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    assert not ran.stderr and "checked 2 source files" in ran.stdout, ran.stderr + ran.stdout

    lines: Lines = {RIGHT.name: [], WRONG.name: []}
    for name, line in re.findall(r"(\w+\.py):(\d+): error", ran.stdout):
        lines[name].append(int(line))
    return lines


def found_by_pyright() -> Lines:
    command = [str(ROOT / "node_modules/.bin/pyright"), "--outputjson"]
    command += ["--pythonpath", sys.executable, str(RIGHT), str(WRONG)]
    ran = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    assert not ran.stderr
    report = json.loads(ran.stdout)
    assert report["summary"]["filesAnalyzed"] == 2

    lines: Lines = {RIGHT.name: [], WRONG.name: []}
    for problem in report["generalDiagnostics"]:
        lines[Path(problem["file"]).name].append(problem["range"]["start"]["line"] + 1)
    return lines


@pytest.mark.parametrize("found", [found_by_mypy, found_by_pyright])
def test_a_checker_finds_each_planted_mistake_and_nothing_else(found: Callable[[], Lines]) -> None:
    lines = WRONG.read_text(encoding="utf-8").splitlines()
    planted = [number for number, line in enumerate(lines, start=1) if line.endswith(MARK)]
    assert len(planted) > 10
    assert found() == {RIGHT.name: [], WRONG.name: planted}
