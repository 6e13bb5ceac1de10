"""The notebooks run, and their .ipynb show what running them gives: `make test-notebooks`."""

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .lazy import Lazy

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
SOURCES = sorted(path.name for path in NOTEBOOKS.glob("[0-9][0-9]_*.py"))
# The others run in this process, in which torch is loaded already.
IN_A_KERNEL = "03_attention_without_weights.py"
program = Lazy("notebooks.run")
cells = Lazy("tests.cells")
nbformat = Lazy("nbformat")


@pytest.mark.notebooks
@pytest.mark.parametrize("name", SOURCES)
def test_a_notebook_runs_and_shows_what_running_it_gives(name: str) -> None:
    assert (
        program.run(NOTEBOOKS / name, execute=None if name == IN_A_KERNEL else cells.execute) == ""
    )


@pytest.mark.notebooks
def test_what_is_wrong_with_a_notebook_is_named(tmp_path: Path) -> None:
    source = tmp_path / "small.py"
    source.write_text("# %%\nprint(1 + 1)\n")
    assert "small.ipynb is missing" in program.run(source, execute=cells.execute)
    assert program.run(source, write=True) == "" == program.run(source, execute=cells.execute)

    source.write_text("# %%\nprint(1 + 2)\n")
    assert "small.ipynb shows other cells" in program.run(source, execute=cells.execute)
    source.write_text("# %%\nassert 1 == 2\n")
    assert "AssertionError" in program.run(source)


@pytest.mark.notebooks
def test_an_output_that_is_older_than_the_code_is_refused(tmp_path: Path) -> None:
    part = tmp_path / "part.py"
    source = tmp_path / "small.py"
    part.write_text("bits = 2.34\n")
    source.write_text('# %%\nfrom part import bits\n\nprint(f"{bits} bits a character")\n')
    assert program.run(source, write=True) == ""

    # Of another length: Python reads its compiled copy of a file that has the same size and second.
    part.write_text("bits = 2.1875\n")
    assert "shows '2.34 bits a character' in cell 0, which prints '2.1875 bits" in program.run(
        source
    )


@pytest.mark.notebooks
def test_a_cell_that_varies_must_assert_something(tmp_path: Path) -> None:
    source = tmp_path / "small.py"
    source.write_text('# %% tags=["varies"]\nfrom time import time\n\ntime()\n')
    assert "cell 0 is tagged as varying, but asserts nothing" in program.run(source, write=True)

    source.write_text('# %% tags=["varies"]\nfrom time import time\n\nassert time() > 0\ntime()\n')
    assert program.run(source, write=True) == "" == program.run(source)


@pytest.mark.notebooks
def test_the_code_of_an_answer_runs_but_is_not_shown_as_a_cell(tmp_path: Path) -> None:
    source = tmp_path / "small.py"
    exercise = """# %%
x = 2

# %% [markdown]
# <details><summary>Answer</summary>
#
# ```python
# {}
# ```
#
# </details>
"""
    source.write_text(exercise.format("assert x == 2"))
    assert program.run(source, write=True) == "" == program.run(source)
    assert len(nbformat.read(source.with_suffix(".ipynb"), as_version=4).cells) == 2

    source.write_text(exercise.format("assert x == 3"))
    assert "AssertionError" in program.run(source)


# What tqdm looks at in a kernel of Jupyter, where ipywidgets is not installed.
KERNEL_WITHOUT_WIDGETS = """
import sys
from types import ModuleType, SimpleNamespace

sys.modules["ipykernel.zmqshell"] = ModuleType("ipykernel.zmqshell")
sys.modules["IPython"] = SimpleNamespace(get_ipython=object)
sys.modules["ipywidgets"] = None

import minigpt.recipe.told_at_start, minigpt.recipe.told_at_end
import minigpt.measure.card, minigpt.training.messages
"""


@pytest.mark.long
def test_an_import_in_a_notebook_without_widgets_prints_nothing() -> None:
    command = [sys.executable, "-c", KERNEL_WITHOUT_WIDGETS]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout == done.stderr == ""


def notebook(text: str = "", pictures: int = 0, tags: tuple[str, ...] = ()) -> Any:
    """A notebook of one cell that shows this text and so many pictures."""
    outputs = [nbformat.v4.new_output("stream", text=text)]
    for _ in range(pictures):
        outputs.append(nbformat.v4.new_output("display_data", {"image/png": "AAAA"}))
    cell = nbformat.v4.new_code_cell("show()", execution_count=1, outputs=outputs)
    cell.metadata.tags = tags
    return nbformat.v4.new_notebook(cells=[cell])


# What the notebook on what a run has learned once showed, and what running it gave then.
STALE = [
    ("with all heads: 2.34 bits a character", "with all heads: 2.19 bits a character"),
    ("first half: 10.4 bits, second half: 10.6", "first half: 11.1 bits, second half: 11.4"),
    ("[[0.03 0.04 0.03 0.03]\n [0.01 0.01 0.   0.  ]]", "[[0.01 0.01 0.01 0.  ]\n [0. 0. 0. 0. ]]"),
    ("written: 'one, and the be'", "written: ' looked at the '"),
]
OTHER = [
    ("62 characters", "61 characters"),
    ("1,600 characters", "1,601 characters"),
    ("[0. 1.]", "[1. 0.]"),
    ("-0.50", "0.50"),
    ("loss 1.2", "loss 1.2 and more"),
    ("loss 1.2, 1.3", "loss 1.2"),
    ("nan", "0.1"),
]
ALIKE = [
    ("loss 1.834", "loss 1.851"),
    ("[0.01 0.  ]", "[0.   0.01]"),
    ("tensor([ 0.1000, -0.0000])", "tensor([0.1001, 0.0000])"),
    ("1.5e-05", "1.6e-05"),
    ("1,234.5 tokens", "1,240.0  tokens\n"),
]


@pytest.mark.parametrize(("old", "new"), STALE + OTHER)
def test_other_words_whole_numbers_or_clearly_other_decimals_are_a_difference(
    old: str, new: str
) -> None:
    assert "shows" in program.difference(notebook(old), notebook(new))


@pytest.mark.parametrize(("old", "new"), ALIKE)
def test_what_another_machine_rounds_differently_is_no_difference(old: str, new: str) -> None:
    assert program.difference(notebook(old), notebook(new)) == ""


def test_a_picture_that_is_missing_is_a_difference() -> None:
    assert program.difference(notebook(pictures=2), notebook(pictures=2)) == ""
    assert "pictures" in program.difference(notebook(pictures=1), notebook(pictures=2))


def test_what_varies_is_not_compared_but_its_pictures_are() -> None:
    varies = ("varies",)
    assert program.difference(notebook("a fox"), notebook("an owl", tags=varies)) == ""
    assert "pictures" in program.difference(notebook(pictures=1), notebook("an owl", tags=varies))


def test_a_heatmap_shows_its_labels_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as tokens of a text, in which a dollar is no mathematics."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "notebooks")
    pictures = importlib.import_module("pictures")
    figure, axes = pictures.plt.subplots()
    labels = ["a$^x^^$", "$5"]
    pictures.heatmap(axes, [[0.5, 1.0], [0.1, 0.2]], labels, labels)
    figure.canvas.draw()
    pictures.plt.close(figure)
