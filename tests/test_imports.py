"""What may import what: the rooms of the package and their floors, the attention layer, the public
names, and the scripts of page and window. What imports no torch is in test_no_torch.py.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import minigpt

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


# The scripts in JavaScript: those of the page, those of the studio's window, and what both share

WEB, PAGE, WINDOW = "web", "page", "studio/window"
REACHED = {WEB: {WEB}, PAGE: {WEB, PAGE}, WINDOW: {WEB, WINDOW}}
FLOORS = ("model", "basics", "core", "text", "views", "frame")  # of the page
SCRIPTS = sorted(
    file.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("*.js") if file.is_file()
)
IMPORT = re.compile(r'^import \{([^}]*)\} from "([./\w]+)";$', re.MULTILINE)
LATER = re.compile(r'(?<!\{)\bimport\("([./\w]+)"\)')  # a screen, when it is needed: its `show`
EXPORT = re.compile(
    r"^export (?:async )?(?:function\*? |class |const )(\w+|\{[^}]*\})", re.MULTILINE
)
TEXTS = {name: (PACKAGE / name).read_text(encoding="utf-8") for name in SCRIPTS}


def names_imported(script: str) -> dict[str, set[str]]:
    """The scripts that one imports, each with the names taken from it."""
    found = {}
    for names, path in (*IMPORT.findall(TEXTS[script]), *later_imports(script)):
        target = (PACKAGE / script).parent.joinpath(path).resolve().relative_to(PACKAGE)
        found[target.as_posix()] = set(re.findall(r"\w+", names))
    return found


def later_imports(script: str) -> list[tuple[str, str]]:
    return [("show", path) for path in LATER.findall(TEXTS[script])]


def exports(script: str) -> set[str]:
    return {name for found in EXPORT.findall(TEXTS[script]) for name in re.findall(r"\w+", found)}


def room_of(script: str) -> str:
    return next(room for room in REACHED if script.startswith(f"{room}/"))


def test_page_and_window_import_what_they_share_and_never_each_other() -> None:
    """What they share imports nothing of either."""
    assert {room_of(script) for script in SCRIPTS} == set(REACHED)
    for script in SCRIPTS:
        reached = {room_of(other) for other in names_imported(script)}
        assert reached <= REACHED[room_of(script)], script


def test_a_script_of_the_page_imports_from_its_own_and_earlier_folders() -> None:
    for script in SCRIPTS:
        for other in names_imported(script):
            if room_of(script) == room_of(other) == PAGE:
                first, second = (name.split("/")[1] for name in (other, script))
                assert FLOORS.index(first) <= FLOORS.index(second), (script, other)


def test_what_all_screens_use_needs_none_of_them_and_no_screen_needs_another() -> None:
    for script in SCRIPTS:
        for other in names_imported(script):
            if room_of(script) == room_of(other) == WINDOW and script != f"{WINDOW}/main.js":
                mine, its = (name.removeprefix(f"{WINDOW}/").split("/") for name in (script, other))
                is_own = mine[0] == its[0] == "screens" and mine[1].split(".")[0] == its[1]
                is_below = mine[0] != "basics" and len(its) == 1  # live.js and header.js
                assert its[0] == "basics" or is_own or is_below, (script, other)


def test_a_script_imports_what_others_export_and_uses_it() -> None:
    for script in SCRIPTS:
        body = IMPORT.sub("", TEXTS[script])
        for other, names in names_imported(script).items():
            assert names <= exports(other), f"{other} does not export {names - exports(other)}"
            unused = [name for name in names if not re.search(rf"\b{name}\b", body)]
            assert unused == [], (script, unused)


def test_every_export_of_a_script_is_imported_somewhere() -> None:
    imported = {
        (other, name)
        for script in SCRIPTS
        for other, names in names_imported(script).items()
        for name in names
    }
    exported = {(script, name) for script in SCRIPTS for name in exports(script)}
    assert exported - imported == set()


def test_no_two_scripts_need_each_other() -> None:
    left = {script: set(names_imported(script)) for script in SCRIPTS}
    while free := {script for script, others in left.items() if not others & left.keys()}:
        left = {script: others for script, others in left.items() if script not in free}
    assert left == {}


def test_every_script_of_the_window_is_loaded() -> None:
    loaded: set[str] = set()
    coming = {f"{WINDOW}/main.js"}
    while coming:
        loaded |= coming
        coming = {other for script in coming for other in names_imported(script)} - loaded
    assert {script for script in SCRIPTS if room_of(script) == WINDOW} <= loaded
