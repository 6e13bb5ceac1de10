"""What leaves the page and what comes back: links, the clipboard, reloads, the browser's Back."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from minigpt.runs.read_model import FoundModel

from .conftest import (
    PROMPT,
    Open,
    choose,
    open_view,
    pass_time,
    until,
    until_drawn,
    until_read,
    write,
)
from .test_chances import set_to
from .test_sheet import CHOSEN, ORIGINS, sheet
from .test_writing import TEXT, link, press

pytestmark = pytest.mark.page
SEEN = f"""() => ({{
    origins: {ORIGINS},
    chosen: {CHOSEN},
    title: document.querySelector('#panels > :not([hidden]) h2').textContent,
    why: document.querySelector('#question-why').ariaPressed,
    off: document.querySelector('#heads-off').textContent,
    seed: document.querySelector('#set-seed').value,
    bits: [...document.querySelectorAll('#tokens [data-index]')]
        .map(e => e.style.getPropertyValue('--tint')),
}})"""
CLIPBOARD = "navigator.clipboard.readText()"


@pytest.fixture
def page(open_page: Open, found: FoundModel) -> Any:
    page = open_page(found, link=link(maxNewTokens=90, off="1.2"))
    until_read(page)
    return page


def arrange(page: Any) -> dict[str, Any]:
    """Write more than the context, choose a token, a view and a question; all that is seen."""
    write(page)
    choose(page, 70)
    open_view(page, "layers")
    page.click("#question-next")
    return settled(page)


def settled(page: Any) -> dict[str, Any]:
    """All that is seen, once all is drawn."""
    until_read(page)
    until_drawn(page)
    seen: dict[str, Any] = page.evaluate(SEEN)
    return seen


def test_a_link_opens_exactly_this(page: Any, open_page: Open, found: FoundModel) -> None:
    seen = arrange(page)
    page.get_by_role("button", name="Copy link").click()
    until(page, "document.querySelector('#status').textContent.includes('Copied')")
    copied = page.evaluate(CLIPBOARD)
    assert copied.startswith("#prompt=")  # nothing of this machine
    other = open_page(found, link=copied)
    assert settled(other) == seen
    page.evaluate("link => location.hash = link", link(prompt="Once", seed=3))
    until(page, "minigpt.text() === 'Once'")


@pytest.mark.parametrize(
    "wrong",
    [
        "token=999&view=nothing&head=9.9&off=7.7 x 0&ids=zz.zzz&origin=t1.q9&windows=5x2",
        "token=-1&view=&ids=&origin=&windows=axb.5&seed=abc&question=who",
    ],
)
def test_what_a_link_says_wrongly_is_left_out(
    wrong: str, open_page: Open, found: FoundModel
) -> None:
    page = open_page(found, link=f"#prompt={PROMPT}&maxNewTokens=5&{wrong}")
    until_read(page)
    assert page.evaluate(TEXT) == PROMPT and page.evaluate(CHOSEN) == []
    assert write(page).startswith(PROMPT)


def test_a_text_that_is_too_long_for_a_link_is_not_cut(page: Any) -> None:
    page.evaluate("navigator.clipboard.writeText('before')")
    page.fill("#text", "the cat eats dates " * 2000)
    until_read(page)
    page.get_by_role("button", name="Copy link").click()
    until(page, "document.querySelector('#status').textContent.includes('too long')")
    assert page.evaluate(CLIPBOARD) == "before"
    text = page.evaluate(TEXT)
    page.get_by_role("button", name="Copy text").click()
    until(page, "document.querySelector('#status').textContent === 'Copied.'")
    assert page.evaluate(CLIPBOARD) == text


def test_where_the_browser_lets_nothing_be_copied_the_page_says_so(page: Any) -> None:
    page.evaluate(
        """() => {
            navigator.clipboard.writeText = () => Promise.reject(new Error("not allowed"));
            document.execCommand = () => false;
        }"""
    )
    page.get_by_role("button", name="Copy text").click()
    until(page, "document.querySelector('#status').textContent.includes('copy nothing')")
    page.get_by_role("button", name="Copy link").click()
    until(page, "document.querySelector('#status').textContent.includes('its address now')")
    assert "prompt=" in page.evaluate("location.hash")


def link_of(page: Any) -> str:
    """The link that the page copies."""
    page.evaluate("navigator.clipboard.writeText('')")
    page.get_by_role("button", name="Copy link").click()
    until(page, f"(await {CLIPBOARD}).startsWith('#')")
    return str(page.evaluate(CLIPBOARD))


def test_a_link_holds_the_settings_that_are_not_the_usual_ones(page: Any) -> None:
    """It opens with just these, also in a page with others; a penalty that was given is in it."""
    shown = "minigpt.now().settings"
    opened = page.evaluate(shown)

    def held() -> dict[str, list[str]]:
        parts = parse_qs(link_of(page)[1:])
        return {name: parts[name] for name in opened.keys() & parts.keys()}

    expected = {"temperature": ["0.5"], "seed": ["7"], "maxNewTokens": ["90"]}
    assert held() == expected and parse_qs(link_of(page)[1:])["off"] == ["1.2"]
    set_to(page, "topP", 0.9)
    assert held() == expected | {"topP": ["0.9"]}
    for name, value in (("temperature", 0.7), ("topP", 1), ("seed", 1), ("maxNewTokens", 200)):
        set_to(page, name, value)
    assert held() == {}
    set_to(page, "dryMultiplier", 2)
    assert held() == {"dryMultiplier": ["2"]}

    set_to(page, "topP", 0.9)
    page.evaluate("link => location.hash = link", "#prompt=Once&seed=7&temperature=0.5")
    until(page, "minigpt.text() === 'Once'")
    assert page.evaluate(shown) == opened | {"maxNewTokens": 200}


def test_in_a_page_of_a_link_the_temperature_decides_on_repeated_passages_as_before(
    page: Any, open_page: Open, found: FoundModel
) -> None:
    """Unless somebody has set how these are penalised; so it is with the settings of a token."""
    multiplier = "minigpt.now().settings.dryMultiplier"

    def linked() -> Any:
        return open_page(found, link=link_of(page))

    set_to(page, "seed", 8)
    write(page)
    set_to(page, "temperature", 1)
    choose(page, 70)
    open_view(page, "draw")
    page.get_by_role("button", name="Use its settings").click()
    until_drawn(page)
    assert page.evaluate(multiplier) == 2
    other = linked()
    assert other.evaluate(multiplier) == 2
    for tab in (page, other):
        set_to(tab, "temperature", 1)
        assert tab.evaluate(multiplier) == 0

    set_to(page, "dryMultiplier", 1.5)
    other = linked()
    set_to(other, "temperature", 0)
    assert other.evaluate(multiplier) == 1.5


def test_a_reload_keeps_everything(page: Any) -> None:
    first = write(page)
    page.focus("#text")
    page.keyboard.press("Control+Home")
    page.keyboard.type("Now ")
    write(page)
    choose(page, 60)
    open_view(page, "layers")
    seen = settled(page)
    page.reload()
    until(page, "document.querySelector('#status').textContent.includes('still here')")
    assert settled(page) == seen
    press(page, "Undo")
    assert press(page, "Undo") == first
    assert press(page, "Undo") == PROMPT
    press(page, "Redo")
    press(page, "Redo")
    press(page, "Redo")
    page.mouse.click(
        *page.evaluate("""() => {
        const { x, y } = document.querySelector("[data-index='60']").getBoundingClientRect();
        return [x + 2, y + 8];
    }""")
    )
    assert settled(page)["origins"] == seen["origins"]


def test_back_brings_the_earlier_text_and_forward_the_later(page: Any) -> None:
    first = write(page)
    pass_time(page, 250)  # what comes sooner is no step of its own
    second = write(page)
    page.evaluate("history.back()")
    until(page, f"{TEXT} === {json.dumps(first)}")
    page.evaluate("history.back()")
    until(page, f"{TEXT} === {json.dumps(PROMPT)}")
    page.evaluate("history.forward()")
    until(page, f"{TEXT} === {json.dumps(first)}")
    page.evaluate("history.forward()")
    until(page, f"{TEXT} === {json.dumps(second)}")


def test_back_brings_a_text_that_was_left_behind_also_after_a_reload(page: Any) -> None:
    first = write(page)
    pass_time(page, 250)  # what comes sooner is no step of its own
    press(page, "Undo")
    pass_time(page, 250)  # what comes sooner is no step of its own
    page.fill("#text", f"Now {PROMPT}")
    until_read(page)
    page.reload()
    until(page, "document.querySelector('#status').textContent.includes('still here')")
    page.evaluate("history.back()")
    until(page, f"{TEXT} === {json.dumps(PROMPT)}")
    page.evaluate("history.back()")
    until(page, f"{TEXT} === {json.dumps(first)}")


def test_a_tab_that_is_put_to_sleep_goes_on_where_it_was(
    open_page: Open, found: FoundModel
) -> None:
    """Hidden while it writes, it has the whole text when it is back, and after it was dropped."""
    asleep = """hidden => {
        Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page = open_page(found, link=link(maxNewTokens=900))
    until_read(page)
    whole = write(page)
    press(page, "Undo")
    page.get_by_role("button", name="Write", exact=True).click()
    until(page, "document.querySelector('#status').textContent === 'Writing.'")
    page.evaluate(asleep, True)
    until_read(page)
    assert page.evaluate(TEXT) == whole
    page.evaluate(asleep, False)
    until(page, "document.querySelector('#status').textContent.includes('tab was away')")
    page.reload()
    until(page, "document.querySelector('#status').textContent.includes('still here')")
    until(page, f"{TEXT} === {json.dumps(whole)}")


def test_pictures_of_the_text_are_made_of_what_every_viewer_knows(page: Any) -> None:
    write(page)
    with page.expect_download() as download:
        page.locator("#text-foot").get_by_role("button", name="Save SVG").click()
    svg = Path(download.value.path()).read_bytes()
    parts = {element.tag.split("}")[1] for element in ElementTree.fromstring(svg).iter()}
    assert parts == {"svg", "rect", "text"} and b">cat</text>" in svg
    assert sheet(page)
