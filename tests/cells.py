"""Runs the cells of a notebook in this process, as a kernel that has torch loaded already.

What they print is kept, what the last line of each shows, and pictures, which are drawn small.
"""

import ast
import io
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import torch
from IPython.core.formatters import DisplayFormatter
from nbformat import NotebookNode, v4

_SHOW = DisplayFormatter().format
_DOTS = 20  # an inch of a picture: enough to see that it can be drawn


def execute(notebook: NotebookNode, folder: Path) -> None:
    """Run all cells in this folder and store their outputs in the notebook; an error of a cell is
    raised as it is."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with _as_in_a_process_of_its_own(folder):
        for number, cell in enumerate(notebook.cells):
            if cell.cell_type == "code":
                cell.outputs = _outputs_of(cell.source, f"<cell {number}>", names)
                cell.execution_count = number + 1


def _outputs_of(source: str, name: str, names: dict[str, Any]) -> list[NotebookNode]:
    found: list[NotebookNode] = []

    class Printed(io.TextIOBase):
        def write(self, text: str) -> int:
            found.append(v4.new_output("stream", text=text))
            return len(text)

    def draw(*_: Any, **__: Any) -> None:
        for number in plt.get_fignums():
            figure = plt.figure(number)
            shown = {"text/plain": repr(figure), "image/png": ""}
            figure.set_dpi(_DOTS)
            figure.canvas.draw()
            found.append(v4.new_output("display_data", shown))
        plt.close("all")

    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(Printed()))
        stack.enter_context(redirect_stderr(Printed()))
        plt.show, usual = draw, plt.show
        stack.callback(setattr, plt, "show", usual)

        exec(compile(tree, name, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), names)
            if value is not None and not source.rstrip().endswith(";"):
                found.append(v4.new_output("display_data", _SHOW(value)[0]))
        draw()
    return found


@contextmanager
def _as_in_a_process_of_its_own(folder: Path) -> Iterator[None]:
    """The folder is the current one, and modules in it are read anew. What cells set for the whole
    process is as in a new one, and as before when they have ended."""
    before = {*sys.modules}
    threads, dtype, place = torch.get_num_threads(), torch.get_default_dtype(), Path.cwd()
    random = torch.get_rng_state()
    with ExitStack() as stack:
        stack.enter_context(matplotlib.rc_context())
        stack.enter_context(np.printoptions())
        stack.enter_context(_usual_warnings())
        stack.callback(torch.set_num_threads, threads)
        stack.callback(torch.set_default_dtype, dtype)
        stack.callback(torch.set_rng_state, random)
        stack.callback(plt.close, "all")
        stack.callback(os.chdir, place)
        stack.callback(sys.path.remove, str(folder))

        matplotlib.use("agg")
        torch.set_num_threads(1)
        os.chdir(folder)
        sys.path.insert(0, str(folder))
        try:
            yield
        finally:
            for name in {*sys.modules} - before:
                if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
                    del sys.modules[name]


@contextmanager
def _usual_warnings() -> Iterator[None]:
    """Warnings are printed, and those are that Python prints by default."""

    def show(message: Warning | str, kind: type[Warning], file: str, line: int, *_: Any) -> None:
        sys.stderr.write(warnings.formatwarning(message, kind, file, line))

    with warnings.catch_warnings():
        warnings.showwarning = show
        warnings.resetwarnings()
        for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", kind)
        warnings.filterwarnings("default", category=DeprecationWarning, module="__main__")
        yield
