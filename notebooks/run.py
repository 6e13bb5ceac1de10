"""Run the notebooks. Their source is the .py; the .ipynb beside it shows the outputs.

python notebooks/run.py                      run all; fail where an .ipynb shows something else
python notebooks/run.py --write 03*.py ...   run these (all, if none is named); write the .ipynb

An .ipynb must show the cells of the .py, and the outputs that running them gives:

- The words are the same; spaces and line breaks do not count.
- Whole numbers are the same. Numbers with decimals differ by at most one in the last decimal, or by
  2%: machines round differently, and a training enlarges the difference.
- Pictures are there.

The code of the answers to the exercises (```python between <details> and </details>) runs after the
last cell. It is not shown as cells, but it must not fail.

A cell whose words differ between machines, such as text drawn from a model, begins with
`# %% tags=["varies"]`. Its words and numbers are not compared. Instead it must assert what the
notebook says about them.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

SOURCES = sorted(Path(__file__).parent.glob("[0-9][0-9]_*.py"))
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

NUMBER = re.compile(r"(-?\d+(?:,\d{3})*(?:\.\d*)?(?:e[+-]?\d+)?)")
TOLERANCE = Decimal("0.02")  # of a number with decimals

ANSWER = re.compile(r"<details>.*?</details>", re.DOTALL)
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)


Execute = Callable[[NotebookNode, Path], None]


def run(source: Path, write: bool = False, execute: Execute | None = None) -> str:
    """Run a notebook from its source; what is wrong, in words, or nothing. Whatever executes it in
    the place of a kernel runs its cells in a folder and stores their outputs."""
    notebook = jupytext.read(source)
    for i, cell in enumerate(notebook.cells):
        cell.id = f"cell-{i}"  # the same in every run
        tags = cell.metadata.get("tags")
        cell.metadata = NotebookNode(tags=tags) if tags else NotebookNode()
        if varies(cell) and "assert" not in cell.source:
            return f"cell {i} is tagged as varying, but asserts nothing"

    count = len(notebook.cells)
    notebook.cells += answers(notebook)
    try:
        (execute or in_a_kernel)(notebook, source.parent)
    except CellExecutionError as error:
        return str(error)
    del notebook.cells[count:]

    notebook.metadata = nbformat.from_dict({"kernelspec": KERNEL})  # not the version of Python
    shown = source.with_suffix(".ipynb")
    if write:
        nbformat.write(notebook, shown)
        return ""
    problem = "is missing"
    if shown.exists():
        problem = difference(nbformat.read(shown, as_version=4), notebook)
    if problem:
        return f"{shown.name} {problem}; write it with: run.py --write {source.name}"
    return ""


def answers(notebook: NotebookNode) -> list[NotebookNode]:
    """The code in the answers to the exercises, as cells."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for answer in ANSWER.findall(cell.source):
                found += [nbformat.v4.new_code_cell(code) for code in CODE.findall(answer)]
    return found


def in_a_kernel(notebook: NotebookNode, folder: Path) -> None:
    """Run all cells in this folder, with one thread, and store their outputs in the notebook."""
    client = NotebookClient(
        notebook,
        resources={"metadata": {"path": str(folder)}},
        extra_arguments=["--log-level=ERROR"],
        record_timing=False,
    )
    client.execute(env=os.environ | ONE_THREAD)


def difference(shown: NotebookNode, ran: NotebookNode) -> str:
    """What a notebook shows that differs from what running it gave, in words, or nothing."""
    if cells(shown) != cells(ran):
        return "shows other cells"
    for i, (old, new) in enumerate(zip(shown.cells, ran.cells, strict=True)):
        if new.cell_type != "code":
            continue
        old_text, old_pictures = outputs(old)
        new_text, new_pictures = outputs(new)
        if old_pictures != new_pictures:
            return f"shows pictures {old_pictures} in cell {i}, which draws {new_pictures}"
        if not varies(new) and (told := text_difference(old_text, new_text)):
            return f"shows {told[0]!r} in cell {i}, which prints {told[1]!r}"
    return ""


def varies(cell: NotebookNode) -> bool:
    """Whether a cell may print something else on another machine."""
    return "varies" in cell.metadata.get("tags", [])


def cells(notebook: NotebookNode) -> list[tuple[str, str, bool]]:
    """Each cell's type, its source, and whether it has run."""
    return [(c.cell_type, c.source, bool(c.get("execution_count"))) for c in notebook.cells]


def outputs(cell: NotebookNode) -> tuple[str, list[str]]:
    """All text that a cell shows, one after another, and the types of its pictures."""
    text = ""
    pictures = []
    for output in cell.outputs:
        text += output.get("text", "")
        for kind, content in output.get("data", {}).items():
            if kind.startswith("text/"):
                text += f"\n{content}\n"
            else:
                pictures.append(kind)
    return text, pictures


def text_difference(old: str, new: str) -> tuple[str, str] | None:
    """The first words or numbers that differ, old and new, or None if there are none."""
    old_parts = parts(old)
    new_parts = parts(new)
    for i, (ours, theirs) in enumerate(zip(old_parts, new_parts, strict=False)):
        is_number = i % 2 == 1
        alike = same_number(ours, theirs) if is_number else ours == theirs
        if not alike:
            around = slice(max(0, i - 1), i + 2)
            return " ".join(old_parts[around]).strip(), " ".join(new_parts[around]).strip()
    if len(old_parts) != len(new_parts):
        return old[-80:], new[-80:]
    return None


def parts(text: str) -> list[str]:
    """Words and numbers by turns, beginning with words; without spaces around them."""
    return [" ".join(part.split()) for part in NUMBER.split(text)]


def same_number(old: str, new: str) -> bool:
    """Whether two numbers are the same, as far as machines agree about it."""
    a = Decimal(old.replace(",", ""))
    b = Decimal(new.replace(",", ""))
    decimals = -min(a.as_tuple().exponent, b.as_tuple().exponent)
    if decimals <= 0:
        return a == b
    last = Decimal(10) ** -decimals
    return abs(a - b) <= max(last, TOLERANCE * abs(b))


def main() -> int:
    """Run what the command line names; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", nargs="*", type=Path, default=SOURCES)
    parser.add_argument("--write", action="store_true", help="write the .ipynb files")
    given = parser.parse_args()
    problems = 0
    for source in given.sources:
        problem = run(source, given.write)
        print(source.name, problem or "ok", flush=True)
        problems += bool(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
