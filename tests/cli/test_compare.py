"""minigpt compare: a report, a record, and what is refused."""

import json
import re
import sys
from pathlib import Path

import pytest

import minigpt

from ..conftest import some_text
from .conftest import Type, assert_refused

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def where_they_lie(tiny_run: Path, letters_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tiny_run.parents[1])


def test_the_report_has_figures_and_places_with_the_text_around(type_: Type) -> None:
    status, out, err = type_("compare my letters")
    result = minigpt.compare("runs/my", "letters")
    assert status == 0 and "to compare runs/my with letters" in err

    for side in result.sides:
        assert f"{side.bits_per_byte:.4f}" in out and side.title() in out
    assert " ".join(result.verdict().split()) in " ".join(out.split())
    places = re.findall(r"^ ?(\d+)\. …(.*)…$", out, re.M)
    assert [int(number) for number, _ in places] == list(range(1, len(result.places) + 1))
    for (_, shown), place in zip(places, result.places, strict=True):
        assert f"[{place.text}]".split() == re.findall(r"\[.*?\]", shown)[0].split()


def test_control_characters_of_a_name_are_no_commands_to_a_terminal(
    type_: Type, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    file = tmp_path / "new\x1b[2J.txt"
    file.write_text(some_text(400, seed=1))

    _, out, _ = type_("compare", "my", "counting", file)
    assert "\x1b" not in out and "\\x1b" in out


def test_a_record_has_all_that_python_returns(type_: Type) -> None:
    _, out, _ = type_("compare my letters --json")
    record = json.loads(out)
    result = minigpt.compare("runs/my", "letters")
    assert record["bits_per_byte"] == list(result.bits_per_byte)
    assert record["pieces"] == result.pieces and record["text"] == result.text
    assert [side["loss"] for side in record["sides"]] == [side.loss for side in result.sides]
    first = result.places[0]
    assert record["places"][0]["probabilities"] == list(first.probabilities)
    assert record["places"][0]["instead"][0][0] == list(first.instead[0][0])


def test_standard_input_can_be_the_text(
    type_: Type, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "new.txt"
    file.write_text(some_text(60, seed=2))
    figures = []
    for name in (str(file), "-"):
        with open(file) as piped:
            monkeypatch.setattr("sys.stdin", piped)
            _, out, _ = type_("compare", "my", "counting", name, "--json")
        record = json.loads(out)
        figures.append(record["bits"])
    assert figures[0] == figures[1] and record["text"] == "stdin"


def test_a_folder_is_read_as_the_options_say_and_each_file_once(
    type_: Type, tmp_path: Path
) -> None:
    letters = tmp_path / "letters"
    letters.mkdir()
    (letters / "old.txt").write_bytes(("Ворона сидела на дереве.\n" * 9).encode("cp1251"))
    (letters / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    typed = ("compare", "my", "my", letters, letters / "old.txt", "--encoding", "cp1251")
    status, out, err = type_(*typed)
    assert status == 0 and "(225 characters)" in " ".join(out.split())
    assert err.count("left out of ") == 1 and "picture.png" in err


def test_a_name_that_nobody_has_is_refused(type_: Type) -> None:
    refused = type_("compare", "my", "letters", "my.txt", "--rename", "Anna=A")
    assert_refused(refused, "--rename is for chats, interviews and plays; none was recognised")


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("compare", ["arguments are required: first, second"]),
        ("compare my", ["arguments are required: second"]),
        ("compare my nothing", ["no such run: nothing"]),
        ("compare my letters nothing.txt", ["no such file: nothing.txt"]),
        ("compare my letters --plain", ["--plain is for a text that is named"]),
        ("compare my letters my.txt --stride 99", ["stride must be between 1 and"]),
    ],
)
def test_a_wrong_command_line_is_refused_in_one_line(
    typed: str, words: list[str], type_: Type
) -> None:
    assert_refused(type_(typed), *words)
