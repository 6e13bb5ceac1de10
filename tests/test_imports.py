"""What may import what: the rooms of the package and their floors, the attention layer, the public
names, and the modules of the page. What imports no torch is in test_no_torch.py.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import minigpt
import minigpt.page
from minigpt.page.build import PAGE, WORKER

from .sources import MODULES, PACKAGE, tree_of

# The package


def floors() -> dict[str, int]:
    """The floor of each room, as docs/pieces.md has them."""
    text = (PACKAGE.parent / "docs/pieces.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| `(\w+)(?:/|\.py)` \|", text, re.M)
    return {room: int(floor) for floor, room in rows}


def imported_by(file: Path) -> Iterator[str]:
    """The modules of the package that one imports, anywhere in it, such as "runs.folder"."""
    place = file.relative_to(PACKAGE).with_suffix("").parts
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.ImportFrom):
            name = node.module or ""
            if node.level:
                beginning = place[: len(place) - node.level]
                parts = [*beginning, *name.split(".")] if name else [*beginning]
            elif name.split(".")[0] == "minigpt":
                parts = name.split(".")[1:]
            else:
                continue
            if parts:
                yield ".".join(parts)
            else:
                yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("minigpt.")]
            yield from (name.removeprefix("minigpt.") for name in names)


def test_a_module_imports_from_its_own_room_and_from_lower_floors_only() -> None:
    known = floors()
    found = {
        (file.relative_to(PACKAGE).with_suffix("").as_posix(), name)
        for file in MODULES
        for name in imported_by(file)
    }
    assert {("training/trainer", "runs.folder"), ("__main__", "cli")} <= found
    assert len(known) > 10 and len(found) > 500

    wrong = []
    for module, name in sorted(found):
        room, other = module.split("/")[0], name.split(".")[0]
        if room in known and other in known and other != room and known[other] >= known[room]:
            wrong.append((module, name))
    assert wrong == []


def test_the_attention_layer_imports_nothing_but_torch() -> None:
    """It can be taken out of the package."""
    found = set()
    for file in (PACKAGE / "attention").glob("*.py"):
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level != 1:
                found.add("." * node.level + (node.module or "").partition(".")[0])
    assert found - sys.stdlib_module_names == {"torch"}


# The public names


def test_a_type_checker_sees_each_public_name_where_it_is_loaded_from() -> None:
    tree = tree_of(PACKAGE / "__init__.py")
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    seen = {alias.name: node.module for node in imports for alias in node.names}
    assert seen == minigpt._HOMES


def test_each_public_name_is_there_and_documented() -> None:
    assert [name for name in minigpt.__all__ if not getattr(minigpt, name).__doc__] == []


# The page, whose modules are joined to one script

FOLDER = Path(minigpt.page.__file__).parent
SCRIPTS = sorted(
    file.relative_to(FOLDER).with_suffix("").as_posix() for file in FOLDER.rglob("*.js")
)
FLOORS = ("model", "basics", "text", "views", "frame")
IMPORT = re.compile(r'^import \{([^}]*)\} from "([./\w]+)\.js";$', re.MULTILINE)
EXPORT = re.compile(
    r"^export (?:async )?(?:function\*? |class |const )(\w+|\{[^}]*\})", re.MULTILINE
)
FOR_TESTS = {"STRINGS"}  # exported so that a translation can replace it
TEXTS = {name: (FOLDER / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS}


def names_imported(script: str) -> dict[str, set[str]]:
    """The modules of the page that one imports, each with the names taken from it."""
    found = {}
    for names, path in IMPORT.findall(TEXTS[script]):
        target = (FOLDER / script).parent.joinpath(path).resolve().relative_to(FOLDER)
        found[target.as_posix()] = set(re.findall(r"\w+", names))
    return found


def exports(script: str) -> set[str]:
    return {name for found in EXPORT.findall(TEXTS[script]) for name in re.findall(r"\w+", found)}


def test_a_module_of_the_page_imports_what_earlier_folders_export_and_uses_it() -> None:
    for script in SCRIPTS:
        body = IMPORT.sub("", TEXTS[script])
        for other, names in names_imported(script).items():
            assert names <= exports(other), f"{other} does not export {names - exports(other)}"
            first, second = (name.split("/", maxsplit=1)[0] for name in (other, script))
            assert FLOORS.index(first) <= FLOORS.index(second), (script, other)
            unused = [name for name in names if not re.search(rf"\b{name}\b", body)]
            assert unused == [], (script, unused)


def test_every_export_of_the_page_is_imported_somewhere() -> None:
    imported = {
        name for script in SCRIPTS for names in names_imported(script).values() for name in names
    }
    exported = {name for script in SCRIPTS for name in exports(script)}
    assert exported - imported == FOR_TESTS


@pytest.mark.parametrize("joined", [PAGE, WORKER], ids=["page", "worker"])
def test_each_script_holds_a_module_after_all_that_it_imports(joined: tuple[str, ...]) -> None:
    for i, script in enumerate(joined):
        assert set(names_imported(script)) <= set(joined[:i]), script


def test_every_module_of_the_page_is_in_a_script() -> None:
    assert set(SCRIPTS) == {*PAGE, *WORKER}
