"""Run the notebooks. Their source is the .py; the .ipynb beside it shows the outputs.

python notebooks/run.py                      run all; fail where an .ipynb shows other cells
python notebooks/run.py --write 03*.py ...   run these (all, if none is named); write the .ipynb
"""

import argparse
import sys
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

SOURCES = sorted(Path(__file__).parent.glob("[0-9][0-9]_*.py"))
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def run(source: Path, write: bool = False) -> str:
    """Run a notebook from its source; what is wrong, in words, or nothing."""
    notebook = jupytext.read(source)
    for i, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{i}", nbformat.NotebookNode()  # the same in every run
    folder = {"metadata": {"path": str(source.parent)}}
    quiet = ["--log-level=ERROR"]
    client = NotebookClient(notebook, resources=folder, extra_arguments=quiet, record_timing=False)
    try:
        client.execute()
    except CellExecutionError as error:
        return str(error)
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNEL})  # not the version of Python
    shown = source.with_suffix(".ipynb")
    if write:
        nbformat.write(notebook, shown)
    elif not shown.exists() or cells(nbformat.read(shown, as_version=4)) != cells(notebook):
        return f"{shown.name} shows other cells; write it with: run.py --write {source.name}"
    return ""


def cells(notebook: nbformat.NotebookNode) -> list[tuple[str, str, bool]]:
    """Each cell's type, its source, and whether it has run."""
    return [(c.cell_type, c.source, bool(c.get("execution_count"))) for c in notebook.cells]


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
