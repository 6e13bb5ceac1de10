"""The tales of the demo keep the rules that make them learnable; data/check_tales.py says which."""

import subprocess
import sys
from pathlib import Path

import pytest

DATA = Path(__file__).parents[2] / "data"


def checked(file: Path) -> tuple[int, str]:
    command = [sys.executable, DATA / "check_tales.py", file]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_nothing_is_wrong_with_the_tales() -> None:
    status, said = checked(DATA / "tales.txt")
    assert status == 0 and said.endswith("nothing is wrong\n"), said


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (". ", '. "', "a quotation mark without its other half"),
        (" the ", " Wilhelmina ", "names outside the stock: Wilhelmina"),
        (" the ", " th\u00e9 ", "not plain ASCII"),
        ("\n\n<|endoftext|>\n\n", "\n", "words"),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, problem: str, tmp_path: Path) -> None:
    text = (DATA / "tales.txt").read_text()
    (tmp_path / "tales.txt").write_text(text.replace(old, new, 1), encoding="utf-8")
    status, said = checked(tmp_path / "tales.txt")
    assert status == 1 and problem in said
