"""Why this word?: the sentence, the causes and the arcs are those of this token, and its own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minigpt.runs.read_model import FoundModel
from minigpt.tokenizer import make_tokenizer

from ..browser import two_frames
from .conftest import PROMPT, SHAPE, Open, choose, random_found, until, until_drawn, until_read
from .facts import check_facts, shown_facts

pytestmark = pytest.mark.page
WHOLE = "document.querySelector('#panel-why .causes[aria-busy]')?.ariaBusy === 'false'"
VIEW = "#panel-why"


@pytest.fixture(scope="module")
def opened(open_for_module: Open, found: FoundModel) -> Iterator[Any]:
    page = open_for_module(found, link=f"#prompt={PROMPT}&temperature=0.5&seed=7")
    yield page


@pytest.fixture
def page(opened: Any) -> Any:
    """The page about the sixth token, why it was written."""
    until_read(opened)
    open_view(opened, "why")
    look_at(opened, 5)
    until(opened, WHOLE)
    return opened


def open_view(page: Any, name: str) -> None:
    page.locator(f"#map [data-view={name}]").first.click()
    until(page, f"!document.querySelector('#panel-{name}').hidden")


def look_at(page: Any, index: int) -> None:
    """Choose a token with the mouse, and wait until the view is about it."""
    choose(page, index)
    until(page, "!document.querySelector('#panels > :not([hidden])[aria-busy=true]')")


def ids_of(found: FoundModel) -> list[int]:
    return found.tokenizer.encode(PROMPT)


def test_the_sentence_and_all_causes_are_the_models(page: Any, found: FoundModel) -> None:
    ids = ids_of(found)
    for button in page.locator(f"{VIEW} .causes > button").all():
        button.click()
    kinds = check_facts(page, VIEW, found, ids)
    assert kinds >= {"probability", "part", "logit", "word", "without"}

    facts = shown_facts(page, VIEW)
    assert {about["place"] for _, about, *_ in facts} == {5}
    parts = {about["part"]: value for what, about, value, _ in facts if what == "part"}
    (logit,) = [value for what, _, value, _ in facts if what == "logit"]
    assert len(parts) == 1 + 2 * (3 + 1)  # without biases
    assert sum(parts.values()) == pytest.approx(logit, abs=1e-3)
    rows = page.locator(f"{VIEW} [aria-labelledby=why-parts] li [data-what=part]").all()
    sizes = [abs(float(row.get_attribute("value"))) for row in rows]
    assert sizes == sorted(sizes, reverse=True)


def test_a_part_that_lowers_the_score_is_drawn_to_the_left(page: Any) -> None:
    for name in ("part", "word"):
        for row in page.locator(f"{VIEW} .cause:has([data-what={name}])").all():
            value = float(row.locator("data").get_attribute("value"))
            is_gain = row.locator(".amount").get_attribute("class") == "amount gain"
            helped = value < 0 if name == "word" else value >= 0
            assert is_gain == helped or value == 0


def test_a_head_shows_its_arcs_and_what_happens_without_it(page: Any, found: FoundModel) -> None:
    head = page.locator(f"{VIEW} .cause:has([data-about*='\"2.2\"'])")
    head.click()
    page.wait_for_selector(f"{VIEW} .detail [data-what=without]")
    assert check_facts(page, f"{VIEW} .detail", found, ids_of(found)) == {
        "without",
        "probability",
        "weight",
    }
    weights = found.glass.record(np.array(ids_of(found)[:5])).attention[1, 1, -1]
    until(page, "document.querySelectorAll('svg.arcs path.attention').length > 0")
    check_arcs(page, weights)

    head.focus()
    page.keyboard.press("Enter")
    until(page, "document.querySelectorAll('svg.arcs path').length === 0")
    assert page.evaluate("document.activeElement.dataset.key") == "part 2.2"


def check_arcs(page: Any, weights: Any) -> None:
    """One arc for each weight that can be seen, as thick as the weight: 12 pixels are 1."""
    arcs = page.locator("svg.arcs path.attention").all()
    drawn = {
        int(arc.get_attribute("data-to")): float(arc.get_attribute("stroke-width")) for arc in arcs
    }
    assert set(drawn) == {i for i, weight in enumerate(weights) if weight >= 0.01}
    for index, width in drawn.items():
        assert width == pytest.approx(12 * weights[index], abs=0.01)


def test_a_word_shows_its_effect_in_the_text(page: Any, found: FoundModel) -> None:
    words = page.locator(f"{VIEW} [aria-labelledby=why-words] button.cause")
    words.first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(f"{VIEW} .detail [data-what=word]")
    (_, about, bits, _), *_ = shown_facts(page, f"{VIEW} .detail")
    check_facts(page, f"{VIEW} .detail", found, ids_of(found))
    arc = page.locator("svg.arcs path")
    assert arc.count() == 1
    assert arc.get_attribute("class") == ("arc gain" if bits < 0 else "arc loss")
    assert int(arc.get_attribute("data-to")) == about["to"]
    page.keyboard.press("Enter")


def test_another_token_has_its_own_explanation(page: Any, found: FoundModel) -> None:
    for index in (3, 8, 2):
        choose(page, index)  # without waiting for the view
    until(page, WHOLE)
    places = {about["place"] for _, about, *_ in shown_facts(page, VIEW)}
    assert places == {2}
    check_facts(page, VIEW, found, ids_of(found))


def test_the_first_token_is_not_explained_and_a_short_text_is(
    open_page: Open, tmp_path: Path
) -> None:
    found = random_found(make_tokenizer("char", None, ["abc \n"]), tmp_path, **SHAPE)
    page = open_page(found, link="#prompt=a")
    until_read(page)
    open_view(page, "why")
    until(page, f"document.querySelector('{VIEW} [data-what=logit]') !== null")
    assert "comes next" in page.inner_text(f"{VIEW} .sentence")
    assert "always sees the last token" in page.inner_text(f"{VIEW}")
    check_facts(page, VIEW, found, found.tokenizer.encode("a"))

    look_at(page, 0)
    for view in ("why", "attention", "numbers"):
        open_view(page, view)
        until(page, f"document.querySelector('#panel-{view}').textContent.includes('first token')")
        assert shown_facts(page, f"#panel-{view}") == []
    assert page.locator("svg.arcs *").count() == 0


def test_without_a_head_all_numbers_are_of_the_model_without_it(
    page: Any, found: FoundModel
) -> None:
    page.locator("#map [data-view=heads]").click()
    page.locator("#panel-heads .switches button").nth(4).click()  # head 2.2
    open_view(page, "why")
    look_at(page, 6)
    until(page, WHOLE)
    two_frames(page)
    check_facts(page, VIEW, found, ids_of(found), off=[(1, 1)])
    for button in page.locator(f"{VIEW} .causes > button").all():
        button.click()
    two_frames(page)
    row = page.locator(f"{VIEW} .cause:has([data-about*='\"2.2\"'])")
    assert "switched off" in row.inner_text()
    assert float(row.locator("data").get_attribute("value")) == 0
    for view in ("attention", "numbers"):
        open_view(page, view)
        until(page, f"document.querySelectorAll('#panel-{view} data.fact').length > 3")
        until_drawn(page)
        check_facts(page, f"#panel-{view}", found, ids_of(found), off=[(1, 1)])
    page.get_by_role("button", name="Switch them on").click()


def test_a_text_longer_than_the_context_is_explained_within_its_window(
    open_page: Open, tmp_path: Path
) -> None:
    shape = SHAPE | {"context_length": 16}
    found = random_found(make_tokenizer("char", None, ["abc \n"]), tmp_path, **shape)
    text = "abca bcab acb bca cab acbb cab bca c"
    page = open_page(found, link=f"#prompt={text}")
    until_read(page)
    ids = found.tokenizer.encode(text)
    starts = windows(len(ids), 16)
    for view in ("why", "attention", "numbers"):
        open_view(page, view)
        for index in (1, 15, 16, 17, 24, 25, 35):
            look_at(page, index)
            place = f"document.querySelector('#panel-{view} data.fact').dataset.about"
            until(page, f"JSON.parse({place}).place === {index}")
            if view == "why":
                until(page, WHOLE)
            kinds = check_facts(page, f"#panel-{view}", found, ids, starts=starts)
            assert kinds >= {"why": {"part"}, "attention": {"weight"}, "numbers": {"score"}}[view]


def windows(n: int, size: int) -> list[int]:
    """Where the window of each place begins: a full one forgets its earlier half."""
    starts = [0]
    for place in range(1, n):
        is_full = place - starts[-1] > size
        starts.append(starts[-1] + size // 2 + 1 if is_full else starts[-1])
    return starts


def test_an_empty_text_has_a_sentence_and_no_square(open_page: Open, found: FoundModel) -> None:
    page = open_page(found, link="#prompt=")
    page.fill("#text", "")
    until_read(page)
    open_view(page, "attention")
    until(page, "document.querySelector('#panel-attention .sentence').textContent.length > 9")
    assert page.locator("#panel-attention canvas:visible").count() == 0
    open_view(page, "why")
    until(page, f"document.querySelector('{VIEW} [data-what=logit]') !== null")
    assert "the beginning" in page.inner_text(f"{VIEW} .sentence")
