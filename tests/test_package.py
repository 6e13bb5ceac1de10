"""The distribution is named minigpt-text; `minigpt` on PyPI is another project's program."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
UNTRACKED = {".git", ".venv", "node_modules", "runs", "dist", "exports", "results", "api"}


def tracked_files() -> list[Path]:
    """The project's files: those that git tracks, or, without git, all that look like them."""
    try:
        command = ["git", "-C", str(ROOT), "ls-files", "-z"]
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        files = [ROOT / name for name in listed.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        files = [file for file in ROOT.rglob("*") if not UNTRACKED & {*file.parts}]
    return [file for file in files if file.is_file()]


def lines_of_text() -> Iterator[tuple[str, str]]:
    """Each line of each file that holds text, after the name of its file."""
    for file in tracked_files():
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        name = file.relative_to(ROOT).as_posix()
        yield from ((name, line) for line in text.splitlines())


def installs_a_stranger(line: str) -> bool:
    """Whether a line asks pip for `minigpt`, with or without extras."""
    return bool(
        re.search(r"minigpt\\?\[[a-z{]|pip install (-\S+ )*['\"]?minigpt(?![-_]text)", line)
    )


def test_no_hint_installs_the_other_projects_program() -> None:
    found = [place for place in lines_of_text() if installs_a_stranger(place[1])]
    assert [name for name, _ in found if name != "tests/test_package.py"] == []


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("pip install minigpt", True),
        ("pip install -U 'minigpt'", True),
        ("pip install 'minigpt[serve]'", True),
        ("pip install 'minigpt-text[serve]'", False),
        ("pip install dist/minigpt_text-0.1.0-py3-none-any.whl", False),
    ],
)
def test_a_wrong_hint_would_be_found(line: str, wrong: bool) -> None:
    assert installs_a_stranger(line) == wrong
