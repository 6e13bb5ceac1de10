"""minigpt compare: a report with or without colours, a record, a page; and what is refused."""

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


def test_the_report_has_figures_text_places_and_texts(type_: Type) -> None:
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
    assert out.count("“") == 3 and out.count("runs/my (") == 4  # with its size, and three texts


def test_without_colours_brackets_tell_who_expected_the_text_more(type_: Type) -> None:
    _, out, _ = type_("compare my counting")
    result = minigpt.compare("runs/my", "counting")
    assert "\x1b" not in out
    shown = re.split(r"by\s+counting\s+\{text\}\.\n\n|\n\nWhere they", out)[1]
    text = "".join(piece.text for piece in result.passages[0].pieces)
    assert text.startswith(re.sub(r"[][{}]", "", shown).rstrip("\n"))
    assert len(shown) > 100

    clearly = [
        piece
        for piece in result.passages[0].pieces
        if piece.bits and abs(piece.bits[0] - piece.bits[1]) >= 3
    ]
    for piece in clearly[:5]:
        marks = "[]" if piece.bits and piece.bits[0] < piece.bits[1] else "{}"
        inside = re.findall(re.escape(marks[0]) + r"([^\]}]*)" + re.escape(marks[1]), shown)
        assert any(piece.text in stretch for stretch in inside)


def test_a_terminal_shows_colours_unless_nobody_wants_them(
    type_: Type, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Control characters of the text are no commands there."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    file = tmp_path / "new.txt"
    file.write_text(f"{some_text(100, seed=2)}\x1b[2J{some_text(4000, seed=3)}")

    _, out, _ = type_("compare", "my", "counting", file)
    assert "\x1b[2J" not in out and "\\x1b" in out
    assert set(re.findall(r"\x1b\[(\d*)", out)) <= {"48", "4", "1", "0"}
    assert "likelier by runs/my:" in out and "likelier by counting, underlined:" in out
    assert "--html shows more" in out and len(out) < 30_000

    monkeypatch.setenv("NO_COLOR", "1")
    _, out, _ = type_("compare", "my", "counting", file)
    assert "\x1b" not in out


def test_a_record_has_all_that_python_returns(type_: Type) -> None:
    _, out, _ = type_("compare my letters --json --seed 5")
    record = json.loads(out)
    result = minigpt.compare("runs/my", "letters", seed=5)
    assert record["bits_per_byte"] == list(result.bits_per_byte)
    assert record["pieces"] == result.pieces and record["text"] == result.text
    assert [side["loss"] for side in record["sides"]] == [side.loss for side in result.sides]
    first = result.places[0]
    assert record["places"][0]["probabilities"] == list(first.probabilities)
    assert record["places"][0]["instead"][0][0] == list(first.instead[0][0])
    shown = record["passages"][0]["pieces"]
    assert "".join(text for text, _ in shown) == (
        "".join(piece.text for piece in result.passages[0].pieces)
    )
    assert record["written"][0]["texts"] == list(result.written[0].texts)


def test_a_page_is_written_whole_and_named(type_: Type, tmp_path: Path) -> None:
    file = tmp_path / "both.html"
    _, out, _ = type_("compare", "my", "counting", "--html", file)
    assert f"{file}: " in out and "Where they differ" not in out
    page = file.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and page.rstrip().endswith("</html>")

    _, out, err = type_("compare", "my", "counting", "--html", file, "--json")
    assert json.loads(out) and f"{file}: " in err


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
        figures.append(json.loads(out)["bits"])
    assert figures[0] == figures[1]


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("compare", ["arguments are required: first, second"]),
        ("compare my", ["arguments are required: second"]),
        ("compare my nothing", ["no such run: nothing"]),
        ("compare my letters nothing.txt", ["no such file: nothing.txt"]),
        ("compare my letters --html config.txt", ["config.txt exists and is not a page"]),
        ("compare my letters --html nowhere/x.html", ["there is no folder nowhere"]),
        ("compare my letters --seed -1", ["--seed must be at least 0, got -1"]),
        ("compare my letters --plain", ["--plain is for a text that is named"]),
        ("compare my letters my.txt --stride 99", ["stride must be between 1 and"]),
    ],
)
def test_a_wrong_command_line_is_refused_in_one_line(
    typed: str, words: list[str], type_: Type
) -> None:
    Path("config.txt").write_text("{}")
    assert_refused(type_(typed), *words)
