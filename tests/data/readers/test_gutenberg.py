"""What publishers add around a text, and what only looks like it."""

from pathlib import Path

import pytest

from minigpt.config import ReadingConfig
from minigpt.data.readers import plain
from minigpt.data.readers.document import Report
from minigpt.data.readers.epub import _is_page_of_rights
from minigpt.data.readers.kinds import read_file
from minigpt.data.readers.paragraphs import Block, is_heading_of_contents
from minigpt.data.readers.plain import without_gutenberg

from ..texts import documents, write
from .reading import left_out

START = "*** START OF THE PROJECT GUTENBERG EBOOK CROWS ***\n"
END = "*** END OF THE PROJECT GUTENBERG EBOOK CROWS ***\n"
LAST = "Subscribe to our newsletter to hear about new eBooks.\n"


def read(folder: Path, text: str) -> list[str]:
    return [text.strip("\n") for text in documents(write(folder / "a.txt", text))]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{START}A crow.\n{END}", ["A crow."]),
        (f"{START}A crow.\n", ["A crow."]),  # the last line is missing
        (f"A crow.\n{END}Licence\n{LAST}A fox.\n", ["A crow.", "A fox."]),
        (f"{START}A crow.\n{END}Licence\n{LAST}A fox.\n", ["A crow.", "A fox."]),
        (f"{START}A crow.\n{END}Licence, cut short\n{START}A fox.\n", ["A crow.", "A fox."]),
        (f"{START}A crow.\n{START}A fox.\n", ["A crow.", "A fox."]),
        (f"Mine.\nThe Project Gutenberg eBook of Crows\nX\n{START}A crow.\n", ["Mine.", "A crow."]),
        (f"{START}A crow.\n{END}{LAST}Mine.\nProject Gutenberg's Crows\nX\n{START}A fox.\n",
         ["A crow.", "Mine.", "A fox."]),
        (f"{START}A crow.\n{END}{LAST}Mine.\nProject Gutenbergs Crows\nX\n{START}A fox.\n",
         ["A crow.", "Mine.\nProject Gutenbergs Crows\nX", "A fox."]),
        ("It said *** START OF THE PROJECT GUTENBERG EBOOK\n", None),
        ("*** END OF MY STORY ***\nGutenberg printed it.\n", None),
        ("Project Gutenberg is in Mainz.\nto hear about new eBooks.\n", None),
    ],
)  # fmt: skip
def test_a_book_is_what_stands_between_the_lines_of_project_gutenberg(
    text: str, found: list[str] | None, tmp_path: Path
) -> None:
    assert read(tmp_path, text) == ([text.strip("\n")] if found is None else found)
    assert bool(left_out(tmp_path / "a.txt")) == (found is not None)


@pytest.mark.parametrize(
    "line",
    [
        "*** START OF THIS PROJECT GUTENBERG EBOOK CROWS ***",
        "***START OF THE PROJECT GUTENBERG EBOOK CROWS***",
        "  *** start of the project gutenberg Gutenberg",
        "*END* THE SMALL PRINT!",
    ],
)
def test_a_book_may_begin_with_older_lines(line: str, tmp_path: Path) -> None:
    assert read(tmp_path, f"Header\n{line}\nA crow.\n") == ["A crow."]


@pytest.mark.parametrize(
    "line", ["End of Project Gutenberg's Crows", "***END OF THIS PROJECT GUTENBERG EBOOK***"]
)
def test_a_book_may_end_with_older_lines(line: str, tmp_path: Path) -> None:
    assert read(tmp_path, f"{START}A crow.\n{line}\nLicence\n") == ["A crow."]


def test_headers_and_licences_have_only_so_many_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain, "_LONGEST", 100)
    for length, begin in ((97, []), (98, [f"{'x' * 98}\ny"])):
        assert read(tmp_path, f"{'x' * length}\ny\n{START}A crow.\n") == [*begin, "A crow."]
    licence = "".join(f"{number:09}\n" for number in range(12))
    assert read(tmp_path, f"{START}A crow.\n{END}{licence}") == [
        "A crow.", "000000010\n000000011",
    ]  # fmt: skip


def test_each_book_is_counted_once(tmp_path: Path) -> None:
    report = left_out(write(tmp_path / "a.txt", f"{START}A.\n{END}{START}B.\n{END}"))
    assert report == {"Project Gutenberg's header and licence": 2}
    report = left_out(write(tmp_path / "a.txt", f"A.\n{END}{LAST}B\n"))
    assert report == {"Project Gutenberg's header and licence": 1}


def test_blocks_keep_their_levels_and_a_line_may_be_anywhere_in_one() -> None:
    parts = [
        [Block("Header", 1), Block(f"{START}One", 2), Block("A\nB")],
        [Block("C"), Block(f"D\n{END}Licence")],
        [Block("More licence")],
    ]
    assert without_gutenberg(parts, Report(Path("a"))) == [
        [Block("One", 2), Block("A\nB")], [Block("C"), Block("D")],
    ]  # fmt: skip


def test_lines_keep_their_numbers(tmp_path: Path) -> None:
    text = f"Header\n\n{START}\nA crow.\n\n{END}Licence\n{LAST}A fox.\n"
    file = write(tmp_path / "a.txt", text)
    pieces = list(read_file(file, ReadingConfig()))
    assert " ".join(piece.text for piece in pieces).split() == "A crow. A fox.".split()
    for piece in pieces:
        assert "\n".join(text.split("\n")[piece.line - 1 :]).startswith(piece.text.rstrip("\n"))


@pytest.mark.parametrize(
    ("text", "is_rights"),
    [
        ("Copyright © 2020 by Anna. All rights reserved.", True),
        ("ISBN 1\n\nISBN 2", False),  # one sign
        ("First published 1813. © 1990 Otto", True),
        ("The Library of Congress is old. It was produced by many.", True),
        ("All rights reserved, it said; no crow was seen.", False),
        (f"All rights reserved. ISBN 1 {'x' * 4000}", False),  # too long
        ("", False),
    ],
)
def test_a_page_of_rights_has_two_signs_and_is_short(text: str, is_rights: bool) -> None:
    assert _is_page_of_rights([Block(part) for part in text.split("\n\n")]) == is_rights


def test_a_table_of_contents_has_one_of_a_few_names() -> None:
    for name in (
        "Contents",
        "TABLE OF CONTENTS",
        "Inhalt",
        "índice",
        "Inhoud",
        "Table des Matières",
    ):
        assert is_heading_of_contents(name), name
    for name in ("Contents of my pocket", "The contents", "Inhalte", ""):
        assert not is_heading_of_contents(name), name
