"""The notebooks run, and their .ipynb show what runs: `make test-notebooks`."""

import runpy
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
SOURCES = sorted(path.name for path in NOTEBOOKS.glob("[0-9][0-9]_*.py"))

pytestmark = pytest.mark.notebooks


def run(source: Path, write: bool = False) -> str:
    problem: str = runpy.run_path(str(NOTEBOOKS / "run.py"))["run"](source, write)
    return problem


@pytest.mark.parametrize("name", SOURCES)
def test_a_notebook_runs_and_is_the_one_that_is_shown(name: str) -> None:
    assert run(NOTEBOOKS / name) == ""


def test_what_is_wrong_with_a_notebook_is_named(tmp_path: Path) -> None:
    source = tmp_path / "small.py"
    source.write_text("# %%\n1 + 1\n")
    assert "small.ipynb shows other cells" in run(source)  # there is none
    assert run(source, write=True) == "" == run(source)
    source.write_text("# %%\n1 + 2\n")
    assert "small.ipynb shows other cells" in run(source)
    source.write_text("# %%\nassert 1 == 2\n")
    assert "AssertionError" in run(source)
