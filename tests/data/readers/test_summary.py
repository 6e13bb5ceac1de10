"""What is told of files that were read: the table, and the essence of it."""

from pathlib import Path
from typing import Any

from minigpt import UserError
from minigpt.data.readers.document import (
    Refused,
    Report,
    Unreadable,
    all_left_out,
    documents_read,
    kinds_read,
    problems,
    table,
    title,
)


def report(name: str, kind: str = "plain text", **more: Any) -> Report:
    made = Report(Path(name))
    made.kind = kind
    for field, value in more.items():
        setattr(made, field, value)
    return made


def with_left_out(name: str, **left_out: int) -> Report:
    made = report(name, "Word", documents=1)
    for what, number in left_out.items():
        made.leave_out(what, number)
    return made


def test_columns_are_as_wide_as_their_widest_cell_and_numbers_are_at_the_right() -> None:
    first = report("a.txt", documents=1, characters=1234567)
    second = with_left_out("longer.docx", footnotes=1000, comments=2)
    assert table([first, second]) == [
        "file         kind        characters  documents  left out",
        "a.txt        plain text   1,234,567          1  nothing",
        "longer.docx  Word                 0          1  footnotes (1,000), comments (2)",
    ]


def test_of_a_long_name_the_end_is_shown() -> None:
    for length, shown in ((48, "n" * 48), (49, "…" + "n" * 47)):
        assert table([report("n" * length)])[1].startswith(f"{shown}  plain text")


def test_notes_and_members_that_were_left_out_come_below_the_table() -> None:
    made = report("a.zip", "archive")
    made.note("read as Windows-1252")
    made.note("read as Windows-1252")
    made.files_left_out.append("a.zip/b is a picture")
    assert table([made, report("b")])[3:] == [
        "a.zip: read as Windows-1252", "left out: a.zip/b is a picture",
    ]  # fmt: skip


def test_why_a_whole_file_is_left_out_is_told_without_its_name() -> None:
    file = Path("a.doc")
    for error, reason in (
        (Unreadable(file, "it is\n damaged"), "it is damaged"),
        (Refused(file, "is a picture"), "is a picture"),
        (UserError("a.doc, line 3: not JSON"), "a.doc, line 3: not JSON"),
    ):
        made = report("a.doc", "", error=error)
        assert table([made])[1].split("  ")[-1] == f"all of it: {reason}"
        assert problems([made]) == [f"left out: {error}"]


def test_what_is_said_of_several_files_is_said_once_with_the_first_three() -> None:
    reports = [report(name, notes=["odd", f"{name} alone"][: 1 + (name == "a")]) for name in "abcd"]
    assert problems(reports[:3]) == ["a, b, c: odd", "a: a alone"]
    assert problems(reports) == ["a, b, c and 1 more: odd", "a: a alone"]
    assert problems([report("a", files_left_out=["x"])]) == ["left out: x"]


def test_kinds_are_counted_unless_all_is_plain() -> None:
    plain, word, lines = report("a"), report("b", "Word"), report("c", "JSON lines")
    assert kinds_read([plain, lines]) == kinds_read([]) == ""
    assert kinds_read([word]) == "Word"
    assert kinds_read([plain, word, word]) == "2 Word, 1 plain text"


def test_numbers_of_all_files_are_added_up() -> None:
    reports = [with_left_out("a", notes=2, comments=1), with_left_out("b", comments=4)]
    assert all_left_out(reports) == "comments (5), notes (2)"
    assert documents_read(reports) == "2 documents" and documents_read(reports[:1]) == "1 document"
    assert all_left_out([]) == ""


def test_nothing_left_out_is_not_counted() -> None:
    made = with_left_out("a", notes=0)
    made.leave_out("notes", False)
    assert dict(made.left_out) == {}
    assert title("-") == "stdin" and title(Path("b/a.txt")) == "b/a.txt"
