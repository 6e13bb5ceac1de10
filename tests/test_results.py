"""Figures in README and docs are those that benchmarks/results.py measured and stored."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
RESULTS: dict[str, Any] = runpy.run_path(str(ROOT / "benchmarks/results_pages.py"))
SECTIONS = RESULTS["read"]()
PAGES = [page for page in RESULTS["QUOTING"] if page.name not in ("results.md", "decisions.md")]
UNIT = r"(?:bits|nats|tokens/s|tokens a second)\b"


def test_the_page_of_results_is_made_of_what_was_stored() -> None:
    assert RESULTS["results_page"](SECTIONS) == RESULTS["PAGE"].read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_quotes_what_was_measured(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    figures = {section.anchor: set(section.figures.values()) for section in SECTIONS}
    for figure, _, anchor in RESULTS["LINK"].findall(text):
        assert figure in figures[anchor], (figure, anchor)
    assert RESULTS["with_outputs"](text, SECTIONS) == text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_loss_and_speed_in_a_page_is_quoted_from_the_results(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    text = RESULTS["LINK"].sub("a quoted figure", text)
    assert not re.findall(rf"\d\.\d+ {UNIT}|\d,\d\d\d {UNIT}", text)


@pytest.mark.figures
def test_a_section_that_is_measured_again_renews_what_pages_quote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "It has [1.21](results.md#a-test) bits, [1.41](results.md#a-test) with counting,\n"
        "and [1.21](results.md#another) elsewhere;\n"
        "[90](results.md#a-test) seconds, [7](results.md#a-test) steps.\n"
        "<!-- results: a-test -->\nold\n<!-- end -->\n"
    )
    places = {
        "QUOTING": [page],
        "STORED": tmp_path / "results.json",
        "PAGE": tmp_path / "results.md",
    }
    for name, place in places.items():
        monkeypatch.setitem(RESULTS["store"].__globals__, name, place)

    section = RESULTS["Section"]
    measured = {"bits": "1.21", "counting": "1.41", "a": "90", "b": "90", "steps": "7"}
    old = section("A test", "true", measured, "old")
    again = {"bits": "1.20", "counting": "1.40", "a": "91", "b": "92"}
    new = section("A test", "true", again, "new")
    other = section("Another", "true", {"bits": "1.21"})
    sections = RESULTS["store"]([old, other], new)
    RESULTS["write_pages"](sections)

    assert page.read_text() == (
        "It has [1.20](results.md#a-test) bits, [1.40](results.md#a-test) with counting,\n"
        "and [1.21](results.md#another) elsewhere;\n"
        "[90](results.md#a-test) seconds, [7](results.md#a-test) steps.\n"
        "<!-- results: a-test -->\nnew\n<!-- end -->\n"
    )
    assert capsys.readouterr().out.splitlines() == [
        "write by hand what is quoted now: [90](results.md#a-test)",
        "write by hand what is quoted now: [7](results.md#a-test)",
    ]
    assert [section.figures["bits"] for section in RESULTS["read"]()] == ["1.20", "1.21"]


@pytest.mark.figures
def test_figures_named_by_row_and_column_become_one_table() -> None:
    figures = {"plays | from nothing": "2.00", "plays | ratio": "0.95", "tales | ratio": "0.90"}
    assert RESULTS["table"](figures).splitlines() == [
        "| | from nothing | ratio |",
        "|---|---|---|",
        "| plays | 2.00 | 0.95 |",
        "| tales |  | 0.90 |",
    ]
