"""The modules of the page: what each imports is there, is from an earlier folder, and is used."""

import re
from pathlib import Path

import pytest

import minigpt.page
from minigpt.page.build import PAGE, WORKER

FOLDER = Path(minigpt.page.__file__).parent
MODULES = sorted(
    file.relative_to(FOLDER).with_suffix("").as_posix() for file in FOLDER.rglob("*.js")
)
FLOORS = ("model", "basics", "text", "views", "frame")
IMPORT = re.compile(r'^import \{([^}]*)\} from "([./\w]+)\.js";$', re.MULTILINE)
EXPORT = re.compile(
    r"^export (?:async )?(?:function\*? |class |const )(\w+|\{[^}]*\})", re.MULTILINE
)
FOR_TESTS = {"STRINGS"}  # exported so that a translation can replace it


def text_of(module: str) -> str:
    return (FOLDER / f"{module}.js").read_text(encoding="utf-8")


def imports(module: str) -> dict[str, set[str]]:
    """The modules that one imports, each with the names taken from it."""
    found = {}
    for names, path in IMPORT.findall(text_of(module)):
        target = (FOLDER / module).parent.joinpath(path).resolve().relative_to(FOLDER)
        found[target.as_posix()] = set(re.findall(r"\w+", names))
    return found


def exports(module: str) -> set[str]:
    return {name for found in EXPORT.findall(text_of(module)) for name in re.findall(r"\w+", found)}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_what_earlier_folders_export_and_uses_it(module: str) -> None:
    body = IMPORT.sub("", text_of(module))
    for other, names in imports(module).items():
        assert names <= exports(other), f"{other} does not export {names - exports(other)}"
        assert FLOORS.index(other.split("/")[0]) <= FLOORS.index(module.split("/", maxsplit=1)[0])
        assert all(re.search(rf"\b{name}\b", body) for name in names)


def test_every_export_is_imported_somewhere() -> None:
    imported = {name for module in MODULES for names in imports(module).values() for name in names}
    exported = {name for module in MODULES for name in exports(module)}
    assert exported - imported == FOR_TESTS


@pytest.mark.parametrize("script", [PAGE, WORKER], ids=["page", "worker"])
def test_each_script_holds_a_module_after_all_that_it_imports(script: tuple[str, ...]) -> None:
    for i, module in enumerate(script):
        assert set(imports(module)) <= set(script[:i]), module


def test_every_module_is_in_a_script() -> None:
    assert set(MODULES) == {*PAGE, *WORKER}
