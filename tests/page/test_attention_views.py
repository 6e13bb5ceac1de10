"""Attention and By numbers: what is shown of a head is the glass engine's, and about this token."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minigpt.runs.read_model import FoundModel
from minigpt.tokenizer import make_tokenizer

from ..browser import two_frames
from .conftest import PROMPT, SHAPE, Open, random_found, until, until_drawn, until_read
from .facts import check_facts, shown_facts
from .test_why import check_arcs, ids_of, look_at, open_view

pytestmark = pytest.mark.page
VIEW = "#panel-attention"
CELL = f"{VIEW} .large [data-what=cell]"


@pytest.fixture(scope="module")
def opened(open_for_module: Open, found: FoundModel) -> Any:
    return open_for_module(found, link=f"#prompt={PROMPT}&seed=7")


@pytest.fixture
def page(opened: Any) -> Any:
    """The attention of the row that predicts the sixth token."""
    until_read(opened)
    open_view(opened, "attention")
    look_at(opened, 5)
    until(opened, f"document.querySelector('{VIEW} .head-row button') !== null")
    return opened


def pick_head(page: Any, name: str) -> None:
    page.locator(f"{VIEW} .head-row button[data-key='head {name}']").click()
    until(page, f"document.querySelector('{VIEW} .sentence').textContent.includes('head {name}')")
    until_drawn(page)


def test_heads_come_in_the_order_of_what_they_did_counted_from_1(
    page: Any, found: FoundModel
) -> None:
    parts = [value for what, _, value, _ in shown_facts(page, f"{VIEW} .head-row")]
    assert len(parts) == 6
    assert [abs(part) for part in parts] == sorted((abs(part) for part in parts), reverse=True)
    check_facts(page, VIEW, found, ids_of(found))
    names = page.locator(f"{VIEW} .head-row b").all_inner_texts()
    assert sorted(names) == ["1.1", "1.2", "1.3", "2.1", "2.2", "2.3"]


def test_arcs_are_as_thick_as_the_weights_also_with_the_keyboard(
    page: Any, found: FoundModel
) -> None:
    attention = found.glass.record(np.array(ids_of(found)[:5])).attention
    pick_head(page, "1.3")
    check_arcs(page, attention[0, 2, -1])
    page.locator(f"{VIEW} .head-row button[aria-pressed=true]").focus()
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    two_frames(page)
    name = page.inner_text(f"{VIEW} .head-row button[aria-pressed=true] b")
    layer, head = (int(part) - 1 for part in name.split("."))
    check_arcs(page, attention[layer, head, -1])
    assert page.evaluate("document.activeElement.dataset.key") == f"head {name}"


def test_the_triangle_has_names_on_both_axes_and_an_absolute_scale(
    page: Any, found: FoundModel
) -> None:
    page.locator(f"{VIEW} summary").click()
    pick_head(page, "2.1")
    page.wait_for_selector(CELL)
    weights = found.glass.record(np.array(ids_of(found)[:5])).attention[1, 0]
    grid = page.get_by_role("grid")
    grid.focus()
    for key, row, column in (("Home", 4, 0), ("ArrowRight", 4, 1), ("ArrowUp", 3, 1)):
        page.keyboard.press(key)
        value = float(page.get_attribute(CELL, "value"))
        assert value == pytest.approx(weights[row, column], abs=1e-4)
        labels = [page.inner_text(f"{VIEW} .{side}-label") for side in ("row", "column")]
        ids = ids_of(found)
        names = [page.evaluate("id => minigpt.decode([id])", ids[i]) for i in (row, column)]
        assert labels == [name.replace(" ", "␣") for name in names]

    box = page.locator(f"{VIEW} .matrix canvas").bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.5 * box["height"])
    assert float(page.get_attribute(CELL, "value")) == pytest.approx(weights[2, 1], abs=1e-4)

    page.get_by_role("checkbox", name="as a table").check()
    page.wait_for_selector(f"{VIEW} tbody td")
    check_facts(page, VIEW, found, ids_of(found))
    page.get_by_role("checkbox", name="as a table").uncheck()
    page.locator(f"{VIEW} summary").first.click()


def test_a_query_is_followed_with_the_numbers_of_the_row_that_predicts(
    page: Any, found: FoundModel
) -> None:
    open_view(page, "numbers")
    for layer, head in (("1", "1"), ("2", "3")):
        page.get_by_label("layer", exact=True).select_option(label=layer)
        page.get_by_label("head", exact=True).select_option(label=head)
        sentence = "document.querySelector('#panel-numbers .sentence').textContent"
        until(page, f"{sentence}.includes('head {layer}.{head}')")
        facts = shown_facts(page, "#panel-numbers")
        assert {about["layer"] for _, about, *_ in facts} == {int(layer) - 1}
        assert len([1 for what, *_ in facts if what == "product"]) == 5  # tokens before it
        kinds = check_facts(page, "#panel-numbers", found, ids_of(found))
        vectors = {"query", "key", "value", "context", "output"}
        assert kinds == vectors | {"product", "score", "weight", "added", "norm"}
    arcs = found.glass.record(np.array(ids_of(found)[:5])).attention[1, 2, -1]
    check_arcs(page, arcs)


def test_a_head_that_looks_everywhere_alike_paints_nothing_strongly(
    open_page: Open, tmp_path: Path
) -> None:
    found = random_found(make_tokenizer("char", None, ["abc \n"]), tmp_path, **SHAPE)
    found.glass.weights["blocks.0.attention.W_query.weight"][:] = 0  # all scores are 0
    page = open_page(found, link=f"#prompt={'abc ' * 10}")
    until_read(page)
    open_view(page, "attention")
    until(page, f"document.querySelector('{VIEW} .head-row button') !== null")
    pick_head(page, "1.1")
    widths = [
        float(arc.get_attribute("stroke-width")) for arc in page.locator("svg.arcs path").all()
    ]
    assert len(widths) >= 39  # tokens
    assert max(widths) < 0.5  # pixels; 12 are a weight of 1


def test_arcs_end_at_their_tokens_where_the_text_wraps_and_is_scrolled(
    open_page: Open, tmp_path: Path
) -> None:
    shape = SHAPE | {"context_length": 600}
    found = random_found(make_tokenizer("char", None, ["abc \n"]), tmp_path, **shape)
    for layer in (0, 1):  # so that some tokens of many are looked at more than the others
        found.glass.weights[f"blocks.{layer}.attention.query_norm.weight"][:] *= 8
    page = open_page(found, link=f"#prompt={'abca bcab ' * 55}", width=800)
    until_read(page)
    open_view(page, "attention")
    until(page, f"document.querySelector('{VIEW} .head-row button') !== null")
    distances = """() => [...document.querySelectorAll("svg.arcs path")].map(path => {
        const token = document.querySelector(`#writing [data-index="${path.dataset.to}"]`);
        const { left, top, width } = token.getBoundingClientRect();
        const { x, y } = path.getPointAtLength(0).matrixTransform(path.getScreenCTM());
        return Math.hypot(left + width / 2 - x, top - y);
    })"""
    for top in (0, 40, 100_000):
        page.evaluate("y => (document.querySelector('#paper').scrollTop = y)", top)
        two_frames(page)
        assert page.evaluate(distances) and max(page.evaluate(distances)) < 1.5
    page.set_viewport_size({"width": 500, "height": 900})
    two_frames(page)
    assert page.evaluate(distances) and max(page.evaluate(distances)) < 1.5


def test_pictures_hold_the_arcs(page: Any, tmp_path: Path) -> None:
    open_view(page, "attention")
    with page.expect_download() as download:
        page.locator(VIEW).get_by_role("button", name="Save SVG").click()
    picture = ElementTree.fromstring(Path(download.value.path()).read_bytes())
    parts = [element.tag.split("}")[1] for element in picture.iter()]
    strip = page.locator(f"{VIEW} .arc-strip path").count()
    assert strip > 0 and parts.count("path") == strip
    strokes = [e.get("stroke") for e in picture.iter() if e.tag.endswith("path")]
    assert all(re.fullmatch(r"rgb\(\d+,\d+,\d+\)", stroke) for stroke in strokes)
