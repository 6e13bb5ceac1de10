"""The notebooks run, and their .ipynb show what runs: `make test-notebooks`."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
SOURCES = sorted(path.name for path in NOTEBOOKS.glob("[0-9][0-9]_*.py"))

pytestmark = pytest.mark.notebooks


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    """notebooks/run.py, which belongs to no package."""
    spec = importlib.util.spec_from_file_location("run", NOTEBOOKS / "run.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def source(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a small notebook's source."""

    def write(code: str) -> Path:
        path = tmp_path / "01_small.py"
        path.write_text(f"# %% [markdown]\n# # Small\n\n# %%\n{code}\n")
        return path

    return write


@pytest.mark.parametrize("name", SOURCES)
def test_a_notebook_runs_and_is_the_one_that_is_shown(runner: ModuleType, name: str) -> None:
    assert runner.run(NOTEBOOKS / name) == ""


def test_all_notebooks_together_stay_small() -> None:
    assert len(SOURCES) >= 5
    assert sum(path.stat().st_size for path in NOTEBOOKS.glob("*.*")) < 2_000_000


def test_what_is_wrong_with_a_notebook_is_named(
    runner: ModuleType, source: Callable[[str], Path]
) -> None:
    path = source("print(1 + 1)")
    assert "01_small.ipynb shows other cells" in runner.run(path)  # there is none
    assert runner.run(path, write=True) == "" == runner.run(path)
    assert "01_small.ipynb shows other cells" in runner.run(source("print(1 + 2)"))
    assert "AssertionError" in runner.run(source("assert 1 == 2"))
