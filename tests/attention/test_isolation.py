"""The attention layer can be taken out of the package: it needs nothing but torch."""

import ast
import sys
from pathlib import Path

import minigpt.attention

FILES = sorted(Path(minigpt.attention.__file__).parent.glob("*.py"))


def test_the_attention_layer_imports_nothing_but_torch() -> None:
    found = set()
    for node in (node for file in FILES for node in ast.walk(ast.parse(file.read_text()))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level != 1:
            found.add("." * node.level + (node.module or "").partition(".")[0])
    assert found - sys.stdlib_module_names == {"torch"}
