"""The first ten seconds: an opening is written on slowly until somebody does something."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from minigpt.runs.found import FoundModel
from minigpt.tokenizer import make_tokenizer

from ..tokenizer.examples import FABLE
from .conftest import SHAPE, Open, choose, random_found, until, write_samples

pytestmark = pytest.mark.page
MOVING = {"viewport": {"width": 1200, "height": 900}, "reduced_motion": "no-preference"}
OPENING = "The cat eats the"
SHIFT = """new Promise(resolve => {
    let sum = 0;
    const add = list => { for (const e of list.getEntries()) sum += e.value; };
    new PerformanceObserver(add).observe({ type: "layout-shift", buffered: true });
    setTimeout(() => resolve(sum), 100);
})"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> FoundModel:
    folder = tmp_path_factory.mktemp("run")
    sample = "The cat eats the dates. A crow sat there and ate."
    write_samples(folder, {1: sample})
    return random_found(make_tokenizer("bpe", 320, [FABLE, sample]), folder, **SHAPE)


def length(page: Any) -> int:
    return int(page.evaluate("minigpt.text().length"))


def grows(page: Any) -> bool:
    before = length(page)
    page.wait_for_timeout(600)
    return length(page) > before


def test_an_opening_is_written_on_slowly_and_nothing_moves_meanwhile(
    open_page: Open, found: FoundModel
) -> None:
    page = open_page(found, context=MOVING)
    until(page, f"minigpt.text().length > {len(OPENING) + 3}")
    assert page.evaluate("minigpt.text()").startswith(OPENING)
    assert grows(page)
    assert page.evaluate(SHIFT) < 0.02


@pytest.mark.parametrize(
    "act",
    [
        lambda page: page.mouse.click(600, 890),
        lambda page: page.keyboard.press("Tab"),
        lambda page: page.mouse.wheel(0, 20),
    ],
)
def test_whatever_a_person_does_ends_it(
    open_page: Open, found: FoundModel, act: Callable[[Any], None]
) -> None:
    page = open_page(found, context=MOVING)
    until(page, f"minigpt.text().length > {len(OPENING) + 3}")
    act(page)
    until(page, "/[Ss]topped/.test(document.querySelector('#status').textContent)")
    assert not grows(page)


def test_it_is_not_played_where_motion_is_unwanted(open_page: Open, found: FoundModel) -> None:
    page = open_page(found)
    assert page.evaluate("minigpt.text()") == OPENING
    assert not grows(page)


def test_a_link_and_a_reload_show_what_they_hold_instead(
    open_page: Open, found: FoundModel
) -> None:
    page = open_page(found, link="#prompt=There the cat", context=MOVING)
    assert page.evaluate("minigpt.text()") == "There the cat"
    assert not grows(page)

    page = open_page(found, context=MOVING)
    page.locator("#text").click()
    until(page, "/[Ss]topped/.test(document.querySelector('#status').textContent)")
    page.locator("#text").fill("A crow")
    page.reload()
    page.evaluate("minigpt.ready")
    assert page.evaluate("minigpt.text()") == "A crow"
    assert not grows(page)


def test_a_model_without_openings_begins_with_an_empty_sheet(
    open_page: Open, tmp_path: Path
) -> None:
    page = open_page(random_found(make_tokenizer("char", None, ["abc \n"]), tmp_path, **SHAPE))
    assert not page.locator("#openings").is_visible()
    assert page.evaluate("minigpt.text()") == ""
    page.get_by_role("button", name="Write", exact=True).click()
    until(page, "/written/.test(document.querySelector('#status').textContent)")
    assert re.search(r"\w", page.evaluate("minigpt.text()"))


def test_until_a_view_is_opened_it_is_about_what_is_chosen(
    open_page: Open, found: FoundModel
) -> None:
    page = open_page(found)
    assert page.locator("#panel-draw").is_visible()
    choose(page, 2)
    page.wait_for_selector("#panel-why", state="visible")
    page.evaluate("document.querySelector('[data-view=layers]').click()")
    choose(page, 3)
    page.wait_for_selector("#panel-layers", state="visible")
