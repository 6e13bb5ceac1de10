"""The first ten seconds: an opening is written on slowly until somebody does something."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from minigpt.runs.read_model import FoundModel
from minigpt.tokenizer import make_tokenizer

from ..browser import two_frames
from ..tokenizer.examples import FABLE
from .conftest import SHAPE, Open, choose, random_found, until, write_samples
from .test_frame import MOVED

pytestmark = pytest.mark.page
MOVING = {"viewport": {"width": 1200, "height": 900}, "reduced_motion": "no-preference"}
OPENING = "The cat eats the"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> FoundModel:
    folder = tmp_path_factory.mktemp("run")
    sample = "The cat eats the dates. A crow sat there and ate."
    write_samples(folder, {1: sample})
    return random_found(make_tokenizer("bpe", 320, [FABLE, sample]), folder, **SHAPE)


def is_left_alone(page: Any) -> bool:
    """Whether nothing is being written, and nothing is while the model answers something else."""
    before = page.evaluate("minigpt.text()")
    is_busy = page.evaluate("minigpt.now().busy")
    page.evaluate("minigpt.logits('The cat')")
    two_frames(page)
    return not is_busy and page.evaluate("minigpt.text()") == before


def test_an_opening_is_written_on_slowly_and_nothing_moves_meanwhile(
    open_page: Open, found: FoundModel
) -> None:
    page = open_page(found, context=MOVING)
    until(page, f"minigpt.text().length > {len(OPENING) + 3}")
    assert page.evaluate("minigpt.text()").startswith(OPENING)
    before = page.evaluate("minigpt.text().length")
    until(page, f"minigpt.text().length > {before}")
    assert page.evaluate(MOVED) < 0.02


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
    assert is_left_alone(page)


def test_it_is_not_played_where_motion_is_unwanted(open_page: Open, found: FoundModel) -> None:
    page = open_page(found)
    assert page.evaluate("minigpt.text()") == OPENING
    assert is_left_alone(page)


def test_a_link_and_a_reload_show_what_they_hold_instead(
    open_page: Open, found: FoundModel
) -> None:
    page = open_page(found, link="#prompt=There the cat", context=MOVING)
    assert page.evaluate("minigpt.text()") == "There the cat"
    assert is_left_alone(page)

    page = open_page(found, context=MOVING)
    page.locator("#text").click()
    until(page, "/[Ss]topped/.test(document.querySelector('#status').textContent)")
    page.locator("#text").fill("A crow")
    page.reload()
    page.evaluate("minigpt.ready")
    assert page.evaluate("minigpt.text()") == "A crow"
    assert is_left_alone(page)


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
