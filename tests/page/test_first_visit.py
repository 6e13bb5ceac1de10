"""What somebody does who sees the page for the first time, and what they find."""

from typing import Any

import pytest

from minigpt.runs.read_model import FoundModel
from minigpt.tokenizer import make_tokenizer

from ..tokenizer.examples import FABLE
from .conftest import (
    SHAPE,
    Open,
    choose,
    open_view,
    random_found,
    tap,
    until,
    until_drawn,
    until_read,
    until_still,
    write,
    write_samples,
)

pytestmark = pytest.mark.page
LINK = "#prompt=There the cat eats dates and the cat sat&seed=7&maxNewTokens=8"
MOVING = {"viewport": {"width": 1200, "height": 900}, "reduced_motion": "no-preference"}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> FoundModel:
    folder = tmp_path_factory.mktemp("run")
    sample = "The cat eats the dates. A crow sat there and ate."
    write_samples(folder, {1: sample})
    return random_found(make_tokenizer("bpe", 320, [FABLE, sample]), folder, **SHAPE)


@pytest.fixture(scope="module")
def opened(open_for_module: Open, found: FoundModel) -> Any:
    page = open_for_module(found, link=LINK)
    until_read(page)
    return page


@pytest.fixture
def page(opened: Any) -> Any:
    choose(opened, 5)
    open_view(opened, "why")
    opened.click("#question-why")
    until_drawn(opened)
    return opened


def view(page: Any) -> str:
    """The one view in sight."""
    (panel,) = page.locator("#panels > section:visible").all()
    return str(panel.get_attribute("id")).removeprefix("panel-")


def test_while_the_opening_is_written_one_view_waits_and_says_what_can_be_done(
    open_page: Open, found: FoundModel
) -> None:
    page = open_page(found, context=MOVING)
    until(page, "document.querySelector('#stop:not(.idle)')")
    assert view(page) == "draw"
    assert page.get_attribute("#panel-draw", "aria-busy") == "true"
    assert "Choose a word" in page.inner_text("#subject-line")

    page.get_by_role("button", name="Stop").click()
    until_read(page)
    until_drawn(page)
    assert "What comes after" in page.inner_text("#subject-line")


def test_each_question_opens_its_answer(page: Any) -> None:
    page.click("#question-next")
    until_drawn(page)
    assert view(page) == "draw"
    page.click("#question-why")
    until_drawn(page)
    assert view(page) == "why"


def test_a_view_that_answers_both_questions_stays_open(page: Any) -> None:
    open_view(page, "attention")
    page.click("#question-next")
    until_drawn(page)
    assert view(page) == "attention"


def test_a_word_is_explained_also_where_the_whole_model_was_looked_at(page: Any) -> None:
    open_view(page, "learned")
    choose(page, 3)
    assert view(page) == "why"


def test_what_was_said_of_the_writing_goes_with_what_was_written(page: Any) -> None:
    write(page)
    until(page, "document.querySelector('#speed').textContent !== ''")
    page.get_by_role("button", name="Undo").click()
    until_read(page)
    assert page.inner_text("#said").strip() == ""


def test_an_unlikely_word_is_said_to_be_drawn_but_not_one_that_was_typed(page: Any) -> None:
    typed = page.evaluate("minigpt.now().ids.length")
    choose(page, 3)
    assert "The die fell on it" not in page.inner_text("#panel-why .sentence")

    write(page)
    said = []
    for place in range(typed, page.evaluate("minigpt.now().ids.length")):
        choose(page, place)
        sentence = page.inner_text("#panel-why .sentence")
        said.append("The die fell on it" in sentence)
        assert said[-1] == ("guess number" in sentence)
    assert any(said)


def below_bar(page: Any, selector: str) -> float:
    """Pixels between the first line of the panel and the top of an element, when all is drawn."""
    until_still(page)
    bar, element = page.locator("#panel-bar"), page.locator(selector)
    under = bar.bounding_box()["y"] + bar.bounding_box()["height"]
    return float(element.bounding_box()["y"] - under)


def test_on_a_phone_a_tap_shows_the_answer_and_the_tour_comes_first(
    open_page: Open, found: FoundModel
) -> None:
    page = open_page(found, link=LINK, context=PHONE)
    until_read(page)
    tap(page, 5)
    assert 0 <= below_bar(page, "#panel-draw .view-head") < 40

    page.get_by_role("button", name="Tour", exact=True).tap()
    assert 0 <= below_bar(page, "#tour") < 40
    page.click("#tour-end")
    open_view(page, "learned")
    assert 0 <= below_bar(page, "#panel-learned .view-head") < 40
