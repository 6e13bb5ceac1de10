"""The kinds of errors: a window says each in words of its own, and so none may be raised that is
not listed, and none listed that is never raised."""

import ast
import errno
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import pytest
from safetensors import SafetensorError

from minigpt import UserError
from minigpt.data.readers.kinds import _NO_TEXT
from minigpt.system import safetensors_files
from minigpt.system.errors import KINDS, kind_of_error

from ..conftest import unix_only
from ..hostile import NO_ROOM
from ..sources import MODULES, tree_of

# What makes errors, and after how many arguments their kind follows.
_RAISED = {"UserError": 1, "Refused": 2, "Unreadable": 2, "Told": 1, "needs_extra": 3}
_OF_THE_SYSTEM = {
    MemoryError(): "memory",
    NO_ROOM: "disk_full",
    OSError(errno.EDQUOT, "Disk quota exceeded"): "disk_full",
    PermissionError(errno.EACCES, "Permission denied"): "no_permission",
    OSError(errno.EIO, "Input/output error"): "not_written",
    FileNotFoundError(errno.ENOENT, "No such file or directory"): "not_written",
    KeyError("a mistake"): "other",
}


def kinds_in(tree: ast.AST) -> Iterator[str]:
    """Those that a module gives to errors, and those that its classes of errors have by default."""
    for node in ast.walk(tree):
        given: list[ast.expr | None] = []
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in _RAISED:
            given = [keyword.value for keyword in node.keywords if keyword.arg == "kind"]
            given += node.args[_RAISED[node.func.id] :]  # type: ignore[attr-defined]
        elif isinstance(node, ast.ClassDef) and node.name in _RAISED:
            functions = [part for part in node.body if isinstance(part, ast.FunctionDef)]
            given = [
                default
                for function in functions
                for default in (*function.args.defaults, *function.args.kw_defaults)
            ]
        yield from (kind.value for kind in given if _is_text(kind))


def _is_text(node: ast.expr | None) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and bool(node.value)


def test_every_kind_that_is_raised_is_listed_and_every_one_that_is_listed_is_raised() -> None:
    raised = {*_OF_THE_SYSTEM.values(), *(kind for _, kind in _NO_TEXT.values())}
    for module in MODULES:
        raised.update(kinds_in(tree_of(module)))
    assert raised == KINDS.keys()


@pytest.mark.parametrize("error", _OF_THE_SYSTEM, ids=lambda error: type(error).__name__)
def test_errors_of_the_system_have_a_kind(error: Exception) -> None:
    assert kind_of_error(error) == _OF_THE_SYSTEM[error]


def test_an_error_keeps_its_kind_and_is_of_no_special_one_by_itself() -> None:
    assert kind_of_error(UserError("no room", kind="disk_full")) == "disk_full"
    assert kind_of_error(UserError("hm")) == "other"


@unix_only
def test_a_full_disk_is_known_by_what_the_library_of_weights_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise SafetensorError("Error: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(safetensors_files, "save_file", refuse)
    with pytest.raises(OSError, match=r"No space left on device$") as raised:
        safetensors_files.write_tensors({}, tmp_path / "model.safetensors")
    assert kind_of_error(raised.value) == "disk_full"
