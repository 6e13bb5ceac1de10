"""Tables and notebooks."""

import json
from pathlib import Path

import pytest

from minigpt.config import ReadingConfig
from minigpt.data.readers.kinds import read_file

from ..texts import documents, refusal, write
from .made import notebook, parquet
from .reading import left_out, report_of


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
        ("sep=;\nid;text\n1;a, b\n", ["a, b"]),
        ('"sep=|"\r\ntext|id\r\na;b|1\r\n', ["a;b"]),
        ("sep=\t\n", []),
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


def in_all_forms(folder: Path, rows: list[object], extra: str) -> list[Path]:
    """Rows as files: JSON lines, a list in JSON, a table and parquet. What a table and parquet
    cannot hold is an empty cell there; `extra` is a line of JSON more."""
    texts = [row.get("text") if isinstance(row, dict) else None for row in rows]
    cells = [text if isinstance(text, str) and text.isascii() else None for text in texts]
    lines = [json.dumps(row) for row in rows] + [extra]
    table = "id,text\n" + "".join(f"1,{cell or ''}\n" for cell in [*cells, None])
    return [
        write(folder / "rows.jsonl", "\n".join(lines)),
        write(folder / "rows.json", f"[{', '.join(lines)}]"),
        write(folder / "rows.csv", table),
        write(folder / "rows.parquet", parquet({"text": [*cells, None]})),
    ]


@pytest.mark.usefixtures("read_in_process")
def test_a_row_without_text_refuses_no_file_of_any_form(tmp_path: Path) -> None:
    """Whatever stands in its place, in the first row too."""
    rows: list[object] = [
        {"text": None}, {"text": "a"}, {}, {"text": 5}, {"text": ["a"]}, {"text": ""},
        {"text": "\ud800 half"}, {"text": "b"}, None, [1], {"text": " "},
    ]  # fmt: skip
    for file in in_all_forms(tmp_path, rows, extra='{"text": {"text": "c"}}'):
        report = report_of(file)
        assert documents(file) == ["a", "b"], file
        assert dict(report.left_out) == {"rows without text": len(rows) - 1}, file


@pytest.mark.usefixtures("read_in_process")
def test_a_text_of_parquet_that_is_not_utf_8_is_a_row_without_text(tmp_path: Path) -> None:
    whole = parquet({"text": ["the fox", "the crow"]})
    file = write(tmp_path / "a.parquet", whole.replace(b"the fox", b"\xed\xa0\x80 fox"))
    assert documents(file) == ["the crow"]
    assert left_out(file) == {"rows without text": 1}


def test_a_field_that_no_row_has_is_refused_with_the_names_that_there_are(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"title": "a", "body": "b"}\n{"body": null}\n')
    message = f"{file} has no field 'text'; name one with --text-field: title, body"
    assert refusal(file) == message
    assert documents(file, text_field="body") == ["b"]


def test_a_list_in_json_without_texts_is_plain_text(tmp_path: Path) -> None:
    for text in ('[{"body": "a"}]', '[{"text": 5}]', '[{"text": "a"}', '["text"]', "[{text}]"):
        assert documents(write(tmp_path / "a.json", text)) == [text]


def test_json_that_is_too_large_is_refused_and_never_taken_for_a_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minigpt.data.readers.content.MOST_WHOLE", 100)
    turns = [{"role": "user", "content": "a" * 100}]
    said = [{"type": "message", "from": "Anna", "text": "a" * 100}]
    for name, data in (
        ("rows.json", [{"text": "a" * 100}]),
        ("conversations.json", [None, {"messages": turns}]),
        ("conversation.json", {"messages": turns}),
        ("telegram.json", {"messages": said}),
        ("a.ipynb", json.loads(notebook(("markdown", "a" * 100)))),
    ):
        file = write(tmp_path / name, json.dumps(data, indent=1))
        assert "is larger than 0 MB inside" in refusal(file)
        (read,) = documents(file, raise_limits=10)
        assert read.strip().endswith("a" * 100)

    text = "[Note: a text begins like this, too.] " * 10 + "No question."
    assert documents(write(tmp_path / "a.txt", text)) == [text]


def test_a_column_of_texts_makes_no_conversation_in_capital_letters_either(tmp_path: Path) -> None:
    for name in ("text", "Text", "TEXT"):
        file = write(tmp_path / "a.csv", f"{name},question,answer\na,b?,c\n")
        assert (documents(file), report_of(file).kind) == (["a"], "table")
    for names in ("question,answer", "Question,Answer", "sep=;\nQuestion;Answer"):
        cells = "b?;c" if ";" in names else "b?,c"
        file = write(tmp_path / "a.csv", f"{names}\n{cells}\n")
        assert documents(file) == ["User: b?\n\nAssistant: c\n\n"]


def test_rows_without_text_are_counted(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "id,text\n1,\n2,b\n3\n")
    assert left_out(file) == {"rows without text": 2}


def test_a_quote_that_is_never_closed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minigpt.data.readers.rows._LONGEST_CELL", 1000)
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


@pytest.mark.parametrize(
    ("odd", "texts"),
    [
        ({"cells": 5}, []),
        ({"cells": [5, {}, {"cell_type": "markdown", "source": 5}]}, []),
        ({"worksheets": [{"cells": [{"cell_type": "markdown", "source": ["o", "k"]}]}]}, ["ok"]),
        ({"cells": [{"cell_type": "markdown", "source": "a\ud800"}]}, ["a"]),
    ],
)
def test_of_an_odd_notebook_the_text_that_it_has_is_read(
    odd: dict[str, object], texts: list[str], tmp_path: Path
) -> None:
    plain = write(tmp_path / "plain.txt", "plain")
    file = write(tmp_path / "a.ipynb", json.dumps({"metadata": {}, **odd}))
    assert documents(file, plain) == [*texts, "plain"]


def test_a_notebook_that_is_not_json_is_refused(tmp_path: Path) -> None:
    assert "is not JSON" in refusal(write(tmp_path / "a.ipynb", '{"cells": ['))
    deep = '{"cells": ' + "[" * 100_000
    assert "is not JSON" in refusal(write(tmp_path / "a.ipynb", deep))


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("id,text\n1,a\n\n3,b\n", [(2, "a"), (4, "b")]),
        ('text\n"a\nb"\nc\n', [(2, "a\nb"), (4, "c")]),
        ("sep=;\nid;text\n1;a\n2;b\n", [(3, "a"), (4, "b")]),
    ],
)
def test_a_row_of_a_table_knows_its_line(
    table: str, rows: list[tuple[int, str]], tmp_path: Path
) -> None:
    file = write(tmp_path / "a.csv", table)
    found = list(read_file(file, ReadingConfig()))
    assert [(document.line, document.text) for document in found] == rows
    assert all(document.is_row and document.is_first for document in found)


def test_what_separates_cells_is_what_sets_the_text_apart_or_is_there_most_often(
    tmp_path: Path,
) -> None:
    for header, row in (
        ("a,b;text", "x,y;t"), ('"a;b;c"|"text"', "x;y;z|t"), ("text\ta,b,c", "t\tx"),
    ):  # fmt: skip
        assert documents(write(tmp_path / "a.csv", f"{header}\n{row}\n")) == ["t"]
    file = write(tmp_path / "b.csv", "a;b;c,d\n1;t;3,4\n")
    assert documents(file, text_field="b") == ["t"]
    assert refusal(file).endswith("--text-field: a, b, c,d")


def test_of_many_columns_the_first_eight_are_named(tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(9)]
    for count, more in ((8, ""), (9, " and 1 more")):
        file = write(tmp_path / "a.csv", f"{','.join(names[:count])}\n")
        assert refusal(file).endswith(f"--text-field: {', '.join(names[:8])}{more}")
        row = json.dumps(dict.fromkeys(names[:count], "x"))
        lines = write(tmp_path / "a.jsonl", f"{{}}\n{row}\n")
        assert refusal(lines).endswith(f"--text-field: {', '.join(names[:8])}{more}")
    long = write(tmp_path / "b.csv", f"{'n' * 50},b\n")
    assert refusal(long).endswith(f"--text-field: {'n' * 40}, b")


def test_a_column_of_this_very_name_comes_before_one_in_other_letters(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "Text,text\nno,yes\n")
    assert documents(file) == ["yes"]
    assert documents(file, text_field="TEXT") == ["no"]


def test_a_row_of_json_lines_knows_its_line_and_of_a_list_its_number(tmp_path: Path) -> None:
    lines = write(tmp_path / "a.ndjson", '\n{"text": "a"}\n\n{"text": "b"}\n')
    assert [row.line for row in read_file(lines, ReadingConfig())] == [2, 4]
    rows = write(tmp_path / "a.json", '[null, {"text": "a"}, {"text": "b"}]')
    assert [row.line for row in read_file(rows, ReadingConfig())] == [2, 3]


def test_a_list_in_json_is_known_by_the_field_that_was_named(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", '[ {"text": "a", "body": "b"}]')
    assert documents(file) == ["a"]
    assert documents(file, text_field="body") == ["b"]
    marked = write(tmp_path / "b.json", '\ufeff[{"text": "é"}]'.encode("utf-16-le"))
    assert documents(marked) == ["é"]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("a ![x](data:image/png;base64,aa) b", "a  b"),
        ("![x](http://a/b.png)", "![x](http://a/b.png)"),
        ("![[x](attachment:a)", "![[x](attachment:a)"),
        ("\n\nlines\n\n", "lines"),
    ],
)
def test_pictures_that_are_in_a_notebook_are_left_out_of_its_text(
    source: str, text: str, tmp_path: Path
) -> None:
    cells = [{"cell_type": "heading", "source": "T"}, {"cell_type": "markdown", "source": source}]
    file = write(tmp_path / "a.ipynb", json.dumps({"cells": cells}))
    assert documents(file) == [f"T\n\n{text}"]


def test_a_notebook_is_known_by_its_beginning_and_by_its_name_or_its_cells(tmp_path: Path) -> None:
    for text in ('{"cells": 5, "a": "no notebook"}', '{"metadata": {"x": 1}}', '{"cells_": []}'):
        assert documents(write(tmp_path / "a.txt", text)) == [text]
    assert documents(write(tmp_path / "b.txt", f"- {notebook(('markdown', 'x'))}"))[0][0] == "-"
