"""notebooks/colab.ipynb: its address, and what it does with a text in Colab and elsewhere. `make
test-wheel` runs the whole notebook."""

import json
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOK = ROOT / "notebooks/colab.ipynb"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CELLS = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
EMPTY = 'pasted = r"""\n"""'


def code_with(words: str) -> str:
    """The code of the one cell that has these words."""
    (cell,) = [c for c in CELLS if c["cell_type"] == "code" and words in "".join(c["source"])]
    return "".join(cell["source"])


def in_colab(monkeypatch: pytest.MonkeyPatch, uploads: dict[str, bytes]) -> list[str]:
    """Put a module in the place of Colab's; the names of the files that it was told to download."""
    downloads: list[str] = []
    files: Any = ModuleType("google.colab.files")
    files.upload = lambda: uploads
    files.download = downloads.append
    colab: Any = ModuleType("google.colab")
    colab.files = files

    monkeypatch.setitem(sys.modules, "google", ModuleType("google"))
    monkeypatch.setitem(sys.modules, "google.colab", colab)
    return downloads


def test_the_badges_lead_to_the_notebook_in_the_repository() -> None:
    repository = PROJECT["urls"]["Repository"].removeprefix("https://github.com/")
    address = (
        f"https://colab.research.google.com/github/{repository}/blob/main/notebooks/colab.ipynb"
    )

    assert f"]({address})" in "".join(CELLS[0]["source"])
    assert f"]({address})" in (ROOT / "notebooks/README.md").read_text(encoding="utf-8")


def test_it_installs_the_package_and_has_no_outputs_of_somebody_elses_text() -> None:
    assert f'package = "git+{PROJECT["urls"]["Repository"]}"' in code_with("%pip")
    assert not any(cell.get("outputs") for cell in CELLS)


def test_a_pasted_text_comes_before_an_upload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    in_colab(monkeypatch, {"uploaded.txt": b""})
    code = code_with(EMPTY).replace(EMPTY, 'pasted = r"""\nÄpfel \\n\n"""')
    names: dict[str, Any] = {}
    exec(code, names)

    assert names["texts"] == ["my.txt"]
    assert Path("my.txt").read_text(encoding="utf-8") == "\nÄpfel \\n\n"


def test_in_colab_a_text_is_uploaded_and_page_and_model_are_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    downloads = in_colab(monkeypatch, {"a.txt": b"", "b.txt": b""})
    (tmp_path / "runs/a").mkdir(parents=True)
    names: dict[str, Any] = {"run": tmp_path / "runs/a"}
    exec(code_with(EMPTY), names)
    exec(code_with("make_archive"), names)

    assert names["texts"] == ["a.txt", "b.txt"]
    assert [Path(name).name for name in downloads] == ["page.html", "a.zip"]


def test_elsewhere_it_says_that_nothing_can_be_uploaded_and_where_the_page_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs/plays").mkdir(parents=True)
    names: dict[str, Any] = {"run": tmp_path / "runs/plays"}
    exec(code_with(EMPTY), names)
    exec(code_with("make_archive"), names)

    printed = capsys.readouterr().out
    assert names["texts"] == [] and "the plays that come with minigpt" in printed
    assert "no upload outside Colab" in printed and str(tmp_path / "page.html") in printed
