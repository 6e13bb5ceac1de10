"""The tales of a lesson keep the rules that make them learnable; data/check_tales.py says which."""

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parents[2] / "data"
PROGRAM: dict[str, Any] = runpy.run_path(str(DATA / "check_tales.py"))


@pytest.mark.long
def test_nothing_is_wrong_with_the_tales() -> None:
    command = [sys.executable, DATA / "check_tales.py", DATA / "tales.txt"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.endswith("nothing is wrong\n"), done


def wrong_with(tales: str) -> list[str]:
    """What is wrong with single ones of these tales."""
    single = tales.strip().split(PROGRAM["BETWEEN"])
    return list(PROGRAM["wrong"](single, [PROGRAM["words_of"](tale) for tale in single]))


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (". ", '. "', "a quotation mark without its other half"),
        (" the ", " Wilhelmina ", "names outside the stock: Wilhelmina"),
        (" the ", " th\u00e9 ", "not plain ASCII"),
        ("\n\n<|endoftext|>\n\n", "\n", "words"),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, problem: str) -> None:
    tales = (DATA / "tales.txt").read_text(encoding="utf-8")
    few = PROGRAM["BETWEEN"].join(tales.split(PROGRAM["BETWEEN"])[:50])
    assert wrong_with(few) == []
    assert any(problem in found for found in wrong_with(few.replace(old, new, 1)))


def test_the_exit_status_tells_that_something_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = tmp_path / "few.txt"
    few.write_text((DATA / "tales.txt").read_text(encoding="utf-8")[:1000], encoding="utf-8")
    assert PROGRAM["main"](few) == 1
    assert "fewer than 800,000 bytes" in capsys.readouterr().out
