"""What a person does on the page, with the mouse and with the keyboard, and what comes of it."""

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minigpt.config import TextConfig, TrainConfig
from minigpt.data.source import find_source
from minigpt.generation.scoring import log_softmax
from minigpt.runs.folder import RunConfig
from minigpt.runs.found import FoundModel
from minigpt.tokenizer import make_tokenizer

from ..tokenizer.examples import FABLE
from .conftest import Open, random_found, until

pytestmark = pytest.mark.page
SHAPE = {"emb_dim": 24, "num_layers": 2, "num_heads": 3, "context_length": 64}
PROMPT = "There the cat eats dates and the cat sat"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> FoundModel:
    """A run whose training text is there."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "my.txt").write_text(FABLE)
    model = random_found(make_tokenizer("bpe", 320, [FABLE]), folder, **SHAPE)
    text = TextConfig(files=(str(folder / "my.txt"),))
    config = RunConfig(model.glass.config, TrainConfig(), find_source(text).origin(text))
    return FoundModel(folder, model.glass, model.tokenizer, config)


@pytest.fixture
def page(open_page: Open, found: FoundModel) -> Any:
    link = f"#prompt={PROMPT}&temperature=0.5&seed=7&maxNewTokens=12"
    page = open_page(found, link=link, weights="float32", with_text=True)
    page.wait_for_selector('[role=option][aria-label*="bits of surprise"]')
    return page


def write(page: Any) -> str:
    page.get_by_role("button", name="Write", exact=True).click()
    return written(page)


def written(page: Any) -> str:
    """The text on view once it is written."""
    page.wait_for_timeout(200)  # until it has begun
    until(page, "document.querySelector('#tokens').ariaBusy === 'false'")
    return str(page.evaluate("minigpt.text()"))


def test_a_text_is_written_continued_undone_and_with_the_same_seed_written_again(page: Any) -> None:
    first = write(page)
    assert first.startswith(PROMPT) and first != PROMPT
    assert re.match(r"12 tokens written", page.inner_text("#status"))
    page.get_by_role("button", name="Continue").click()
    assert written(page).startswith(first) and written(page) != first
    page.get_by_role("button", name="Undo").click()
    assert written(page) == first
    page.get_by_role("button", name="Again").focus()
    page.keyboard.press("Enter")
    assert written(page) != first and page.input_value("#set-seed") == "8"
    page.fill("#set-seed", "7")
    assert write(page) == first
    assert page.locator("#texts li").count() == 4


def test_stop_acts_at_once(page: Any) -> None:
    page.fill("#set-maxNewTokens", "2000")
    page.get_by_role("button", name="Write", exact=True).click()
    page.get_by_role("button", name="Stop").click()
    written(page)
    assert re.match(r"\d+ tokens written, stopped", page.inner_text("#status"))


def test_tokens_are_tinted_by_their_surprise(page: Any, found: FoundModel) -> None:
    ids = found.tokenizer.encode(PROMPT)
    nats = log_softmax(found.glass(np.array([ids]))[0])[np.arange(len(ids) - 1), ids[1:]]
    labels = [t.get_attribute("aria-label") for t in page.locator("#tokens [data-index]").all()]
    shown = [float(re.search(r", ([\d.]+) bits", label)[1]) for label in labels[1:-1]]
    np.testing.assert_allclose(shown, -nats / np.log(2), atol=0.06)


def test_an_alternative_branches_and_settings_reshape_the_bars(page: Any) -> None:
    before = write(page)
    page.locator("#tokens [data-index='3']").hover()
    assert page.inner_text("#panel-draw .readout >> nth=0").count("rank") == 1
    page.locator("#tokens [data-index='3']").click()
    bars = page.locator("#panel-draw .bars button")
    figures = bars.nth(1).inner_text()
    page.locator("#set-topK").focus()
    page.keyboard.press("ArrowRight")  # from "all" to 1
    page.wait_for_timeout(100)
    assert "0 %" in bars.nth(1).inner_text() != figures
    assert "1 token can be drawn" in page.inner_text("#panel-draw")
    bars.nth(2).focus()
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#status').textContent.includes('12 tokens')")
    assert written(page) != before
    page.evaluate("document.querySelector('#texts').open = true")
    page.locator("#texts button").first.click()
    assert written(page) == before


def test_attention_is_shown_in_the_triangle_and_in_the_text(page: Any, found: FoundModel) -> None:
    page.locator("#tab-draw").focus()
    page.keyboard.press("ArrowRight")
    heads = page.locator("#panel-attention .heads button")
    heads.nth(4).click()  # layer 1, head 1
    page.locator("#tokens [data-index='5']").focus()
    weights = found.glass.record(np.array(found.tokenizer.encode(PROMPT))).attention[1, 1]
    readout = page.locator("#panel-attention .readout")
    until(page, "document.querySelector('.large h3').textContent.includes('1, head 1')")
    page.wait_for_timeout(100)
    assert f"{weights[5].max():.2f}" in readout.inner_text()
    grid = page.get_by_role("grid")
    grid.focus()
    for key, row, column in (("Home", 5, 0), ("ArrowRight", 5, 1), ("ArrowUp", 4, 1)):
        page.keyboard.press(key)
        page.wait_for_timeout(100)
        assert readout.inner_text().endswith(f"{weights[row, column]:.2f}")
    tint = "getComputedStyle(document.querySelector(`[data-index='1']`)).getPropertyValue('--tint')"
    expected = np.sqrt(weights[4, 1] / weights[4].max())
    assert float(page.evaluate(tint)) == pytest.approx(expected, abs=0.01)
    page.get_by_label("hide the first token").check()
    page.get_by_label("looked at by").check()
    page.get_by_label("as a table").check()
    page.wait_for_timeout(100)
    cell = page.locator("#panel-attention tbody tr").nth(4).locator("td").nth(1)
    assert float(cell.inner_text()) == pytest.approx(weights[4, 1] / (1 - weights[4, 0]), abs=0.006)


def test_a_query_is_followed_and_layers_and_heads_are_taken_apart(
    page: Any, found: FoundModel
) -> None:
    ids = np.array(found.tokenizer.encode(PROMPT))
    page.locator("#tokens [data-index='3']").click()
    page.click("#tab-numbers")
    page.wait_for_selector("#panel-numbers tbody")
    rows = page.locator("#panel-numbers tbody tr")
    shown = [float(rows.nth(i).locator("td").nth(3).inner_text()) for i in range(4)]
    np.testing.assert_allclose(shown, found.glass.record(ids).attention[0, 0, 3, :4], atol=6e-4)
    page.click("#tab-layers")
    page.wait_for_selector("#panel-layers tbody")
    logits = found.glass.logits(found.glass.record(ids).residual)  # (layers + 1, T, vocab_size)
    cells = page.locator("#panel-layers tbody tr").nth(1).locator("td").all_inner_texts()
    likeliest = np.exp(log_softmax(logits[1, :8]).max(axis=-1)) * 100
    shown = [float(re.search(r"([\d.]+) %", cell)[1]) for cell in cells]
    np.testing.assert_allclose(shown, likeliest, atol=0.06)
    page.click("#tab-heads")
    page.locator("#panel-heads .switches button").nth(2).click()
    page.locator("#tokens [data-index='3']").click()
    page.wait_for_timeout(200)
    whole, less = (
        log_softmax(found.glass.logits(found.glass.record(ids[:3], off).residual[-1, -1]))
        for off in ((), [(0, 2)])
    )
    bits = float((np.exp(whole) * (whole - less)).sum() / np.log(2))
    assert f"is {bits:.3f} bits" in page.inner_text("#panel-heads .readout")
    before = written(page)
    page.get_by_role("button", name="Write again without them").click()
    assert written(page) != before


def test_copied_stretches_are_found_in_the_training_text(page: Any) -> None:
    page.click("#tab-sources")
    page.fill("#prompt", "Zz There the cat eats 12 dates, 345 eels. Zz")
    until(page, "document.querySelector('#tokens').textContent.startsWith('Zz')")
    page.locator("#tokens [data-index='8']").click()
    page.wait_for_selector("#panel-sources mark")
    assert page.inner_text("#panel-sources mark") == " There the cat eats 12 dates, 345 eels."
    page.locator("#tokens [data-index='4']").hover()
    page.mouse.down()
    page.locator("#tokens [data-index='6']").hover()
    page.mouse.up()
    until(page, "document.querySelectorAll('#tokens .selected').length === 3")
    page.locator("#tokens [data-index='6']").click()
    page.keyboard.press("Shift+ArrowRight")
    until(page, "document.querySelectorAll('#tokens .selected').length === 2")
    page.get_by_role("button", name="Mark copies").click()
    until(page, "document.querySelector('#panel-sources').textContent.includes('% of')")
    share = re.search(r"([\d.]+) % of the text", page.inner_text("#panel-sources"))
    assert share and float(share[1]) == pytest.approx(100 * 39 / 44, abs=0.1)


def test_texts_links_and_pictures_leave_the_page(page: Any, tmp_path: Path) -> None:
    text = write(page)
    page.get_by_role("button", name="Copy text").click()
    assert page.evaluate("navigator.clipboard.readText()") == text
    page.get_by_role("button", name="Copy link").click()
    assert "seed=7" in page.evaluate("navigator.clipboard.readText()")
    page.click("#tab-attention")
    page.wait_for_selector("#panel-attention .heads canvas")
    png, svg = (saved(page, "attention", kind) for kind in ("PNG", "SVG"))
    assert png.startswith(b"\x89PNG")
    parts = [element.tag.split("}")[1] for element in ElementTree.fromstring(svg).iter()]
    assert set(parts) == {"svg", "rect", "text", "image"}  # which every viewer knows
    assert parts.count("image") == 7 and b">Layer</text>" in svg


def saved(page: Any, view: str, kind: str) -> bytes:
    with page.expect_download() as download:
        page.locator(f"#panel-{view}").get_by_role("button", name=f"Save {kind}").click()
    return Path(download.value.path()).read_bytes()


def test_a_tab_that_is_put_to_sleep_goes_on_where_it_was(page: Any) -> None:
    """Hidden while it writes, it has the whole text when it is back, and after it was dropped."""
    asleep = """hidden => {
        Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.fill("#set-maxNewTokens", "900")
    whole = write(page)
    page.get_by_role("button", name="Write", exact=True).click()
    until(page, "document.querySelector('#tokens').ariaBusy === 'true'")
    page.evaluate(asleep, True)
    assert written(page) == whole
    page.evaluate(asleep, False)
    until(page, "document.querySelector('#status').textContent.includes('tab was away')")
    page.reload()
    until(page, "document.querySelector('#status').textContent.includes('still here')")
    until(page, f"minigpt.text() === {json.dumps(whole)}")


def test_what_goes_wrong_is_a_sentence_and_nothing_is_lost(open_page: Open, tmp_path: Path) -> None:
    found = random_found(make_tokenizer("char", None, ["abc \n"]), tmp_path, **SHAPE)
    page = open_page(found)
    page.fill("#prompt", "ab☃")
    until(page, "document.querySelector('#problem').textContent.includes('☃')")
    assert page.input_value("#prompt") == "ab☃"
    page.fill("#prompt", "")
    assert write(page) != ""
    page.fill("#prompt", "abc " * 25_000)
    until(page, "document.querySelector('#text-head').textContent.includes('100,000')")
    assert page.evaluate("document.querySelector('#tokens').textContent.length") == 100_001


def test_axe_finds_nothing_in_any_view_theme_and_width(open_page: Open, found: FoundModel) -> None:
    place = Path(__file__).parents[2] / "node_modules/axe-core/axe.min.js"
    if not place.is_file():
        pytest.fail("npm install --no-save axe-core, as make test-page does")
    for width in (390, 1600):
        page = open_page(found, link=f"#prompt={PROMPT}", width=width, with_text=True)
        page.evaluate(place.read_text())
        if width == 390:
            page.click("#panel-toggle")
        for view in ("draw", "attention", "numbers", "heads", "layers", "sources"):
            page.click(f"#tab-{view}")
            page.click("#theme")
            page.wait_for_timeout(300)
            check = "axe.run().then(r => r.violations.map(v => [v.id, v.nodes[0].html]))"
            assert (view, page.evaluate(check)) == (view, [])
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
