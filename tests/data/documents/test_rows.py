"""Tables and notebooks."""

import json
from pathlib import Path

import pytest

from ..texts import documents, refusal, write
from .made import notebook
from .reading import left_out


@pytest.mark.parametrize(
    ("table", "texts"),
    [
        ("id,text\n1,a\n2,b\n", ["a", "b"]),
        ("text\na\nb", ["a", "b"]),
        ("id;Text\r\n1;a\r\n2;b\r\n", ["a", "b"]),
        ("id\ttext\n1\ta, b\n", ["a, b"]),
        ('text,id\n"a ""b"",\nc",1\n" ",2\n', ['a "b",\nc']),
        ("\ufefftext,id\na,1\n", ["a"]),
        ("id,text\n1\n2,b\n\n", ["b"]),
        ("text\n<|endoftext|>\n", []),
        ("", []),
    ],
)
def test_each_row_of_a_table_is_a_document(table: str, texts: list[str], tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", table)
    write(tmp_path / "plain.txt", "plain")
    assert documents(file, tmp_path / "plain.txt") == [*texts, "plain"]


def test_another_column_can_be_named(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tsv", "title\tbody\nA\tb\n")
    assert documents(file, text_field="body") == ["b"]
    message = f"{file} has no column 'text'; name one with --text-field: title, body"
    assert refusal(file) == message


def test_odd_names_of_columns_are_shown_in_one_line(tmp_path: Path) -> None:
    message = refusal(write(tmp_path / "a.csv", '"a\nb",c\n1,2\n'))
    assert message.endswith("--text-field: a b, c")


def test_rows_without_text_are_counted(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "id,text\n1,\n2,b\n3\n")
    assert left_out(file) == {"rows without text": 2}


def test_a_quote_that_is_never_closed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minigpt.data.documents.rows._LONGEST_CELL", 1000)
    file = write(tmp_path / "a.csv", 'text\nfine\n"' + "a\n" * 1000)
    assert refusal(file).startswith(f"{file}, line 3: field larger than field limit")


def test_of_a_notebook_the_text_cells_are_read(tmp_path: Path) -> None:
    picture = "![plot](attachment:a.png)"
    content = notebook(
        ("markdown", f"# Title\n\nText.{picture}"), ("code", "1 + 1"), ("markdown", "More.\n"),
        ("raw", "---"), ("markdown", " "),
    )  # fmt: skip
    for name in ("a.ipynb", "a.txt"):
        file = write(tmp_path / name, content)
        assert documents(file) == ["# Title\n\nText.\n\nMore."]
        assert left_out(file) == {
            "cells of code": 1, "other cells": 1, "cells without text": 1
        }  # fmt: skip


def test_an_odd_notebook_is_refused_or_read(tmp_path: Path) -> None:
    plain = write(tmp_path / "plain.txt", "plain")
    for odd in ({"cells": 5}, {"cells": [5, {}, {"cell_type": "markdown", "source": 5}]},
                {"worksheets": [{"cells": [{"cell_type": "markdown", "source": ["o", "k"]}]}]},
                {"cells": [{"cell_type": "markdown", "source": "\ud800"}]}):  # fmt: skip
        file = write(tmp_path / "a.ipynb", json.dumps({"metadata": {}, **odd}))
        documents(file, plain)
    assert "is not JSON" in refusal(write(tmp_path / "a.ipynb", '{"cells": ['))
    deep = '{"cells": ' + "[" * 100_000
    assert "is not JSON" in refusal(write(tmp_path / "a.ipynb", deep))
