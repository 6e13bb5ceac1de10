"""The words of the window: all of them are in its table and in that of web/, and the scripts use
no others."""

import ast
import json
import re
from pathlib import Path

from minigpt.studio.routes import WEB, WINDOW
from minigpt.system.errors import KINDS
from tests.sources import tree_of

SCRIPTS = sorted([*WINDOW.rglob("*.js"), *WEB.rglob("*.js")])


def _strings() -> dict[str, str]:
    """All strings by their names, such as "home.drop"."""
    groups = {}
    for folder in (WEB, WINDOW):
        groups |= json.loads((folder / "strings.json").read_text(encoding="utf-8"))
    return {f"{group}.{name}": words for group in groups for name, words in groups[group].items()}


def _placeholders(words: str) -> list[str]:
    return sorted(set(re.findall(r"\{(\w+)\}", words)))


STRINGS = _strings()
GROUPS = {name.partition(".")[0] for name in STRINGS}
DOCS = Path(__file__).parents[2] / "docs"


def test_no_string_is_empty() -> None:
    assert [name for name, words in STRINGS.items() if not words.strip()] == []


def test_a_script_names_strings_that_are_there() -> None:
    for script in SCRIPTS:
        asked, _ = _names_in(script.read_text(encoding="utf-8"))
        assert sorted(asked - STRINGS.keys()) == [], script


def test_every_string_is_used_by_some_script() -> None:
    asked = set[str]()
    groups = set[str]()
    for script in SCRIPTS:
        names, whole = _names_in(script.read_text(encoding="utf-8"))
        asked |= names
        groups |= whole
    unused = STRINGS.keys() - asked
    assert sorted(name for name in unused if name.partition(".")[0] not in groups) == []


def test_each_kind_of_problem_has_a_sentence() -> None:
    said_by_themselves = {"other", "setting"}  # their messages name what was wrong
    without = [
        kind
        for kind in KINDS.keys() - said_by_themselves
        if f"kinds.{kind}" not in STRINGS and f"problems.{kind}" not in STRINGS
    ]
    assert sorted(without) == []


def test_each_refusal_that_has_a_kind_has_a_sentence_with_its_values() -> None:
    raised = dict[str, list[str]]()
    for module in WINDOW.parent.rglob("*.py"):
        for call in ast.walk(tree_of(module)):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "Refusal":
                given = {str(word.arg): word.value for word in call.keywords}
                kind = given.pop("kind", None)
                given.pop("field", None)
                if isinstance(kind, ast.Constant):
                    raised[f"refusals.{kind.value}"] = sorted(given)
    said = {name: words for name, words in STRINGS.items() if name.startswith("refusals.")}
    assert raised == {name: _placeholders(words) for name, words in said.items()}


def _names_in(script: str) -> tuple[set[str], set[str]]:
    """The names of strings in a script, and the groups of which it puts names together."""
    called = re.findall(r'\b(?:string|say|hasString)\(\s*"([\w.]+)"', script)
    mentioned = re.findall(r'"((\w+)\.\w+)"', script)
    whole = re.findall(r"`(\w+)\.\$\{", script)
    names = {*called, *(name for name, group in mentioned if group in GROUPS)}
    return names, {group for group in whole if group in GROUPS}


def test_the_documents_call_the_parts_of_the_window_as_the_window_does() -> None:
    studio = (DOCS / "studio.md").read_text(encoding="utf-8")
    lesson = " ".join((DOCS / "lesson.md").read_text(encoding="utf-8").split())
    _, _, table = studio.partition("| button | what it does |\n|---|---|\n")
    named = [
        *re.findall(r"^\| (.*?) \|", table.partition("\n\n")[0], re.M),
        *re.findall(r"(?<!\*)\*([A-Z][^*\n]+)\*(?!\*)", studio),
        *re.findall(r"^- \*\*(.*?)\*\*", studio, re.M),
        *re.findall(r'(?:[Pp]ress|Set|Show|With|of|to|at|in) "([A-Z][^"]*)"', lesson),
    ]
    assert len(named) > 30

    patterns = [re.sub(r"\\\{\w+\\\}", ".+", re.escape(words)) for words in STRINGS.values()]
    for name in named:
        begins = any(words.startswith(name) for words in STRINGS.values())
        assert begins or any(re.fullmatch(pattern, name) for pattern in patterns), name
