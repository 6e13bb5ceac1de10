"""Reading takes time that grows with the length of a file, whatever it holds.

Each text is the worst for a regular expression of a reader: one that tries again from each place
would take the square of the time or, where it doubles with each repetition, for ever. They are read
by a process of their own, which can be ended.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ..patience import PATIENCE
from .texts import write

PLAY = "ANNA: Where is the cat?\n\nOTTO: It is here.\n\n" * 20
CHAT = "".join(f"01.02.24, 10:{n:02} - {'AB'[n % 2]}nna: Hello.\n" for n in range(30))
LETTER = "From anna@example.org Mon Jan  1 10:00:00 2024\nFrom: anna@example.org\n\n"


def _in_play(line: str) -> str:
    """A play with a line that may be a heading, and ends otherwise."""
    return f"{PLAY}{line}!\n\n{PLAY}"


def _in_notebook(source: str) -> str:
    cell = {"cell_type": "markdown", "source": source}
    return json.dumps({"cells": [cell], "nbformat": 4})


WORST: dict[str, Callable[[int], str]] = {  # by how many characters there are to be
    "comments.md": lambda n: "<!---->" * (n // 7) + "text",
    "comments.html": lambda n: "<!-- -->\n" * (n // 9) + "<p>text",
    "declaration.md": lambda n: "<?xml" + " " * n,
    "tags.html": lambda n: "<html><p>text" + "<p" * n,
    "charset.html": lambda n: "<html><p>text<meta charset" + " " * n,
    "quotes.html": lambda n: "<html><p>text" + "<a b='" * (n // 6),
    "entities.html": lambda n: "<html><p>text" + "&#" * (n // 2) + "9" * n,
    "blank.txt": lambda n: "\n" * n + "*** START OF",
    "start.txt": lambda n: " " * n + "\n*** START OF THE PROJECT GUTENBERG EBOOK ***\ntext",
    "start_blank.txt": lambda n: "\n" * n + "*** START OF THE PROJECT GUTENBERG EBOOK ***\ntext",
    "named.txt": lambda n: "Project Gutenberg " * (n // 18),
    "mark.txt": lambda n: "a\n<|endoftext|>\n" + "\n" * n + "b" + "\n \t" * (n // 3),
    "spaces.txt": lambda n: "a\n<|endoftext|>\nb\n" + " " * n + "c",
    "stars.txt": lambda n: _in_play("*" * n),
    "strokes.txt": lambda n: _in_play("_ " * (n // 2)),
    "spaced.txt": lambda n: _in_play(" " * n),
    "hashes.txt": lambda n: _in_play("#" * n),
    "brackets.txt": lambda n: _in_play("(" + ")" * n),
    "name.txt": lambda n: _in_play("A" * n) + _in_play("A " * (n // 2)) + _in_play("A." * (n // 2)),
    "in_brackets.txt": lambda n: _in_play("ANNA (" + "(" * n),
    "chat.txt": lambda n: f"{CHAT}<{'a' * n}\n[{'[' * n}\n(- {'a: ' * (n // 3)}\n",
    "marks.txt": lambda n: CHAT + "\u200e<" * (n // 2) + "+1 " * (n // 3) + "@1" * (n // 2),
    "letter.mbox": lambda n: f"{LETTER}text\n{'-' * n}!\n{'>' * n}\n{'a' * n} wrote",
    "from.txt": lambda n: f"From {'a' * n}\ntext",
    "numbers.mbox": lambda n: f"{LETTER}text {'12:' * (n // 3)} @{'1' * n}\n",
    "pictures.ipynb": lambda n: _in_notebook("text" + "![" * (n // 2)),
    "targets.ipynb": lambda n: _in_notebook("text" + "![](data:" * (n // 9)),
    "page.ipynb": lambda n: " " * n + _in_notebook("text"),
    "words.rtf": lambda n: "{\\rtf1 text" + "\\" * n + "'" * n,
    "row.csv": lambda n: "sep=" + ";" * n + "\ntext\na\n",
    "frame.txt": lambda n: "=" * n + "\nGuild: ",
}  # fmt: skip


BOMBS = ("<", "<a ", "<a b='", '<a b="', "<!--", "<![CDATA[", "<script", "<script>", "</p", "<p",
         "<a>", "<a b='c'", "&#", "&#9", "<a b=''", "</a>", "<p>", "<li>", "<table><tr>", "<b><p>",
         "<a\n=")  # fmt: skip
WORST |= {
    f"bomb{number}.html": lambda n, bomb=bomb: "<html>" + bomb * (n // len(bomb))
    for number, bomb in enumerate(BOMBS)
}
SHORT, LONG = 2_000, 16_000  # characters
PROGRAM = """
import json, sys, time
from pathlib import Path
from minigpt import UserError
from minigpt.config import ReadingConfig
from minigpt.data.readers.cache import CACHE
from minigpt.data.readers.kinds import read_file

def seconds(file):
    CACHE.forget()
    start = time.process_time()
    try:
        for _ in read_file(file, ReadingConfig()):
            pass
    except UserError:  # some have too many tags, or no text
        pass
    return time.process_time() - start

for file in sorted(Path(sys.argv[1]).glob("*/*")):
    print(json.dumps([file.parent.name, file.name, min(seconds(file) for _ in range(2))]))
"""


@pytest.mark.long
def test_the_worst_texts_are_read_in_time_that_grows_with_their_length(tmp_path: Path) -> None:
    """Eight times the length takes about eight times as long, and not 64 times."""
    for length in (SHORT, LONG):
        for name, text in WORST.items():
            write(tmp_path / str(length) / name, text(length))
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    found: dict[int, dict[str, float]] = {SHORT: {}, LONG: {}}
    for length, name, seconds in map(json.loads, done.stdout.splitlines()):
        found[int(length)][name] = seconds
    assert found[SHORT].keys() == found[LONG].keys() == WORST.keys()
    slow = {name: (found[SHORT][name], seconds) for name, seconds in found[LONG].items()
            if seconds > 25 * found[SHORT][name] + 0.1}  # fmt: skip
    assert not slow


def test_a_play_has_the_same_headings(tmp_path: Path) -> None:
    """Lines of stars, with marks of Markdown around them, in capital and small letters."""
    from minigpt.data.readers.chats.plays import HEADING

    for line in ("***", "---", "  ***", "## ACT I", "**Scene 2**", " " * 30 + "ACT I", "_The End._",
                 "*****", "* * ***", "# Epilogue ", "=====", "<|endoftext|>"):  # fmt: skip
        assert HEADING.fullmatch(line), line
    for line in ("**", "Anna: ***", "***!", "Actor", ""):
        assert not HEADING.fullmatch(line), line
