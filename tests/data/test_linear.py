"""Reading takes time that grows with the length of a file, whatever it holds.

Each text is the worst for a regular expression of a reader: one that tries again from each place
would take hours or, where it doubles with each repetition, for ever. They are read by a process of
their own, which is ended after a minute; it takes a few seconds.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("length", [1_000, 100_000])
def test_the_worst_texts_are_read_in_time(length: int, tmp_path: Path) -> None:
    for name, text in WORST.items():
        write(tmp_path / name, text(length))
    command = [sys.executable, "-m", "minigpt", "read", "--summary", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert all(name in done.stderr for name in WORST)


def test_a_play_has_the_same_headings(tmp_path: Path) -> None:
    """Lines of stars, with marks of Markdown around them, in capital and small letters."""
    from minigpt.data.dialogue.script import HEADING

    for line in ("***", "---", "  ***", "## ACT I", "**Scene 2**", " " * 30 + "ACT I", "_The End._",
                 "*****", "* * ***", "# Epilogue ", "=====", "<|endoftext|>"):  # fmt: skip
        assert HEADING.fullmatch(line), line
    for line in ("**", "Anna: ***", "***!", "Actor", ""):
        assert not HEADING.fullmatch(line), line
