"""What README and docs show works: their Python runs, the options of their commands are known."""

import os
import re
import shlex
from pathlib import Path

import pytest

from minigpt.cli import COMMANDS as CLI
from minigpt.cli import parse
from minigpt.cli.options import Parser

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON_PAGE = (ROOT / "docs/python.md").read_text(encoding="utf-8")
COMPONENTS = (ROOT / "docs/components.md").read_text(encoding="utf-8")


def fences(text: str, language: str) -> list[str]:
    """The blocks of code in this language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.S | re.M)


def commands(page: Path) -> list[str]:
    """The commands of minigpt in a page, without what stands before them in their lines."""
    code = "".join(fences(page.read_text(encoding="utf-8"), "sh"))
    code = re.sub(r'"[^"]*"', lambda quoted: quoted[0].replace("\n", " "), code)
    lines = code.replace("\\\n", " ").splitlines()
    before = r"^.*\| |^ *torchrun .*(?=train\.py)|^python (?=\w+\.py)|^\w+=.*(?=minigpt )"
    ours = [re.sub(before, "", line) for line in lines]
    return [line for line in ours if re.match(r"(train|generate)\.py |minigpt ", line)]


PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "data/base/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
COMMANDS = [(page.name, command) for page in PAGES for command in commands(page)]
EXAMPLES = [*fences(README, "python"), *fences(PYTHON_PAGE, "python")]
PARTS = fences(COMPONENTS, "python")


@pytest.mark.long
@pytest.mark.parametrize("code", EXAMPLES)
def test_the_examples_run(code: str, workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.symlink(ROOT / "data", workplace / "data")
    quick = code.replace("minutes=0.2", "steps=3, num_evals=1")
    for long in ("data/plays.txt", "data/tales.txt"):
        quick = quick.replace(long, "data/fables.txt")  # a third or a tenth as long
    exec(quick, {})
    if "generate(" in code:
        begins = re.search(r'generate\("([A-Z]\w+)', code)
        assert begins and begins[1] in capsys.readouterr().out


@pytest.mark.parametrize("code", PARTS)
def test_the_examples_of_parts_run_and_their_assertions_hold(code: str, workplace: Path) -> None:
    quick = code.replace("data/fables.txt", "my.txt")  # a sixtieth as long
    exec(quick, {"__name__": "example"})


@pytest.mark.parametrize("page", dict(COMMANDS))
def test_the_options_of_the_commands_are_known(page: str) -> None:
    """An error is printed, and names the option."""
    for command in (command for name, command in COMMANDS if name == page):
        program, *words = shlex.split(command, comments=True)
        typed = words if program == "minigpt" else [program.removesuffix(".py"), *words]
        print(command)
        parse(typed, None)


def test_the_options_that_sentences_name_are_known() -> None:
    known = {"--help", "--version", "--base"}  # the last one is of benchmarks/tuning.py
    for name, (_, add_options, _) in CLI.items():
        parser = Parser(name)
        add_options(parser)
        known |= parser._option_string_actions.keys()

    named = 0
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
        text = re.sub(r"^## What was removed.*?^## ", "", text, flags=re.S | re.M)
        for code in re.findall(r"`([^`\n]+)`", text):
            if re.match(r"hf |(\w+=\d )?torchrun ", code):  # other programs
                continue
            options = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", code))
            named += len(options)
            assert options <= known, (page.name, code)
    assert named > 100


def test_the_examples_were_found() -> None:
    assert len(EXAMPLES) >= 5
    assert len([page for page, _ in COMMANDS if page == "README.md"]) >= 10
    assert len(PARTS) >= 4 and all("assert" in code for code in PARTS)
