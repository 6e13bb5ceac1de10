"""The page around its views: what it says first, how it opens, and how it fits a window."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from minigpt.config import TextConfig, TrainConfig
from minigpt.data.origin import Origin
from minigpt.page import build
from minigpt.runs.folder import RunConfig
from minigpt.runs.read_model import FoundModel
from minigpt.tokenizer import make_tokenizer

from ..browser import two_frames
from ..tokenizer.examples import FABLE
from .conftest import (
    SHAPE,
    Open,
    choose,
    open_view,
    random_found,
    tap,
    until,
    until_still,
    write,
    write_samples,
)

pytestmark = pytest.mark.page
PROMPT = "#prompt=There the cat eats dates and the cat sat&seed=7&maxNewTokens=12"
WIDTHS = (320, 390, 800, 1024, 1440, 1920)
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
MOVED = """async () => {
    let moved = 0;
    const add = list => { for (const { value } of list.getEntries()) moved += value; };
    const observer = new PerformanceObserver(add);
    observer.observe({ type: "layout-shift", buffered: true });
    for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
    add({ getEntries: () => observer.takeRecords() });
    return moved;
}"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> FoundModel:
    """A folder as a run's, with evaluations, samples and a text of 2.1 MB in a private place."""
    folder = tmp_path_factory.mktemp("run")
    figures = {"done": 1, "train_loss": 1, "val_loss": 1, "tokens_per_second": 9}
    bits = {"train_bits_per_byte": 2, "val_bits_per_byte": 2.1}
    rows = [figures | bits | {"step": step, "seconds": 1.2 * step} for step in (10, 50, 100)]
    (folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)))
    sample = "The cat eats the dates. A crow sat there and ate. There it was again.\n"
    write_samples(folder, dict.fromkeys((10, 50, 100), sample))
    (folder / "plan.json").write_text('{"text": {"size": 1900000, "validation": 200000}}')

    model = random_found(make_tokenizer("bpe", 320, [FABLE + sample]), folder, **SHAPE)
    text = TextConfig(files=("/home/ada/secret/tales.txt",), init="base")
    config = RunConfig(model.glass.config, TrainConfig(), Origin(text=text))
    return FoundModel(folder, model.glass, model.tokenizer, config)


@pytest.fixture
def page(open_page: Open, found: FoundModel) -> Any:
    return open_page(found, link=PROMPT)


@pytest.fixture
def phone(open_page: Open, found: FoundModel) -> Any:
    return open_page(found, link=PROMPT, context=PHONE)


def panel_top(page: Any) -> float:
    """Where the panel begins, once it has stopped moving."""
    until_still(page)
    return float(page.locator("#inside").bounding_box()["y"])


# What it says first


def test_the_first_sentence_tells_what_the_model_has_read(page: Any) -> None:
    assert page.inner_text("#hello") == (
        "This small language model has read tales (2.1 MB) for 2 minutes. "
        "Its training began with the base of minigpt. "
        "It guesses how a text goes on, one piece at a time."
    )


def test_the_senders_folders_are_not_in_the_page(found: FoundModel) -> None:
    html = build.build_page(found, "test")
    assert "secret" not in html and str(found.folder) not in html


def test_the_sizes_of_the_model_are_behind_a_button_each_in_a_statement(page: Any) -> None:
    page.get_by_role("button", name="About this model").focus()
    page.keyboard.press("Enter")
    statements = page.locator("#about li").all_inner_texts()
    assert any(re.search(r"rounded to 8 bits.* loss by 0 %", line) for line in statements)
    assert any(re.search(r"vocabulary has 320 tokens", line) for line in statements)
    assert any(re.search(r"at most the last 64 tokens", line) for line in statements)
    page.keyboard.press("Escape")
    assert not page.locator("#about").is_visible()
    assert page.evaluate("document.activeElement.id") == "open-about"


def test_an_opening_is_written_on_by_one_click(page: Any) -> None:
    openings = page.locator(".opening").all_inner_texts()
    assert openings == ["The cat eats the", "A crow sat there"]
    page.locator(".opening").nth(1).click()
    until(page, "minigpt.text().length > 20 && minigpt.text().startsWith('A crow sat there')")


# How it opens and fits


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_moves_while_the_page_opens_and_nothing_is_wider_than_the_window(
    open_page: Open, found: FoundModel, width: int
) -> None:
    page = open_page(found, width=width)
    until_still(page)
    assert page.evaluate(MOVED) < 0.02
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("width", [800, 1440])
def test_nothing_moves_by_itself_while_it_writes_and_the_views_answer(
    open_page: Open, found: FoundModel, width: int
) -> None:
    page = open_page(found, link=PROMPT, width=width)
    page.evaluate("""() => {
        window.moved = 0;
        const add = list => {
            const own = list.getEntries().filter(({ hadRecentInput }) => !hadRecentInput);
            for (const { value } of own) window.moved += value;
        };
        window.observer = new PerformanceObserver(add);
        window.observer.observe({ type: "layout-shift" });
    }""")
    write(page)
    choose(page, 6)
    for view in ("why", "attention", "vectors"):
        open_view(page, view)
        until_still(page)
    assert page.evaluate("window.moved") < 0.02


@pytest.mark.parametrize("width", [992, 1100, 1280])
def test_the_help_of_a_setting_is_wide_enough_to_be_read(
    open_page: Open, found: FoundModel, width: int
) -> None:
    page = open_page(found, link=PROMPT, width=width)
    widths = page.evaluate("""() => {
        for (const fold of document.querySelectorAll("#settings details, #settings")) {
            fold.open = true;
        }
        const helps = [...document.querySelectorAll("#settings small")];
        return helps.map(help => help.getBoundingClientRect().width);
    }""")
    assert widths and min(widths) > 150


def test_the_panels_place_and_least_height_do_not_depend_on_the_view(page: Any) -> None:
    tops = set()
    for view in ("draw", "layers", "heads"):
        open_view(page, view)
        box = page.locator(f"#panel-{view}").bounding_box()
        tops.add(box["y"])
    assert len(tops) == 1


def test_each_colour_of_data_can_be_seen_and_text_on_it_be_read(page: Any) -> None:
    for theme in ("light", "dark"):
        until(page, "true")
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        colours = page.evaluate("""() => {
            const style = getComputedStyle(document.documentElement);
            const names = ["--card", "--ink", "--surprise", "--attention", "--gain", "--loss"];
            return names.map(name => style.getPropertyValue(name));
        }""")
        card, ink, *tints = map(luminance, colours)
        for tint in tints:
            assert contrast(tint, card) >= 3
            assert contrast(tint, ink) >= 4.5


def luminance(colour: str) -> float:
    """Relative luminance of "#rrggbb" or "r g b", as WCAG defines it."""
    if colour.startswith("#"):
        parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    else:
        parts = [int(part) for part in colour.split()]
    linear = [
        c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4
        for c in (p / 255 for p in parts)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: float, other: float) -> float:
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


# On a phone


def test_a_tap_on_a_token_opens_the_panel_and_the_text_stays_in_sight(phone: Any) -> None:
    assert panel_top(phone) > 750
    tap(phone, 3)
    assert panel_top(phone) == pytest.approx(844 * 0.34, abs=3)
    token = phone.locator("#sheet [data-index='3']").bounding_box()
    assert token["y"] >= 0 and token["y"] + token["height"] <= 844 * 0.34


def test_the_panel_closes_by_its_button_a_swipe_and_escape(phone: Any) -> None:
    closed = panel_top(phone)
    toggle = phone.locator("#panel-toggle")
    toggle.tap()
    assert panel_top(phone) < closed
    toggle.tap()
    assert panel_top(phone) == closed
    assert phone.locator("#panel-body").evaluate("body => body.inert")

    for start, end in ((800, 400), (300, 600)):  # upwards, then downwards
        phone.mouse.move(60, start)
        phone.mouse.down()
        phone.mouse.move(60, end, steps=4)
        phone.mouse.up()
        assert (panel_top(phone) < closed) == (end < start)

    toggle.tap()
    phone.keyboard.press("Escape")
    assert panel_top(phone) == closed
    assert phone.evaluate("document.activeElement.id") == "panel-toggle"


@pytest.mark.parametrize("width", [390, 800])
def test_fingers_have_room_on_the_page_and_in_each_view(
    open_page: Open, found: FoundModel, width: int
) -> None:
    page = open_page(
        found, link=PROMPT, context=PHONE | {"viewport": {"width": width, "height": 844}}
    )
    tap(page, 6)
    small = """() => {
        const kinds = "button, select, summary, input, label:has(input)";
        const targets = document.querySelectorAll(kinds);
        const inLabel = target => target.matches("label > input[type=checkbox]");
        return [...targets]
            .filter(target => target.checkVisibility() && !inLabel(target))
            .map(target => [target.outerHTML.slice(0, 80), target.getBoundingClientRect()])
            .filter(([, { width, height }]) => width < 43.9 || height < 43.9)
            .map(([html]) => html);
    }"""
    for view in (
        "why",
        "draw",
        "attention",
        "numbers",
        "feedForward",
        "vectors",
        "learned",
    ):
        open_view(page, view)
        page.evaluate(
            "document.querySelectorAll('.view details').forEach(fold => { fold.open = true })"
        )
        two_frames(page)
        assert (view, page.evaluate(small)) == (view, [])


def test_the_heads_goal_and_the_parts_of_the_map_are_in_sight_on_a_phone(phone: Any) -> None:
    tap(phone, 6)
    captions = phone.locator("#map .caption").all_inner_texts()
    assert captions == ["attention: where each head looks", "feed-forward: which units fire"]
    open_view(phone, "attention")
    for element in ("#map .caption >> nth=0", "#panel-attention .goal"):
        box = phone.locator(element).bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390


def test_what_is_printed_has_no_buttons(page: Any, tmp_path: Path) -> None:
    page.emulate_media(media="print")
    visible = "[...document.querySelectorAll('button')].filter(b => b.checkVisibility()).length"
    assert page.evaluate(visible) <= page.locator(".bars button").count()
