"""The tables of strings: nothing in them is unused, nothing that is used is missing, and no
sentence is anywhere else in what the page shows."""

import re
from pathlib import Path

from minigpt.page.build import SCRIPT, modules_of, strings

PAGE = modules_of(SCRIPT)
NAME = re.compile(r"""["'`]([a-z]\w*)\.(\w+)["'`]""")
BEGINNING = re.compile(r"`([a-z]\w*)\.(\w*)\$\{")  # of names that are put together
COMMENT = re.compile(r"/\*.*?\*/|(?<![:\"'`])//[^\n]*", re.DOTALL)
LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`')
SENTENCE = re.compile(r"[A-Z]\w* [a-z]+ \w+|\w+ [a-z]+ [a-z]+[.:;!?]")


def table() -> set[str]:
    """The names of all strings."""
    return {f"{group}.{key}" for group, words in strings().items() for key in words}


def code(file: Path) -> str:
    """A file without its comments."""
    return COMMENT.sub("", file.read_text(encoding="utf-8"))


def test_every_string_is_used_and_every_name_that_is_used_exists() -> None:
    names, groups = table(), {name.split(".")[0] for name in table()}
    used: set[str] = set()
    for file in PAGE:
        said = {".".join(found) for found in NAME.findall(code(file)) if found[0] in groups}
        assert said <= names, (file.name, said - names)
        used |= said
        for group, begins in BEGINNING.findall(code(file)):
            used |= {name for name in names if name.startswith(f"{group}.{begins}")}
    assert names - used == set()


def test_no_sentence_is_outside_the_table() -> None:
    found = {
        (file.name, literal)
        for file in PAGE
        for literal in LITERAL.findall(code(file))
        if SENTENCE.search(literal)
    }
    assert found == set()
