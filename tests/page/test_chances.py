"""The draw: chances, what the settings make of them, and the die that falls on one."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minigpt.runs.find import glass_writer
from minigpt.runs.folder import GENERATION
from minigpt.runs.read_model import FoundModel, load_run
from minigpt.tokenizer import make_tokenizer

from ..tokenizer.examples import FABLE
from .conftest import (
    PROMPT,
    SHAPE,
    Open,
    as_in_page,
    choose,
    open_view,
    random_found,
    until,
    until_drawn,
    until_read,
    write,
)
from .facts import Predicted, check_facts

pytestmark = pytest.mark.page


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> FoundModel:
    tokenizer = make_tokenizer("char", None, [FABLE, PROMPT])  # a token is a character
    return random_found(tokenizer, tmp_path_factory.mktemp("run"), **SHAPE)


@pytest.fixture
def page(open_page: Open, found: FoundModel) -> Any:
    link = f"#prompt={PROMPT}&temperature=0.5&seed=7&maxNewTokens=6"
    page = open_page(found, link=link)
    until_drawn(page)
    open_view(page, "draw")
    return page


def text(page: Any) -> str:
    return str(page.evaluate("minigpt.text()"))


def set_to(page: Any, name: str, value: float) -> None:
    page.evaluate(
        """([name, value]) => {
            const input = document.getElementById(`set-${name}`);
            input.value = value;
            input.dispatchEvent(new Event("input", { bubbles: true }));
        }""",
        [name, value],
    )
    until_drawn(page)


def settings(page: Any, *names: str) -> list[float]:
    now = page.evaluate("minigpt.now().settings")
    return [now[name] for name in names]


def test_tokens_are_drawn_as_the_run_says_until_something_else_is_chosen(
    open_page: Open, found: FoundModel, tmp_path: Path
) -> None:
    """At temperature 0 or 1 a penalty acts only if somebody has set it."""
    usual = {"temperature": 0.0, "top_k": 9, "dry_multiplier": 2.0, "dry_allowed_length": 1}
    usual["repetition_penalty"] = 1.2
    (tmp_path / GENERATION).write_text(json.dumps(usual))
    own = replace(found, folder=tmp_path)
    page = open_page(own, link=f"#prompt={PROMPT}")
    until_drawn(page)
    assert settings(page, "temperature", "topK", "dryMultiplier", "dryBase") == [0, 9, 2, 1.75]

    writer = glass_writer(own)
    written = page.evaluate("minigpt.generate('the ', { maxNewTokens: 60 })")
    assert written == writer.generate("the ", max_new_tokens=60)
    greedy = page.evaluate("minigpt.generate('the ', { maxNewTokens: 60, temperature: 0 })")
    assert greedy == writer.generate("the ", max_new_tokens=60, temperature=0) != written

    page.evaluate("document.querySelector('#settings').open = true")
    penalties = ("dryMultiplier", "repetitionPenalty")
    for temperature, expected in ((0.5, [2, 1.2]), (1, [0, 1]), (0.7, [2, 1.2]), (0, [0, 1])):
        set_to(page, "temperature", temperature)
        assert settings(page, "temperature", *penalties) == [temperature, *expected]
        assert [float(page.input_value(f"#set-{name}")) for name in penalties] == expected
    set_to(page, "dryMultiplier", 1.5)
    set_to(page, "temperature", 1)
    assert settings(page, "temperature", *penalties) == [1, 1.5, 1]
    page.reload()
    until_drawn(page)
    set_to(page, "temperature", 0)
    assert settings(page, "temperature", "dryMultiplier", "topK") == [0, 1.5, 9]


def strip(page: Any, at: int) -> list[tuple[str, float]]:
    """The pieces of a strip: token, share."""
    script = """at => [...document.querySelectorAll("#panel-draw .strip")][at].querySelectorAll
        ? [...[...document.querySelectorAll("#panel-draw .strip")][at].children].map(
            piece => [piece.dataset.token, Number(piece.style.getPropertyValue("--share"))]) : []"""
    return [(token, share) for token, share in page.evaluate(script, at)]


def test_the_strips_lay_out_the_chances_likeliest_first(page: Any, found: FoundModel) -> None:
    ids = found.tokenizer.encode(PROMPT)
    kinds = check_facts(page, "#panel-draw", found, ids, settings={"temperature": 0.5})
    assert kinds == {"probability", "after", "entropy"}
    predicted = Predicted(found, ids, len(ids), settings={"temperature": 0.5})
    order = np.argsort(-predicted.after, kind="stable")

    for at, chances in enumerate((predicted.probabilities, predicted.after)):
        pieces = [piece for piece in strip(page, at) if not piece[0].startswith("others")]
        assert [int(token) for token, _ in pieces][:10] == order[:10].tolist()
        expected = [chances[int(token)] for token, _ in pieces]
        np.testing.assert_allclose([share for _, share in pieces], expected, atol=1e-3)
        assert sum(share for _, share in strip(page, at)) == pytest.approx(1, abs=1e-6)


def test_the_page_of_the_base_shows_what_the_package_computes(
    open_page: Open, real_base: Path
) -> None:
    """It is sampled as a new run is: what would repeat a passage is penalised."""
    base = as_in_page(load_run(real_base))
    text = "The cat sat by the fire, and the dog sat by the"
    page = open_page(base, link=f"#prompt={text}")
    until_drawn(page)
    open_view(page, "draw")

    assert page.inner_text("#problem") == ""
    ids = base.tokenizer.encode(text)
    assert check_facts(page, "#map", base, ids) >= {"probability"}
    kinds = check_facts(page, "#panel-draw", base, ids)
    assert kinds == {"probability", "after", "entropy"}

    penalised = Predicted(base, ids, len(ids)).after
    plain = Predicted(base, ids, len(ids), settings={"dry_multiplier": 0.0}).after
    (fire,) = base.tokenizer.encode(" fire")
    assert penalised[fire] < plain[fire] / 2


def test_settings_bend_the_strip_live_without_the_model(page: Any, found: FoundModel) -> None:
    likeliest = strip(page, 1)[0]
    model = strip(page, 0)
    set_to(page, "temperature", 2)
    assert strip(page, 1)[0][1] < likeliest[1]
    set_to(page, "topK", 2)
    assert [share > 0 for _, share in strip(page, 1)][:3] == [True, True, False]
    ids = found.tokenizer.encode(PROMPT)
    settings = {"temperature": 2.0, "top_k": 2}
    check_facts(page, "#panel-draw", found, ids, settings=settings)
    assert "2 tokens can be drawn" in page.inner_text("#panel-draw")
    assert strip(page, 0)[:2] == model[:2]
    set_to(page, "temperature", 0)
    assert strip(page, 1)[0][1] == 1
    assert "no die is thrown" in page.inner_text("#panel-draw")


def test_the_die_of_the_view_is_the_one_that_writes(page: Any) -> None:
    """With each seed, what the view says comes next is what is written."""
    foretold = set()
    for seed in range(1, 5):
        set_to(page, "seed", seed)
        set_to(page, "maxNewTokens", 1)
        coming = page.locator("#panel-draw .draw-caption .token").inner_text()
        assert write(page) == PROMPT + coming.replace("␣", " ").replace("↵", "\n")
        page.get_by_role("button", name="Undo").click()
        until_drawn(page)
        foretold.add(coming)
    assert len(foretold) > 1


def test_a_written_token_is_replayed_with_its_settings_or_they_are_named(page: Any) -> None:
    write(page)
    choose(page, len(PROMPT) + 2)
    caption = page.locator("#panel-draw .draw-caption")
    assert "It was drawn with these settings: the die showed" in caption.inner_text()
    drawn = page.locator("#panel-draw .strip:not(.thin) .piece.drawn").get_attribute("title")
    assert caption.locator(".token").inner_text() == drawn
    die = float(re.search(r"showed (0\.\d+)", caption.inner_text())[1])
    ends = np.cumsum([share for _, share in strip(page, 1)])
    at = [token for token, _ in strip(page, 1)].index(
        page.locator("#panel-draw .strip:not(.thin) .piece.drawn").get_attribute("data-token")
    )
    assert (ends[at - 1] if at else 0) - 1e-3 <= die <= ends[at] + 1e-3

    set_to(page, "temperature", 1.5)
    assert "other settings (temperature 0.5)" in caption.inner_text()
    page.get_by_role("button", name="Use its settings").click()
    until_drawn(page)
    assert "It was drawn with these settings" in caption.inner_text()
    assert page.input_value("#set-temperature") == "0.5"

    choose(page, 3)
    assert "put there, not drawn" in caption.inner_text()


def test_one_token_is_drawn_in_steps_and_then_in_the_text(page: Any) -> None:
    before = text(page)
    foretold = page.locator("#panel-draw .draw-caption .token").inner_text()
    caption = page.locator("#panel-draw .draw-caption")
    needle = page.locator("#panel-draw .under-needle .needle")

    page.get_by_role("button", name="One step").click()
    assert caption.inner_text().startswith("1.") and not needle.is_visible()
    assert strip(page, 1) == strip(page, 0)
    page.get_by_role("button", name="One step").focus()
    page.keyboard.press("Enter")
    assert caption.inner_text().startswith("2.") and strip(page, 1) != strip(page, 0)
    page.keyboard.press("Enter")
    assert caption.inner_text().startswith("3.") and needle.is_visible()
    page.keyboard.press("Enter")
    until(page, f"minigpt.text().length > {len(before)}")
    until_drawn(page)
    assert text(page)[len(before) :] == foretold.replace("␣", " ").replace("↵", "\n")


def test_draw_slowly_needs_one_press_for_one_token(page: Any) -> None:
    before = text(page)
    page.evaluate(
        "() => { const usual = setTimeout; window.setTimeout = (f, ms) => usual(f, ms / 50); }"
    )
    page.get_by_role("button", name="Draw one token slowly").click()
    until(page, f"minigpt.text().length > {len(before)}")
    page.evaluate("new Promise(done => setTimeout(done, 15_000))")  # as its clock goes now
    until_read(page)
    assert len(text(page)) == len(before) + 1


def test_a_click_in_the_list_goes_on_from_there(page: Any) -> None:
    write(page)
    before = text(page)
    choose(page, 5)
    second = page.locator("#panel-draw .bars button").nth(1)
    second.focus()
    page.keyboard.press("Enter")
    until_read(page)
    after = text(page)
    assert after[:5] == before[:5] and after[5] != before[5] and len(after) == 5 + 1 + 6
