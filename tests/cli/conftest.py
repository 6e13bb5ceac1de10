"""Commands typed in this process, and what they print."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from minigpt.cli import main

Outcome = tuple[int, str, str]  # exit status, standard output, standard error
Type = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def nothing_typed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with open(os.devnull) as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        yield


@pytest.fixture
def type_(capsys: pytest.CaptureFixture[str]) -> Type:
    """Run `minigpt ARGUMENT ...`; of a single text the words are the arguments."""

    def type_(*arguments: str | Path) -> Outcome:
        capsys.readouterr()
        words = str(arguments[0]).split() if len(arguments) == 1 else map(str, arguments)
        try:
            status = main(list(words))
        except SystemExit as end:  # --help
            status = int(end.code or 0)
        return status, *capsys.readouterr()

    return type_


def assert_refused(outcome: Outcome, *words: str) -> None:
    """Status 2 and one line, the last, that says what is wrong."""
    status, out, err = outcome
    *before, last = err.splitlines()
    assert (status, out) == (2, ""), err
    assert last.startswith("error: ") and not any(line.startswith("error: ") for line in before)
    for word in words:
        assert word in last
