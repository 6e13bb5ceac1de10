"""The map of the model, and the views of its inside: vectors, feed-forward, layers, heads off."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minigpt.runs.read_model import FoundModel
from minigpt.tokenizer import make_tokenizer

from .conftest import PROMPT, SHAPE, Open, choose, open_view, random_found, until_drawn
from .facts import Predicted, check_facts, shown_facts

pytestmark = pytest.mark.page


@pytest.fixture
def page(open_page: Open, found: FoundModel) -> Any:
    page = open_page(found, link=f"#prompt={PROMPT}")
    until_drawn(page)
    return page


@pytest.fixture
def ids(found: FoundModel) -> list[int]:
    return found.tokenizer.encode(PROMPT)


def kinds(page: Any, selector: str) -> list[str]:
    return [what for what, *_ in shown_facts(page, selector)]


def places(page: Any, selector: str) -> set[int]:
    return {about["place"] for _, about, *_ in shown_facts(page, selector)}


def test_the_map_shows_what_the_model_computes_for_the_chosen_token(
    page: Any, found: FoundModel, ids: list[int]
) -> None:
    check_facts(page, "#map", found, ids)
    assert sorted(kinds(page, "#map")) == ["norm"] * 2 + ["probability"] * 3
    assert places(page, "#map") == {len(ids)}

    choose(page, 6)
    check_facts(page, "#map", found, ids)
    assert places(page, "#map") == {6}
    read = page.locator("#map .tokens .token").first.inner_text()
    assert read == found.tokenizer.decode([ids[5]]).replace(" ", "␣")


def test_tokens_of_the_map_are_shown_whole_the_last_one_at_the_right(page: Any) -> None:
    for index in (3, 6, 9):
        choose(page, index)
        shown = page.evaluate("""() => {
            const box = document.querySelector("#map .tokens .content").getBoundingClientRect();
            return [...document.querySelectorAll("#map .tokens .content > *")]
                .map(token => token.getBoundingClientRect())
                .filter(({ top }) => top < box.bottom)
                .map(({ left, right }) => [left - box.left, box.right - right]);
        }""")
        assert shown and all(left >= 0 for left, _ in shown)
        assert shown[0][1] == pytest.approx(0, abs=1)


def test_a_head_that_sees_one_token_alone_has_no_picture(page: Any) -> None:
    page.fill("#text", "")
    until_drawn(page)
    assert page.locator("#map .attention canvas").count() == 0
    assert page.locator("#map .feedForward canvas").count() == 2


def test_each_box_of_the_map_opens_its_view_and_is_lit(page: Any) -> None:
    boxes = page.locator("#map button")
    for i in range(boxes.count()):
        boxes.nth(i).click()
        until_drawn(page)
        view = boxes.nth(i).get_attribute("data-view")
        assert page.locator(f"#panel-{view}").is_visible()
        assert boxes.nth(i).get_attribute("aria-current") == "true"
        assert page.locator("#panels > section:visible").count() == 1

    page.get_by_role("button", name="feed-forward: which units fire, layer 2").click()
    until_drawn(page)
    assert page.input_value("#panel-feedForward select") == "1"
    assert page.locator("#map .feedForward[aria-current]").count() == 1


def test_a_view_that_is_left_while_it_is_drawn_is_not_busy_for_ever(page: Any) -> None:
    page.wait_for_selector(".view[aria-busy=false]:not([hidden])")  # the first one is drawn
    page.evaluate("""() => {
        const later = window.requestAnimationFrame;
        window.requestAnimationFrame = (draw) => draw();  // at once, before the worker answers
        document.querySelector("[data-view=attention]").click();
        document.querySelector("[data-view=layers]").click();
        window.requestAnimationFrame = later;
    }""")
    until_drawn(page)
    assert page.locator("#panel-layers").is_visible()


def test_arrow_keys_move_between_the_boxes_and_one_is_in_the_tab_order(page: Any) -> None:
    names = "document.activeElement.querySelector('.name').textContent"
    assert page.locator("#map button[tabindex='0']").count() == 1
    page.locator("#map button").first.focus()
    met = []
    for key in ("ArrowDown", "ArrowRight", "Home", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
        met.append(page.evaluate(names))
    assert met[0] == "Vectors"
    assert met[2:] == ["Tokens", "1", "2"]  # from the tokens to the feed-forward of layer 1 and 2
    page.keyboard.press("Enter")
    until_drawn(page)
    assert page.locator("#panel-feedForward").is_visible()
    assert page.input_value("#panel-feedForward select") == "1"
    assert page.locator("#map button[tabindex='0']").count() == 1


@pytest.mark.parametrize("shape", [{"num_layers": 1}, {"num_layers": 30}])
def test_the_map_fits_models_of_1_to_30_layers_on_a_phone(
    open_page: Open, found: FoundModel, tmp_path: Path, shape: dict[str, int]
) -> None:
    model = random_found(found.tokenizer, tmp_path, **{**SHAPE, **shape})
    page = open_page(model, link=f"#prompt={PROMPT}", width=390)
    page.click("#panel-toggle")
    until_drawn(page)
    assert page.locator("#map .attention.box").count() == shape["num_layers"]
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    sizes = [box.bounding_box() for box in page.locator("#map button").all()]
    assert min(min(size["width"], size["height"]) for size in sizes) >= 44
    page.locator("#map .attention.box").last.click()
    until_drawn(page)
    assert page.locator("#panel-attention").is_visible()


def test_vectors_show_the_nearest_tokens_and_how_the_stream_grows(
    page: Any, found: FoundModel, ids: list[int]
) -> None:
    choose(page, 6)
    open_view(page, "vectors")
    check_facts(page, "#panel-vectors", found, ids)
    shown = kinds(page, "#panel-vectors")
    assert (shown.count("similarity"), shown.count("norm")) == (16, 2 + 3)

    about = {"token": ids[5]}
    predicted = Predicted(found, ids, 6)
    others = [i for i in range(320) if i != ids[5]]
    every = [predicted.number("similarity", about | {"other": i}) for i in others]
    nearest = [f[2] for f in shown_facts(page, "#panel-vectors") if f[0] == "similarity"][:8]
    assert nearest == pytest.approx(sorted(every)[:-9:-1], abs=1e-4)
    assert "token 6 of the 64" in page.inner_text("#panel-vectors")


@pytest.mark.parametrize("architecture", ["qwen3", "gpt2"])
def test_feed_forward_shows_the_units_that_fire_most_and_where_else(
    open_page: Open, found: FoundModel, tmp_path: Path, ids: list[int], architecture: str
) -> None:
    model = random_found(found.tokenizer, tmp_path, architecture=architecture, **SHAPE)
    page = open_page(model, link=f"#prompt={PROMPT}")
    choose(page, 9)
    open_view(page, "feedForward")
    page.select_option("#panel-feedForward select", label="2")
    until_drawn(page)
    page.click("#panel-feedForward summary")
    check_facts(page, "#panel-feedForward", model, ids)

    units = [about for _, about, *_ in shown_facts(page, "#panel-feedForward")]
    here = {about["unit"] for about in units if about["place"] == 9}
    assert all(about["layer"] == 1 for about in units) and len(here) == 12
    strength = [
        abs(Predicted(model, ids, 9).number("unit", {"layer": 1, "unit": unit}))
        for unit in range(model.glass.config.ff_dim)
    ]
    assert here == set(np.argsort(strength)[-12:].tolist())

    page.locator("#panel-feedForward button.chip").first.click()
    until_drawn(page)
    assert "What comes after" in page.inner_text("#subject-line")
    check_facts(page, "#panel-feedForward", model, ids)


def test_layers_show_what_the_model_would_say_after_each(
    page: Any, found: FoundModel, ids: list[int]
) -> None:
    last = "#panel-layers tbody tr:last-child td.chosen"
    for place in (2, 7):
        choose(page, place)
        open_view(page, "layers")
        check_facts(page, "#panel-layers", found, ids)
        assert page.locator("#panel-layers tbody tr").count() == 3
        assert kinds(page, "#panel-layers .sentence") != []

        (_, about, *_), *_ = shown_facts(page, last)
        likeliest = int(Predicted(found, ids, place).probabilities.argmax())
        assert about == {"place": place, "token": likeliest, "layer": 2}

    page.click("#question-next")
    until_drawn(page)
    check_facts(page, "#panel-layers", found, ids)
    assert places(page, last) == {8}


def test_heads_that_are_off_are_off_for_all_views(
    page: Any, found: FoundModel, ids: list[int]
) -> None:
    choose(page, 6)
    open_view(page, "heads")
    check_facts(page, "#panel-heads", found, ids)
    assert "All 6 heads are on" in page.inner_text("#panel-heads")

    page.get_by_role("button", name="Head 1.3").click()
    until_drawn(page)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    until_drawn(page)
    assert "Without heads 1.3, 2.3" in page.inner_text("#panel-heads")

    off = [(0, 2), (1, 2)]
    kinds = check_facts(page, "#panel-heads", found, ids, off=off)
    assert kinds == {"divergence", "whole", "probability"}
    check_facts(page, "#map", found, ids, off=off)
    for view in ("draw", "vectors", "layers", "feedForward"):
        open_view(page, view)
        assert check_facts(page, f"#panel-{view}", found, ids, off=off)

    open_view(page, "heads")
    page.locator("#panel-heads").get_by_role("button", name="All on").click()
    until_drawn(page)
    check_facts(page, "#map", found, ids)


def test_at_the_first_token_each_view_says_that_nothing_predicts_it(page: Any) -> None:
    choose(page, 0)
    for view in ("draw", "vectors", "feedForward", "layers", "heads"):
        open_view(page, view)
        assert "before the first token" in page.inner_text(f"#panel-{view} .sentence")
        assert shown_facts(page, f"#panel-{view}") == []
        assert page.inner_text("#problem") == ""
    assert shown_facts(page, "#map") == []


def test_with_an_empty_text_each_view_is_about_its_beginning(
    open_page: Open, tmp_path: Path
) -> None:
    model = random_found(make_tokenizer("char", None, ["abc"]), tmp_path, **SHAPE)
    page = open_page(model, link="#prompt=")
    until_drawn(page)
    ids = [model.tokenizer.end_of_text]  # what an empty beginning stands for in this model
    for view in ("draw", "vectors", "feedForward", "layers", "heads"):
        open_view(page, view)
        check_facts(page, f"#panel-{view}", model, ids, hidden=1)
        assert "the beginning" in page.inner_text(f"#panel-{view} .sentence")
    assert page.inner_text("#problem") == ""
    assert "ended" not in page.inner_text("#sheet")


def test_a_view_of_the_inside_is_saved_as_a_picture(page: Any) -> None:
    for view, text in (
        ("vectors", "similar"),
        ("layers", "layer"),
        ("draw", "die"),
        ("heads", "1.1"),
    ):
        open_view(page, view)
        with page.expect_download() as download:
            page.locator(f"#panel-{view}").get_by_role("button", name="Save SVG").click()
        svg = Path(download.value.path()).read_text()
        assert re.search(rf">[^<]*{text}", svg), view
