"""Writing: at the end, from a token, again; stopping, back and forward; and nothing hangs."""

import re
from pathlib import Path
from typing import Any

import pytest

from minigpt.generation.writer import Writer
from minigpt.runs.read_model import FoundModel
from minigpt.tokenizer import make_tokenizer

from ..patience import PATIENCE
from .conftest import (
    PROMPT,
    SHAPE,
    Open,
    choose,
    place_of,
    random_found,
    type_in_one_go,
    until,
    until_longer,
    until_read,
    write,
)
from .test_sheet import is_on_sheet, sheet

pytestmark = pytest.mark.page
TEXT = "minigpt.text()"


@pytest.fixture
def page(open_page: Open, found: FoundModel) -> Any:
    page = open_page(found, link=link(maxNewTokens=12))
    until_read(page)
    return page


def link(**settings: Any) -> str:
    values = {"prompt": PROMPT, "temperature": 0.5, "seed": 7} | settings
    return "#" + "&".join(f"{name}={value}" for name, value in values.items())


def press(page: Any, name: str) -> str:
    page.get_by_role("button", name=name, exact=True).click()
    until_read(page)
    return str(page.evaluate(TEXT))


def test_write_goes_on_and_undo_and_redo_go_along_the_versions(page: Any) -> None:
    first = write(page)
    assert first.startswith(PROMPT) and first != PROMPT
    assert page.inner_text("#status") == "12 tokens written."
    second = write(page)
    assert second.startswith(first) and second != first
    other = press(page, "Again")
    assert other.startswith(first) and other != second
    assert page.input_value("#set-seed") == "8"
    assert press(page, "Undo") == second  # the version before, not the prompt
    assert press(page, "Undo") == first
    assert press(page, "Undo") == PROMPT
    assert press(page, "Redo") == first
    assert press(page, "Redo") == second
    assert press(page, "Redo") == other


def test_the_same_seed_writes_the_same_text(page: Any) -> None:
    first = write(page)
    press(page, "Undo")
    assert write(page) == first


def test_a_version_in_which_nothing_was_written_is_not_kept(page: Any) -> None:
    page.evaluate("""() => {
        const named = name => [...document.querySelectorAll("#buttons button")]
            .find(button => button.textContent === name);
        named("Write").click();
        named("Stop").click();
    }""")
    until_read(page)
    if page.evaluate(TEXT) == PROMPT:
        assert page.get_by_role("button", name="Undo").is_disabled()


def test_write_from_here_replaces_what_follows_the_chosen_token(page: Any) -> None:
    before = write(page)
    choose(page, 4)
    kept = page.evaluate("""[...document.querySelectorAll("#tokens [data-index]")].slice(0, 5)
        .map(e => e.textContent).join("")""")
    after = press(page, "Write from here")
    assert after.startswith(kept) and after != before
    assert press(page, "Undo") == before


def test_stop_acts_at_once_and_the_focus_stays_on_a_button_that_goes_on(
    open_page: Open, found: FoundModel
) -> None:
    page = open_page(found, link=link(maxNewTokens=2000))

    def begin_and_stop(begin: str, stop: str) -> None:
        """Both in the page: until a program outside has its turn again, all may be written."""
        page.evaluate(f"""async () => {{
            const key = {{ key: "Enter", ctrlKey: true, bubbles: true }};
            const press = (area) => area.dispatchEvent(new KeyboardEvent("keydown", key));
            const click = (button) => {{ button.focus(); button.click(); }};
            const {{ length }} = minigpt.now().ids;
            const end = Date.now() + {1000 * PATIENCE};
            const waits = () => minigpt.now().ids.length === length && Date.now() < end;
            {begin};
            while (waits()) await new Promise(done => setTimeout(done));
            {stop};
        }}""")
        until_read(page)

    write_button, stop_button, area = (
        f"document.querySelector('#{name}')" for name in ("write", "stop", "text")
    )
    begin_and_stop(f"click({write_button})", f"click({stop_button})")
    assert re.match(r"[\d,]+ tokens? written\. Stopped\.", page.inner_text("#status"))
    assert page.evaluate("document.activeElement.textContent") == "Write"
    page.focus("#text")
    begin_and_stop(f"press({area})", f"press({area})")
    assert "Stopped" in page.inner_text("#status")
    assert page.evaluate("document.activeElement.id") == "text"


@pytest.mark.parametrize("act", ["type", "click", "undo", "edit", "again", "alternative"])
def test_what_is_done_while_it_writes_never_hangs(
    act: str, open_page: Open, found: FoundModel
) -> None:
    """Sooner and later: afterwards it is not writing any more, or it is and ends."""
    page = open_page(found, link=link(maxNewTokens=150))
    length = page.evaluate("minigpt.now().ids.length")
    for turn in (0, 1, 5, 60):
        page.get_by_role("button", name="Write", exact=True).click()
        until_longer(page, length, turn)
        if act == "type":
            page.focus("#text")
            page.keyboard.type("x, ")
        elif act == "click":
            page.mouse.click(*place_of(page, 2))
        elif act == "undo":
            page.get_by_role("button", name="Undo").click()
        elif act == "edit":
            page.fill("#text", f"{PROMPT} {turn}")
        elif act == "again":
            page.get_by_role("button", name="Again").click()
        else:
            page.mouse.click(*place_of(page, 3))
            page.get_by_role("button", name="Write from here").click()
        for _ in range(100):  # on a busy machine it may not have begun yet
            until_read(page)
            if is_on_sheet(page.evaluate(TEXT), sheet(page)):
                break
        assert page.inner_text("#status") != "Writing."
        assert is_on_sheet(page.evaluate(TEXT), sheet(page))
        page.fill("#text", PROMPT)
        until_read(page)


def test_a_text_typed_while_it_writes_goes_on_from_what_was_seen(
    open_page: Open, found: FoundModel
) -> None:
    page = open_page(found, link=link(maxNewTokens=1500))
    page.get_by_role("button", name="Write", exact=True).click()
    until(page, "minigpt.text().length > 100")
    page.focus("#text")
    page.keyboard.press("Control+Home")
    type_in_one_go(page, "Well, ")
    until_read(page)
    text = page.evaluate(TEXT)
    assert text.startswith(f"Well, {PROMPT}") and len(text) > 100
    press(page, "Undo")
    assert page.evaluate(TEXT).startswith(PROMPT)


def test_a_model_that_has_ended_says_so_and_write_begins_a_new_text(
    open_page: Open, tmp_path: Path
) -> None:
    found = random_found(make_tokenizer("char", None, ["abc \n"]), tmp_path, **SHAPE)
    end = found.tokenizer.end_of_text
    embedding = found.glass.weights["token_embedding.weight"]
    embedding[end] = 0.5 * embedding[found.tokenizer.encode("a")[0]]
    page = open_page(found, link="#prompt=ab&temperature=2&maxNewTokens=2000")
    page.evaluate("document.querySelector('#settings').open = true")
    for seed in range(20):
        page.fill("#set-seed", str(seed))
        before = page.evaluate(TEXT)
        write(page)
        if "ended" in page.inner_text("#status"):
            break
        press(page, "Undo")
        assert page.evaluate(TEXT) == before
    assert "The model ended the text." in page.inner_text("#status")
    assert "has ended the text" in page.inner_text("#notes")
    ended = sheet(page)
    assert ended.endswith("∎") and "∎" not in page.evaluate(TEXT)
    write(page)
    assert sheet(page).startswith(ended) and len(sheet(page)) > len(ended)


def test_heads_that_are_off_are_off_for_all_writing_until_they_are_on_again(
    open_page: Open, found: FoundModel
) -> None:
    page = open_page(found, link=link(maxNewTokens=20, off="0.1 1.2"))
    until_read(page)
    assert "Heads off: 2 of 6 (1.2, 2.3)" in page.inner_text("#heads-off")
    expected = page.evaluate(
        """([prompt, settings]) => minigpt.generate(prompt, settings)""",
        [PROMPT, {"temperature": 0.5, "seed": 7, "maxNewTokens": 20, "off": ["0.1", "1.2"]}],
    )
    assert write(page) == expected
    page.get_by_role("button", name="Switch them on").click()
    until_read(page)
    assert page.locator("#heads-off").is_hidden()
    press(page, "Undo")
    assert write(page) != expected


def test_what_a_script_leaves_out_is_as_in_a_page_at_its_start(
    open_page: Open, found: FoundModel
) -> None:
    page = open_page(found, link=link(maxNewTokens=5))
    left_out, given = page.evaluate("""Promise.all([
        minigpt.generate("Once"),
        minigpt.generate("Once", { seed: 1, maxNewTokens: 200 }),
    ])""")
    assert left_out == given


def test_a_long_prompt_is_written_on_as_in_the_package(open_page: Open, found: FoundModel) -> None:
    """More than the context, and longer than the window that moves."""
    prompt = " ".join(["the cat eats dates"] * 20)
    page = open_page(found, link=link(prompt=prompt, temperature=0, maxNewTokens=90))
    writer = Writer(found.glass, found.tokenizer)
    assert write(page) == writer.generate(prompt, temperature=0, max_new_tokens=90)


def test_length_and_seed_say_their_limits(page: Any) -> None:
    page.evaluate("document.querySelector('#settings').open = true")
    for value, used in (("99999", "2,000"), ("0", "1"), ("-5", "1")):
        page.fill("#set-maxNewTokens", value)
        assert f"From 1 to 2,000; {used} is used" in page.inner_text("#help-maxNewTokens")
        page.press("#set-maxNewTokens", "Tab")
        assert page.input_value("#set-maxNewTokens") == used.replace(",", "")
    page.fill("#set-maxNewTokens", "20")
    assert "From" not in page.inner_text("#help-maxNewTokens")
    page.fill("#set-seed", "-2")
    assert "From 0 to 4,294,967,295; 0 is used" in page.inner_text("#help-seed")


def test_the_seed_minus_one_means_any(page: Any) -> None:
    page.evaluate("document.querySelector('#settings').open = true")
    drawn = set()
    for _ in range(3):
        page.fill("#set-seed", "-1")
        assert "From" not in page.inner_text("#help-seed")
        page.press("#set-seed", "Tab")
        drawn.add(page.input_value("#set-seed"))
    assert len(drawn) == 3 and "-1" not in drawn

    any_seed = "[1, 2, 3].map(() => minigpt.generate('Once', { seed: -1, temperature: 2 }))"
    assert len(set(page.evaluate(f"Promise.all({any_seed})"))) > 1
