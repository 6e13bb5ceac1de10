"""The sheet: one text, typed and written, in which each token can be chosen."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minigpt.generation.sampler import log_softmax
from minigpt.runs.read_model import FoundModel
from minigpt.tokenizer import make_tokenizer

from ..browser import two_frames
from ..tokenizer.examples import FABLE
from .conftest import (
    PROMPT,
    SHAPE,
    Open,
    choose,
    place_of,
    random_found,
    tap,
    type_in_one_go,
    until,
    until_read,
    write,
)

pytestmark = pytest.mark.page
HARD = (
    'one\n\ntwo  three \t\u2003 日本語の文 🇩🇪 e\u0301 عربي "fi ffl AVA"\n' + "x" * 90 + "\nlast \n"
)
CHOSEN = "[...document.querySelectorAll('#tokens .chosen')].map(e => Number(e.dataset.index))"
ORIGINS = """[...document.querySelectorAll('#tokens [data-index]')]
    .map(e => [e.classList.contains('written'), e.textContent])"""
SAME = """document.querySelector("#tokens").textContent ===
    `${document.querySelector("#text").value}\u200b`"""
IS_AT_END = """(({ scrollTop, clientHeight, scrollHeight }) =>
    scrollTop + clientHeight > scrollHeight - 3)(document.querySelector("#paper"))"""
# Edits the text, and waits until the layer below has been drawn anew.
EDITED = """async (text) => {
    const area = document.querySelector("#text");
    area.value = text;
    area.dispatchEvent(new InputEvent("input", { bubbles: true }));
    for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);
    const { ids, hidden } = minigpt.now();
    const shown = document.querySelector("#tokens").textContent;
    return [area.value, shown, ids.slice(hidden), minigpt.encode(text)];
}"""
CARET = "[document.activeElement.id, document.querySelector('#text').selectionStart]"


@pytest.fixture
def page(open_page: Open, found: FoundModel) -> Any:
    link = f"#prompt={PROMPT}&temperature=0.5&seed=7&maxNewTokens=12"
    page = open_page(found, link=link)
    until_read(page)
    return page


def sheet(page: Any) -> str:
    """What the textarea holds, which is what the layer below it shows."""
    until(page, SAME)
    value = page.input_value("#text")
    return str(value)


def test_each_letter_of_the_textarea_lies_over_itself_in_the_layer_below(page: Any) -> None:
    """At the left edge of each token the caret goes to where that token starts."""
    for width in (1600, 700):
        page.set_viewport_size({"width": width, "height": 900})
        page.fill("#text", HARD * 2)
        until_read(page)
        assert sheet(page) == HARD * 2
        wrong = page.evaluate("""() => {
            const wrong = [];
            let start = 0;
            for (const token of document.querySelectorAll("#tokens [data-index]")) {
                token.scrollIntoView({ block: "nearest" });
                const range = document.createRange();
                range.selectNodeContents(token);
                const { left, top, width, height } = range.getClientRects()[0] ?? {};
                const isLatin = /^ ?[a-z]+$/.test(token.textContent);
                if (isLatin && width > 2) {
                    const { offset } = document.caretPositionFromPoint(left + 1, top + height / 2);
                    if (offset !== start) wrong.push([token.textContent, start, offset]);
                }
                start += token.textContent.length;
            }
            return wrong;
        }""")
        assert wrong == []


def test_tokens_are_tinted_by_their_surprise(page: Any, found: FoundModel) -> None:
    ids = found.tokenizer.encode(PROMPT)
    nats = log_softmax(found.glass(np.array([ids]))[0])[np.arange(len(ids) - 1), ids[1:]]
    tints = page.evaluate("""[...document.querySelectorAll("#tokens [data-index]")]
        .map(e => Number(e.style.getPropertyValue("--tint")))""")
    expected = np.minimum(1, -nats / np.log(2) / 10)
    np.testing.assert_allclose(tints, [0, *expected], atol=1e-3)


def test_a_click_chooses_the_token_and_leaves_the_caret_there(page: Any) -> None:
    choose(page, 5)
    until(page, f"JSON.stringify({CHOSEN}) === '[5]'")
    start = len("".join(text for _, text in page.evaluate(ORIGINS)[:5]))
    length = len(page.evaluate(ORIGINS)[5][1])
    focused, caret = page.evaluate(CARET)
    assert focused == "text" and start <= caret <= start + length
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Home")
    until(page, f"JSON.stringify({CHOSEN}) === '[0]'")
    page.keyboard.press("Control+End")
    until(page, f"{CHOSEN}.length === 0")  # the next token, which is not there yet
    page.keyboard.press("Alt+ArrowLeft")
    last = len(page.evaluate(ORIGINS)) - 1
    until(page, f"JSON.stringify({CHOSEN}) === '[{last}]'")


def test_the_mouse_chooses_the_token_of_a_line_end(page: Any) -> None:
    page.fill("#text", "a cat\n\nsat")
    until_read(page)
    ends = page.evaluate("""[...document.querySelectorAll("#tokens [data-index]")]
        .filter(e => e.textContent.startsWith("\\n")).map(e => Number(e.dataset.index))""")
    assert ends
    for index in ends:
        place = page.evaluate(f"""() => {{
            const {{ x, y, height }} = document.querySelector("#tokens [data-index='{index}']")
                .getClientRects()[0];
            return [x + 5, y + height / 2];
        }}""")
        page.mouse.click(*place)
        until(page, f"JSON.stringify({CHOSEN}) === '[{index}]'")


def test_a_selection_is_that_of_the_textarea(page: Any) -> None:
    page.focus("#text")
    page.keyboard.press("Control+Home")
    for _ in range(12):
        page.keyboard.press("Shift+ArrowRight")
    marked = "[...document.querySelectorAll('#tokens .selected')].map(e => e.textContent).join('')"
    until(page, f"{marked}.startsWith({json.dumps(PROMPT[:12])})")


def test_a_token_under_the_mouse_has_a_tip_with_its_chance_and_rank(
    page: Any, found: FoundModel
) -> None:
    ids = found.tokenizer.encode(PROMPT)
    logits = log_softmax(found.glass(np.array([ids[:4]]))[0, -1])
    page.mouse.move(*place_of(page, 4))
    until(page, "document.querySelector('#tip').textContent.includes('rank')")
    facts = page.evaluate("""[...document.querySelectorAll("#tip data")]
        .map(e => [e.dataset.what, Number(e.value), JSON.parse(e.dataset.about)])""")
    shown = {what: value for what, value, _ in facts}
    assert all(about["place"] == 4 for _, _, about in facts)
    assert shown["probability"] == pytest.approx(np.exp(logits[ids[4]]), abs=1e-4)
    assert shown["bits"] == pytest.approx(-logits[ids[4]] / np.log(2), abs=1e-3)
    assert shown["rank"] == 1 + int((logits > logits[ids[4]]).sum())
    page.keyboard.press("Shift")
    page.mouse.move(2, 2)
    assert page.locator("#tip").is_hidden()


def test_typing_goes_on_from_the_caret_and_keeps_who_the_rest_is_from(page: Any) -> None:
    whole = write(page)
    written = whole.removeprefix(PROMPT)
    page.focus("#text")
    page.keyboard.press("Control+Home")
    page.keyboard.press("Control+ArrowRight")
    page.keyboard.type("and here ")
    until_read(page)
    assert is_on_sheet(whole, sheet(page).replace("and here ", ""))
    origins = page.evaluate(ORIGINS)
    still = "".join(text for is_written, text in origins if is_written)
    assert is_on_sheet(written, still)


def is_on_sheet(text: str, shown: str) -> bool:
    """Whether a sheet shows this text; a letter that has only begun is not on the sheet yet."""
    on_sheet = shown.replace("␍", "\r").replace("∎", "")
    return text in (on_sheet, f"{on_sheet}\ufffd")


def test_one_comma_loses_nothing(page: Any) -> None:
    before = write(page)
    page.focus("#text")
    page.keyboard.press("Control+Home")
    page.keyboard.type(",")
    until_read(page)
    assert page.evaluate("minigpt.text()") == f",{before}"
    page.get_by_role("button", name="Undo").click()
    until_read(page)
    assert page.evaluate("minigpt.text()") == before
    page.get_by_role("button", name="Redo").click()
    until_read(page)
    assert page.evaluate("minigpt.text()") == f",{before}"


@pytest.mark.parametrize("kind", ["bpe", "char", "turns"])
def test_after_any_edit_what_was_typed_has_the_tokens_of_the_whole_text(
    kind: str, open_page: Open, tmp_path: Path
) -> None:
    """However the text was edited together, the model reads it as if it had been typed at once."""
    alphabet = sorted(set(FABLE) | set(HARD))
    learned = "".join(alphabet) if kind == "char" else FABLE
    name = "char" if kind == "char" else "bpe"
    tokenizer = make_tokenizer(name, 320, [learned], has_turns=kind == "turns")
    page = open_page(random_found(tokenizer, tmp_path, **SHAPE))
    random = np.random.default_rng(5)
    text, parts = "", [" the cat", "s", " ", "\n", "日", "🇩🇪", ", ", "  ", "\n\n", " 12", "ates"]
    for _ in range(40):
        start, end = sorted(random.integers(0, len(text) + 1, size=2))
        end = min(end, start + 6)
        part = "".join(random.choice(parts, size=random.integers(0, 3)))
        text = text[:start] + part + text[end:]
        typed, shown, ids, expected = page.evaluate(EDITED, text)
        assert typed.replace("▸", "") == text  # which stands for the token before a turn
        assert shown == f"{typed}\u200b"
        assert ids == expected


def test_what_the_model_cannot_see_is_grey_and_said_in_one_line(page: Any) -> None:
    page.fill("#text", " ".join(["the cat eats dates"] * 30))
    until_read(page)
    n = len(page.evaluate(ORIGINS))
    grey = page.evaluate("document.querySelectorAll('#tokens .out-of-sight').length")
    assert n > 64 and grey == n - 64
    assert "at most 64 tokens" in page.inner_text("#notes")
    choose(page, 10)
    until(page, "document.querySelectorAll('#tokens .out-of-sight').length === 0")
    assert page.inner_text("#notes") == ""


def test_letters_that_the_model_does_not_know_are_named_and_stay(
    open_page: Open, tmp_path: Path
) -> None:
    found = random_found(make_tokenizer("char", None, ["abc \n"]), tmp_path, **SHAPE)
    page = open_page(found, link="#prompt=ab&maxNewTokens=5")
    for text in ("☃", "ab☃", "☃a😀☃b", "ab☃ c"):
        page.fill("#text", text)
        until_read(page)
        assert sheet(page) == text
        unknown = [character for character in "☃😀" if character in text]
        assert all(character in page.inner_text("#notes") for character in unknown)
    assert write(page).startswith("ab☃ c")
    page.fill("#text", "ab c")
    until_read(page)
    assert page.inner_text("#notes") == "" and sheet(page) == "ab c"


def test_a_hundred_thousand_characters_can_be_pasted_edited_and_written_on(
    open_page: Open, tmp_path: Path
) -> None:
    found = random_found(make_tokenizer("char", None, ["abc \n"]), tmp_path, **SHAPE)
    page = open_page(found, link="#prompt=ab&maxNewTokens=100")
    page.fill("#text", "abc " * 25_000)
    until_read(page)
    assert len(sheet(page)) == 100_000
    assert page.evaluate("document.querySelectorAll('#tokens [data-index]').length") <= 4000
    page.focus("#text")
    page.keyboard.press("Control+Home")
    page.keyboard.type("cab ")
    assert sheet(page).startswith("cab abc abc")
    choose(page, 2)  # far from the end there are spans too
    until(page, f"JSON.stringify({CHOSEN}) === '[2]'")
    assert len(write(page)) > 100_004
    assert page.evaluate(IS_AT_END)


def test_the_end_stays_in_sight_while_it_writes_and_when_it_ends(page: Any) -> None:
    page.set_viewport_size({"width": 900, "height": 600})
    page.fill("#text", "\n".join(["the cat eats dates"] * 700))  # more than 3,000 tokens
    page.evaluate("document.querySelector('#settings').open = true")
    page.fill("#set-maxNewTokens", "300")
    page.evaluate("document.querySelector('#paper').scrollTop = 0")
    seen = page.evaluate(f"""async () => {{
        const seen = [];
        const buttons = [...document.querySelectorAll("#buttons button")];
        buttons.find(button => button.textContent === "Write").click();
        while (minigpt.now().busy) {{
            await new Promise(requestAnimationFrame);
            await new Promise(done => setTimeout(done));
            seen.push({IS_AT_END});
        }}
        return seen;
    }}""")
    assert seen and all(seen)
    until_read(page)
    two_frames(page)
    assert page.evaluate(IS_AT_END)
    page.evaluate("document.querySelector('#paper').scrollTop = 0")  # who looks back is left there
    two_frames(page)
    assert not page.evaluate(IS_AT_END)


def test_a_tap_chooses_without_the_keyboard_of_a_phone(open_page: Open, found: FoundModel) -> None:
    context = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    page = open_page(found, link=f"#prompt={PROMPT}", context=context)
    until_read(page)
    tap(page, 3)
    until(page, f"JSON.stringify({CHOSEN}) === '[3]'")
    assert page.evaluate("document.querySelector('#text').inputMode") == "none"
    page.get_by_role("button", name="Type", exact=True).tap()
    assert page.evaluate("[document.activeElement.id, document.activeElement.inputMode]") == [
        "text",
        "text",
    ]


def test_one_tab_leads_from_the_text_to_the_view(page: Any) -> None:
    choose(page, 3)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.querySelector('#panels').contains(document.activeElement)")


def test_what_the_tints_mean_is_said_where_they_are(page: Any) -> None:
    assert "surprised" in page.inner_text("#text-head")
    assert re.search("You typed it or the model wrote it", page.inner_text("#text-head"))
    assert (
        json.loads(page.evaluate("JSON.stringify(document.querySelectorAll('.scale').length)")) == 1
    )


def test_undo_puts_the_caret_where_the_text_has_changed(page: Any) -> None:
    page.focus("#text")
    page.keyboard.press("Control+Home")
    page.keyboard.press("Control+ArrowRight")
    type_in_one_go(page, "big ")
    until_read(page)
    page.keyboard.press("Control+End")
    page.keyboard.press("Control+z")
    until_read(page)
    assert sheet(page) == PROMPT
    focused, caret = page.evaluate(CARET)
    assert focused == "text" and caret <= len("There the")


def test_the_marks_of_the_sheet_stay_there_when_text_is_copied(page: Any) -> None:
    page.fill("#text", "one∎two␍\nthree")
    until_read(page)
    assert sheet(page) == "one∎two␍\nthree"
    page.focus("#text")
    page.keyboard.press("Control+a")
    page.keyboard.press("Control+x")
    assert page.evaluate("navigator.clipboard.readText()") == "onetwo\r\nthree"
    assert sheet(page) == ""
