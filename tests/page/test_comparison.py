"""The page of a comparison: in Chromium, in both themes, on a phone, with a hostile text."""

import re
from pathlib import Path
from typing import Any

import pytest

from minigpt.generation.comparison import (
    Comparison,
    Guess,
    Passage,
    Place,
    ShownPiece,
    Side,
    Written,
)
from minigpt.page.comparison import comparison_page

from .test_views import AXE

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>{{title}}&amp;\"'"


def comparison(name: str = "runs/my") -> Comparison:
    """Of a text in which nothing but a name is harmless."""
    figures: dict[str, Any] = {"context_length": 64, "tokens": 900, "bytes": 3000, "loss": 2.0}
    sides = (
        Side(name, 10**6, **figures, bits_per_byte=1.5, has_read_it=True, seconds=0.5),
        Side("counting", 0, **figures, bits_per_byte=2.0, has_read_it=None, seconds=0.1),
    )
    pieces = [
        ShownPiece("It", None),
        ShownPiece(" was", (1.0, 5.0)),
        ShownPiece(HOSTILE, (12.0, 2.0)),
        ShownPiece("", (2.0, 2.1)),
        *[ShownPiece(f" word{i}", (i / 10, 3.0)) for i in range(400)],
    ]
    guesses = (Guess("␣a", 0.5), Guess("<b>", 0.25))
    return Comparison(
        text=f"{HOSTILE}.txt",
        characters=3000,
        sides=sides,
        bytes=3000,
        bits=(4500.0, 6000.0),
        pieces=403,
        likelier=(20, 2),
        is_whole=False,
        passages=(Passage(0, tuple(pieces)), Passage(2000, tuple(pieces[4:]))),
        places=(Place(4, "It was", HOSTILE, " word0", (12.0, 2.0), (guesses, ())),),
        written=(Written(HOSTILE, 0, (HOSTILE, " b"), (0.1, 0.2)),),
    )


def test_nothing_in_a_text_or_a_name_becomes_part_of_the_page() -> None:
    page = comparison_page(comparison(name=HOSTILE))
    assert page.count("</script>") == page.count("<script") == 1
    assert "<img" not in page and "{{title}}" in page
    assert not re.search(r"https?://", page)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "comparison.html"
    file.write_text(comparison_page(comparison()), encoding="utf-8")
    return file


@pytest.mark.page
@pytest.mark.parametrize(("width", "theme"), [(360, "dark"), (360, "light"), (1200, "dark")])
def test_it_opens_without_a_message_and_axe_finds_nothing(
    width: int, theme: str, chromium: Any, file: Path
) -> None:
    context = chromium.new_context(
        viewport={"width": width, "height": 800}, color_scheme=theme, has_touch=True
    )
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda r: r.url.startswith(("file://", "data:")) or wrong.append(r.url))
    page.goto(file.as_uri())

    axe = Path(__file__).parents[2] / "node_modules/axe-core/axe.min.js"
    page.evaluate(axe.read_text())
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(AXE) == []

    page.locator("#text b", has_text="was").first.tap()
    assert page.inner_text("#said") == "“ was”: 50% likely by runs/my, 3.1% by counting."
    page.focus("#text")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#said").startswith(f"“{HOSTILE}”: less than 0.1% likely by runs/my")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#said").startswith("The end of a document: 25%")
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    assert "nobody had to predict this" in page.inner_text("#said")
    assert page.evaluate(AXE) == []
    context.close()
    assert wrong == []


@pytest.mark.page
def test_who_expected_a_piece_more_can_be_told_without_colours(chromium: Any, file: Path) -> None:
    page = chromium.new_page()
    page.goto(file.as_uri())
    style = "element => getComputedStyle(element).textDecorationStyle"
    lines = {
        side: page.locator(f"#text .{side}").first.evaluate(style) for side in ("first", "second")
    }
    assert lines == {"first": "solid", "second": "dotted"}
    assert page.locator("#legend li").all_inner_texts()[1].startswith("counting found it likelier")
    page.close()
