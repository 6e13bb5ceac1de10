"""What a person does on the page, with the mouse and with the keyboard, and what comes of it."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from minigpt.runs.read_model import FoundModel

from ..browser import axe_finds, two_frames
from .conftest import (
    PROMPT,
    Open,
    choose,
    open_view,
    until,
    until_drawn,
    until_read,
    until_still,
    write,
)

pytestmark = pytest.mark.page
VIEWS = (
    "why", "draw", "vectors", "attention", "numbers", "feedForward", "layers", "heads", "learned",
)  # fmt: skip


@pytest.fixture
def page(open_page: Open, found: FoundModel) -> Any:
    link = f"#prompt={PROMPT}&temperature=0.5&seed=7&maxNewTokens=12"
    page = open_page(found, link=link)
    until_read(page)
    return page


def about_after(bar: Any) -> float:
    """What the settings make of the chance of a bar's token."""
    return float(bar.locator("data[data-what=after]").get_attribute("value"))


def test_an_alternative_branches_and_settings_reshape_the_bars(page: Any) -> None:
    before = write(page)
    choose(page, 3)
    bars = page.locator("#panel-draw .bars button")
    page.evaluate("document.querySelector('#settings').open = true")
    page.locator("#set-topK").focus()
    page.keyboard.press("ArrowRight")  # from "all" to 1
    until_drawn(page)
    shares = [about_after(bar) for bar in bars.all()]
    assert sorted(shares, reverse=True)[:2] == [1, 0]
    assert "only one token can be drawn" in page.inner_text("#panel-draw")
    bars.nth(2).focus()
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#status').textContent.includes('12 tokens')")
    assert page.evaluate("minigpt.text()") != before
    page.get_by_role("button", name="Undo").click()
    until_read(page)
    assert page.evaluate("minigpt.text()") == before


def test_the_picture_of_a_view_leaves_the_page(page: Any) -> None:
    open_view(page, "attention")
    page.click("#panel-attention summary")
    page.wait_for_selector("#panel-attention .heads canvas")
    png, svg = (saved(page, "attention", kind) for kind in ("PNG", "SVG"))
    assert png.startswith(b"\x89PNG")
    parts = [element.tag.split("}")[1] for element in ElementTree.fromstring(svg).iter()]
    assert set(parts) == {"svg", "rect", "text", "path", "image"}  # which every viewer knows
    assert parts.count("image") == 7 and b">Attention</text>" in svg


def saved(page: Any, view: str, kind: str) -> bytes:
    with page.expect_download() as download:
        page.locator(f"#panel-{view}").get_by_role("button", name=f"Save {kind}").click()
    return Path(download.value.path()).read_bytes()


@pytest.mark.parametrize(
    "width, others, begins_dark", [(390, (), False), (1024, (800, 1440), True)]
)
def test_axe_finds_nothing_in_any_view_and_theme_and_none_is_wider_than_the_window(
    open_page: Open, found: FoundModel, width: int, others: tuple[int, ...], begins_dark: bool
) -> None:
    """On a phone, and in the narrowest window that has the panel beside the text."""
    page = open_page(found, link=f"#prompt={PROMPT}", width=width)
    if begins_dark:  # so that each view is seen in both themes
        page.click("#theme")
    if width == 390:
        page.click("#panel-toggle")

    for view in VIEWS:
        open_view(page, view)
        page.click("#theme")
        until_still(page)  # the colours have changed
        assert (view, axe_finds(page)) == (view, [])
        for other in (*others, width):
            page.set_viewport_size({"width": other, "height": 1000})
            two_frames(page)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (
                view,
                other,
            )


@pytest.mark.parametrize("width", [390, 1440])
def test_axe_finds_nothing_in_the_dialog_and_the_tour(
    open_page: Open, found: FoundModel, width: int
) -> None:
    page = open_page(found, link=f"#prompt={PROMPT}", width=width)
    if width == 390:
        page.click("#panel-toggle")

    page.click("#open-about")
    assert axe_finds(page) == []
    page.keyboard.press("Escape")

    page.click("#begin-tour")
    until(page, "document.querySelector('#tour .guess') !== null")
    assert axe_finds(page) == []
    page.locator("#tour .guess").first.click()
    for _ in range(4):
        until(page, "document.querySelector('#tour-next') !== null")
        assert axe_finds(page) == []
        page.click("#tour-next")
        until_drawn(page)
    assert axe_finds(page) == []
