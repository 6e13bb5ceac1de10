"""The tour: five steps on the text on view, and how the model learned."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minigpt.generation.sampler import log_softmax
from minigpt.runs.read_model import FoundModel
from minigpt.tokenizer import make_tokenizer

from ..tokenizer.examples import FABLE
from .conftest import SHAPE, Open, open_view, random_found, until, until_still, write_samples

pytestmark = pytest.mark.page
PROMPT = "#prompt=There the cat eats dates and the cat sat there and ate&seed=7"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> FoundModel:
    folder = tmp_path_factory.mktemp("run")
    rows = [
        {
            "step": step,
            "seconds": 60.0 * step,
            "done": step / 3,
            "train_loss": 1,
            "val_loss": 1,
            "tokens_per_second": 9,
            "train_bits_per_byte": 3.25 - step / 2,
            "val_bits_per_byte": 3.5 - step / 2,
        }
        for step in (1, 2, 3)
    ]
    (folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)))
    write_samples(folder, {1: "xq", 3: "The cat sat."})
    return random_found(make_tokenizer("bpe", 320, [FABLE]), folder, **SHAPE)


def title(page: Any) -> str:
    return str(page.inner_text("#tour-title"))


def wait_for_title(page: Any, expected: str) -> None:
    until(page, f"document.querySelector('#tour-title')?.textContent === {json.dumps(expected)}")


def press_on(page: Any, selector: str) -> None:
    """Reach an element by the Tab key alone, and press Enter."""
    for _ in range(40):
        if page.evaluate(f"document.activeElement.matches({json.dumps(selector)})"):
            page.keyboard.press("Enter")
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the Tab key does not lead to {selector}")


def test_the_tour_is_done_by_the_keyboard_alone(open_page: Open, found: FoundModel) -> None:
    page = open_page(found, link=PROMPT)
    press_on(page, "#begin-tour")
    wait_for_title(page, "Guess the next word")
    assert page.evaluate("document.documentElement.dataset.tour") == "guess"
    press_on(page, ".guess")
    until(page, "document.querySelector('#tour').textContent.includes('You paid')")
    assert page.evaluate("document.documentElement.dataset.tour") == ""

    for expected in ("Tokens", "Surprise", "Attention", "Switch a head off"):
        press_on(page, "#tour-next")
        wait_for_title(page, expected)
        assert page.evaluate("document.activeElement.id") == "tour-title"
    press_on(page, "#tour-switch")
    until(page, "document.querySelector('#tour').textContent.includes('is off')")
    check_switched_off(page, found)

    press_on(page, "#tour-end")
    assert not page.locator("#tour").is_visible()
    assert page.evaluate("document.activeElement.id") == "begin-tour"


def test_the_tour_is_done_with_a_finger_and_the_example_stays_in_sight(
    open_page: Open, found: FoundModel
) -> None:
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    page = open_page(found, link=PROMPT, context=phone)
    page.locator("#begin-tour").tap()
    wait_for_title(page, "Guess the next word")
    page.locator(".guess").first.tap()
    until(page, "document.querySelector('#tour').textContent.includes('You paid')")

    for expected in ("Tokens", "Surprise", "Attention", "Switch a head off"):
        page.locator("#tour-next").tap()
        wait_for_title(page, expected)
        until_still(page)  # the sheet from below moves
        chosen = page.locator("#tokens .chosen").bounding_box()
        panel = page.locator("#inside").bounding_box()
        assert chosen["y"] >= 0 and chosen["y"] + chosen["height"] <= panel["y"]

    page.locator("#tour-switch").tap()
    until(page, "document.querySelector('#tour').textContent.includes('is off')")
    check_switched_off(page, found)
    page.locator("#tour-end").tap()
    assert not page.locator("#tour").is_visible()


def check_switched_off(page: Any, found: FoundModel) -> None:
    """The probability that the last step shows is the glass engine's without the head it names."""
    fact = page.locator("#tour .fact")
    about = json.loads(fact.get_attribute("data-about"))
    named = re.search(r"Head (\d+)\.(\d+) is off", page.inner_text("#tour"))
    assert named
    layer, head = (int(part) - 1 for part in named.groups())
    ids = found.tokenizer.encode(page.evaluate("minigpt.text()"))
    record = found.glass.record(np.array(ids[: about["place"]]), [(layer, head)])
    chances = np.exp(log_softmax(found.glass.logits(record.residual[-1, -1])))
    assert float(fact.get_attribute("value")) == pytest.approx(chances[about["token"]], abs=1e-3)


def test_a_sure_and_right_guess_costs_the_bits_that_it_says(
    open_page: Open, found: FoundModel
) -> None:
    page = open_page(found, link=PROMPT)
    page.click("#begin-tour")
    wait_for_title(page, "Guess the next word")
    page.locator("#tour-sure").fill("80")
    page.locator(".guess").first.click()
    until(page, "document.querySelector('#tour').textContent.includes('You paid')")
    text = page.inner_text("#tour")
    right = "Right" in text
    expected = -np.log2(0.8) if right else -np.log2(0.2 / 4)
    paid = re.search(r"You paid ([\d.]+) bits", text)
    assert paid and float(paid[1]) == pytest.approx(expected, abs=0.051)


def test_the_tour_can_be_skipped_and_ends_with_the_text_that_it_is_about(
    open_page: Open, found: FoundModel
) -> None:
    page = open_page(found, link=PROMPT)
    page.click("#begin-tour")
    wait_for_title(page, "Guess the next word")
    page.keyboard.press("Escape")
    assert not page.locator("#tour").is_visible()
    assert page.evaluate("document.documentElement.dataset.tour") == ""

    page.click("#begin-tour")
    wait_for_title(page, "Guess the next word")
    page.get_by_role("button", name="Write", exact=True).click()
    until(page, "document.querySelector('#tour').hidden")


def test_a_short_text_is_written_on_for_the_tour(open_page: Open, found: FoundModel) -> None:
    page = open_page(found, link="#prompt=The cat")
    page.click("#begin-tour")
    wait_for_title(page, "Guess the next word")
    assert page.evaluate("minigpt.text().length") > 20


# How it learned


def open_learned(page: Any) -> None:
    open_view(page, "learned")
    page.wait_for_selector("#panel-learned", state="visible")


def test_the_slider_goes_through_the_evaluations_by_keyboard(
    open_page: Open, found: FoundModel
) -> None:
    page = open_page(found, link=PROMPT)
    open_learned(page)
    panel = page.locator("#panel-learned")
    assert "After 3 minutes (3 steps)" in panel.inner_text()
    assert "needed 2.00 bits" in panel.inner_text() and "1.75 bits" in panel.inner_text()
    assert panel.locator("blockquote").inner_text() == "The cat sat."
    panel.locator("input").focus()
    page.keyboard.press("ArrowLeft")
    assert "No sample" in panel.inner_text() and "needed 2.50 bits" in panel.inner_text()
    page.keyboard.press("Home")
    assert panel.locator("blockquote").inner_text() == "xq"
    assert panel.locator("input").get_attribute("aria-valuetext") == "60 seconds, step 1"

    box = panel.locator("svg.curve").bounding_box()
    page.mouse.click(box["x"] + box["width"] - 20, box["y"] + 60)
    assert "After 3 minutes" in panel.inner_text()


def test_a_model_without_a_record_of_its_training_says_so(open_page: Open, tmp_path: Path) -> None:
    page = open_page(random_found(make_tokenizer("bpe", 320, [FABLE]), tmp_path, **SHAPE))
    open_learned(page)
    assert "no record of the training" in page.inner_text("#panel-learned")
