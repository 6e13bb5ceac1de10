"""The public names: loaded when first used, and known to type checkers."""

import ast
from pathlib import Path

import pytest

import minigpt


def test_a_type_checker_sees_each_public_name_where_it_is_loaded_from() -> None:
    tree = ast.parse(Path(minigpt.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    seen = {alias.name: node.module for node in imports for alias in node.names}
    assert seen == minigpt._HOMES


@pytest.mark.parametrize("name", minigpt.__all__)
def test_each_public_name_is_there_and_documented(name: str) -> None:
    assert getattr(minigpt, name).__doc__
