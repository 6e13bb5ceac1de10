"""The package's own code as trees, each file parsed once."""

import ast
import functools
import gc
from pathlib import Path

import minigpt

PACKAGE = Path(minigpt.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))


@functools.cache
def tree_of(file: Path) -> ast.Module:
    """A module, parsed. Nothing that other tests have left is collected meanwhile: Python 3.11 may
    then lose count of how deep its parser is."""
    source = file.read_text(encoding="utf-8")
    was_on = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        if was_on:
            gc.enable()
