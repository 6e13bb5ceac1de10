"""What answers at once, and what writes or looks at a text on a CPU, never imports torch, which
takes seconds; some of it imports still less."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TORCH = {"torch"}
MODEL = TORCH | {"minigpt.recipe", "minigpt.training"}
NUMBERS = TORCH | {"numpy", "matplotlib"}

# What is done, and what must not be imported by then. A process does a list line by line, so that
# what imports less comes first.
AT_ONCE: list[tuple[str, set[str]]] = [
    ("for name in COMMANDS: type_(0, name, '--help')", NUMBERS | MODEL),
    ("type_(2, 'generate', '--top-k', '0')", NUMBERS | MODEL),
    ("type_(2, 'train', '--minutes', '0')", NUMBERS),
    ("type_(2, 'plan', '--minutes', '-1')", NUMBERS),
    ("type_(2, 'train', 'nowhere.txt')", TORCH),
    ("type_(2, 'train', '--out', 'taken')", TORCH),
    ("type_(2, 'train', 'empty.txt')", TORCH),
    ("type_(2, 'runs', '--delete', 'nothing')", TORCH),
]
WITH_A_MODEL: list[tuple[str, set[str]]] = [
    ("from minigpt.runs import base; base.base_folder = lambda: Path(BASE)", MODEL),
    ("type_(0, 'generate', 'the', '--max-new-tokens', '3')", MODEL),  # with the base
    ("type_(0, 'generate', '--interactive', '--run', RUN)", MODEL),
    ("type_(0, 'generate', 'the fox', '--run', RUN, '--show')", MODEL),
    ("minigpt.load(RUN).generate('the fox', seed=1, samples=2, top_p=0.5)", MODEL),
    ("minigpt.attention_maps(minigpt.load(RUN), 'the fox')", MODEL),
    ("type_(0, 'export', RUN, '--out', 'exported')", TORCH),
    ("type_(0, 'page', RUN, '--out', 'page.html')", TORCH),
    ("import minigpt.serve.app", TORCH),
]
PROGRAM = """
import json, sys
from pathlib import Path
import minigpt
from minigpt.cli import COMMANDS, main

RUN, BASE, table = sys.argv[1:]

def type_(expected, *words):
    try:
        status = main(words)
    except SystemExit as end:  # --help
        status = end.code
    assert status == expected, (words, status)

for code, unwanted in json.loads(table):
    exec(code)
    imported = sys.modules.keys() & set(unwanted)
    assert not imported, f"{code}: {imported}"
"""


@pytest.mark.parametrize("table", [AT_ONCE, WITH_A_MODEL], ids=["at once", "with a model"])
def test_what_is_done_imports_no_more_than_it_needs(
    table: list[tuple[str, set[str]]], tiny_run: Path, tiny_base: Path, workplace: Path
) -> None:
    (workplace / "taken").mkdir()
    (workplace / "taken/mine.txt").touch()
    (workplace / "empty.txt").touch()
    given = json.dumps([(code, sorted(unwanted)) for code, unwanted in table])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tiny_run, tiny_base, given],
        input=b"the fox\n\n",
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
