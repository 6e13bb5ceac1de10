"""The talk: the one text of the page as turns, in which the same is said, read and answered as
`generate --interactive` does in Python."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt import SampleConfig
from minigpt.config import TrainConfig
from minigpt.data.dialogue import Dialogue
from minigpt.data.origin import Origin
from minigpt.data.readers.chats.turns import clean_text
from minigpt.data.readers.document import Layout
from minigpt.generation.numpy_gpt import NumpyGPT
from minigpt.generation.talk import Talk, read_talk
from minigpt.generation.window import Window
from minigpt.page.build import SCRIPT, code_of, page_dialogue
from minigpt.runs.find import glass_writer
from minigpt.runs.folder import RunConfig
from minigpt.runs.read_model import FoundModel
from minigpt.tokenizer import make_tokenizer

from ..browser import axe_finds
from ..tokenizer.examples import FABLE
from .conftest import (
    Open,
    as_in_page,
    open_view,
    random_found,
    until,
    until_drawn,
    until_read,
    until_still,
    write_samples,
)
from .in_node import Worker
from .test_every_number import check_all
from .test_frame import PHONE

CONTEXT = 64
SHAPE = {"emb_dim": 24, "num_layers": 2, "num_heads": 3, "context_length": CONTEXT}
SPEAKERS = {"Otto": 9, "Anna": 8, "Paul Weiß": 1}
LAYOUTS = (
    Layout(),
    Layout("{speaker}:\n{text}\n\n"),
    Layout("{speaker}. {text}\n", ends_at_name=True),
)
DRAWN = """(logits, settings, ids, forbidden) => drawn(Float32Array.from(logits), settings, [],
    dieNumber(settings.seed, ids.length, ids), forbidden)"""
LAST = "[...document.querySelectorAll('#turns .turn')].at(-1).innerText"
few = settings(max_examples=60, deadline=None)


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    worker = Worker(tmp_path_factory.mktemp("node"))
    yield worker
    worker.close()


# How a talk is read and written


lines = st.sampled_from(
    ["hi", "Anna: hi", "otto : no: never", "PAUL WEISS:", " Anna.  yes ", "Otto:", "", "\u200bx",
     "Note: a", "Anna:\tb\x85c", "paul  weiß: d", ": e", "\ud800f", "<|turn|>\xad<|speaker|>\u200c"]
)  # fmt: skip
texts = st.lists(lines, max_size=6).map("\n".join)


@given(said=texts, typed=texts, layout=st.sampled_from(LAYOUTS))
@few
def test_turns_are_read_written_and_answered_as_in_python(
    worker: Worker, said: str, typed: str, layout: Layout
) -> None:
    dialogue = Dialogue(SPEAKERS, layout)
    talk = read_talk(dialogue, said)
    before = read_talk(dialogue, said, "Anna")
    for turn in read_talk(dialogue, typed, "Anna", before.asker).turns:
        before = before.add(*turn)
    found = worker.call(
        """(data, said, typed) => {
            const dialogue = new Dialogue(data);
            const turns = dialogue.added([], said, { answerer: "Anna" });
            const asker = dialogue.askerOf(turns, "Anna");
            const all = dialogue.added(turns, typed, { answerer: "Anna", asker });
            const answerer = dialogue.usualAnswerer(said);
            return { answerer, asker, all, written: dialogue.write(all) };
        }""",
        page_dialogue(dialogue),
        said,
        typed,
    )
    assert found["answerer"] == talk.answerer
    assert found["asker"] == read_talk(dialogue, said, "Anna").asker
    assert [(turn["speaker"], turn["text"]) for turn in found["all"]] == list(before.turns)
    assert found["written"] == dialogue.write(before.turns)


def test_a_turn_is_over_at_its_end_and_where_the_text_has_ended(worker: Worker) -> None:
    is_over = f"""(data, ids, pieces) => {{
        const dialogue = new Dialogue(data);
        const tokenizer = {{ end: 9 }};
        {code_of(SCRIPT.parents[1] / "core/turns.js")}
        return isOver({{ ids, pieces }}, {{ said: 1, end: ids.length }});
    }}"""
    data = page_dialogue(Dialogue(SPEAKERS))
    for ids, pieces, expected in (
        ([1, 2], ["Anna:", " hi"], False),
        ([1, 2, 9], ["Anna:", " hi", ""], True),
        ([1, 9, 2], ["Anna:", "", " hi"], False),
        ([1, 2, 3], ["Anna:", " hi", "\n\n"], True),
        ([1, 2, 3], ["Anna:", " hi", "\n"], False),
    ):
        assert worker.call(is_over, data, ids, pieces) == expected


# What the model reads and answers

SHORT = {"A": 9, "B": 8, "BA": 1}
MODELS = {
    "tokens": Dialogue(SHORT),  # of the tokenizer, for turns
    "letters": Dialogue(SHORT),
    "play": Dialogue(SHORT, Layout("{speaker}:\n{text}\n\n")),
    "interview": Dialogue(SHORT, Layout("{speaker}. {text}\n", ends_at_name=True)),
}
SEEDS = {"letters": 1, "play": 2, "interview": 18}  # of models that end turns
ALPHABET = "AB. a\n"


def found_talk(name: str, folder: Path) -> FoundModel:
    """A model that writes few letters, so that a turn soon ends."""
    alphabet = ALPHABET if name == "interview" else f"{ALPHABET}:"
    if name in ("tokens", "letters"):
        tokenizer = make_tokenizer("bpe", 270, [alphabet], has_turns=name == "tokens")
    else:
        tokenizer = make_tokenizer("char", None, [alphabet])
    model = random_found(tokenizer, folder, seed=SEEDS.get(name, 0), **SHAPE)
    weights = dict(model.glass.weights)
    vectors = weights["token_embedding.weight"].copy()
    vectors[tokenizer.encode("a\nA.")[-3:]] *= (
        1.8 if name in ("tokens", "letters") else 2.4
    )  # which end turns
    glass = NumpyGPT(model.glass.config, weights | {"token_embedding.weight": vectors})

    origin = Origin(alphabet=alphabet.encode().hex(), dialogue=MODELS[name])
    config = RunConfig(glass.config, TrainConfig(), origin)
    return as_in_page(replace(model, glass=glass, config=config))


class PageSampler:
    """Draws as the page does."""

    def __init__(self, worker: Worker, ids: list[int], settings: dict[str, Any], bias: Any):
        self.worker, self.ids, self.settings = worker, ids, settings
        self.marked = {"forbidden": np.flatnonzero(bias).tolist()}

    def __call__(self, logits: Any) -> Any:
        token = self.worker.call(DRAWN, logits[0].tolist(), self.settings, self.ids, self.marked)
        self.ids.append(token)
        return np.array([token])


def answer_in_python(
    found: FoundModel, talk: Talk, worker: Worker, settings: dict[str, Any]
) -> tuple[str, bool, list[int], list[int]]:
    """The answer, whether its turn is over, and the ids before it: those that the model read, and
    all of the talk's."""
    count = settings["maxNewTokens"]
    writer = glass_writer(found)
    prompt = talk.prompt(found.tokenizer, context_length=CONTEXT, max_new_tokens=count)
    read = found.tokenizer.encode(prompt)
    whole = found.tokenizer.encode(talk.dialogue.write(talk.turns) + talk.opening)
    config = talk.settings(SampleConfig(max_new_tokens=count))
    sampler: Any = PageSampler(worker, list(whole), settings, writer.bias)
    steps = list(writer.write(Window(found.glass, read), sampler, config))
    answer = "".join(step.text for step in steps)
    return clean_text(answer), steps[-1].stop_reason == "stop", read, whole


@pytest.mark.page
@pytest.mark.parametrize("name", MODELS)
def test_a_talk_has_the_tokens_and_the_answers_that_it_has_in_python(
    name: str, open_page: Open, worker: Worker, tmp_path: Path
) -> None:
    found = found_talk(name, tmp_path)
    drawing = {"temperature": 1, "repetitionPenalty": 1, "seed": 4, "maxNewTokens": 40}
    link = "#prompt=&temperature=1&seed=4&maxNewTokens=40&look=talk"
    page = open_page(found, link=link)
    talk = read_talk(MODELS[name], "")
    left, ends = 0, 0

    for typed in ("a aa", "a.\n\naa", "BA: a a", "aa", "aaa aa", "a", "A a"):
        for turn in read_talk(talk.dialogue, typed, talk.answerer, talk.asker).turns:
            talk = talk.add(*turn)
        answer, is_over, read, whole = answer_in_python(found, talk, worker, drawing)

        page.fill("#line", typed)
        page.press("#line", "Enter")
        until_read(page)
        now = page.evaluate("minigpt.now()")
        n = len(whole)
        assert now["ids"][:n] == whole or left  # before what has left, empty lines may be cut anew
        assert now["ids"][now["starts"][n] : n] == read
        assert turns_of(page)[-1] == (talk.answerer, answer)
        talk = talk.add(talk.answerer, answer)
        left += now["starts"][n] > 0
        assert is_over == ("The turn is over" in page.inner_text("#status"))
        ends += is_over

    assert left and ends
    check_all(page, found, np.flatnonzero(glass_writer(found).bias))


def turns_of(page: Any) -> list[tuple[str, str]]:
    """The turns on view, by what is read in them."""
    found = page.evaluate("""[...document.querySelectorAll("#turns .turn")].map((turn) => {
        const read = (place) => [...turn.querySelectorAll(`${place} [data-index]:not(.token-mark)`)]
            .map((token) => token.textContent).join("");
        return [read(".name"), read(".words")];
    })""")
    return [(name.strip(" .:\n"), clean_text(words)) for name, words in found]


# What a person sees and does


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> FoundModel:
    return found_talk("tokens", tmp_path_factory.mktemp("run"))


LINK = "#prompt=B: a aa%0A%0AA: aa a.%0A%0A&temperature=1&seed=4&maxNewTokens=40&answerer=A"


@pytest.fixture
def page(open_page: Open, found: FoundModel) -> Any:
    page = open_page(found, link=LINK)
    until_read(page)
    return page


def say(page: Any, text: str) -> None:
    page.fill("#line", text)
    page.press("#line", "Enter")
    until_read(page)


def press(page: Any, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()
    until_read(page)


@pytest.mark.page
def test_a_run_without_speakers_has_no_talk(open_page: Open, tmp_path: Path) -> None:
    page = open_page(random_found(make_tokenizer("bpe", 320, [FABLE]), tmp_path, **SHAPE))
    assert page.locator("#look button, #talk *, #new-talk").count() == 0
    assert page.locator("#paper").is_visible()


@pytest.mark.page
def test_each_word_name_and_turn_token_can_be_asked_why(page: Any, found: FoundModel) -> None:
    ids = page.evaluate("minigpt.now().ids")
    assert ids == found.tokenizer.encode("B: a aa\n\nA: aa a.\n\n")
    shown = page.locator("#turns [data-index]")
    assert shown.count() == len(ids)
    for place, name in ((1, "B"), (ids.index(found.tokenizer.end_of_turn), "end of turn"),
                        (len(ids) // 2 + 1, None)):  # fmt: skip
        shown.nth(place).click()
        until_drawn(page)
        assert page.evaluate("minigpt.now().chosen") == place
        assert name is None or page.inner_text("#subject-line") == f"Why {name}?"
        check_all(page, found, np.flatnonzero(glass_writer(found).bias))
    second = [i for i, token in enumerate(ids) if token == found.tokenizer.speaker][1]
    shown.nth(second).click()
    until_drawn(page)
    assert page.inner_text("#subject-line") == "Why next speaker?"
    open_view(page, "attention")
    until(page, "document.querySelectorAll('#turns-room svg.arcs path').length > 0")

    page.focus("#turns")
    page.keyboard.press("ArrowRight")
    until(page, f"minigpt.now().chosen === {second + 1}")


@pytest.mark.page
def test_both_looks_show_one_text(page: Any) -> None:
    say(page, "a")
    text, turns = page.evaluate("minigpt.text()"), turns_of(page)
    page.click("#look-sheet")
    assert page.input_value("#text").replace("▸", "") == text
    assert page.input_value("#text").count("▸") == len(turns)
    page.fill("#text", f"{text}BA: aa")  # the token before the turn comes by itself
    until_read(page)
    assert page.input_value("#text").count("▸") == len(turns) + 1
    page.click("#look-talk")
    until(page, "document.querySelector('#talk').checkVisibility()")
    assert turns_of(page) == [*turns, ("BA", "aa")]


@pytest.mark.page
def test_one_speaks_as_somebody_and_another_one_answers(page: Any) -> None:
    assert page.input_value("#asker") == "B" and page.input_value("#answerer") == "A"
    page.select_option("#asker", "A")  # who answered until now
    until(page, "document.querySelector('#answerer').value === 'B'")
    say(page, "aa a")
    assert [name for name, _ in turns_of(page)[-2:]] == ["A", "B"]
    page.select_option("#answerer", "BA")
    until(page, "document.querySelector('#send').textContent === 'Let BA speak'")
    press(page, "Let BA speak")
    assert turns_of(page)[-1][0] == "BA"
    assert page.inner_text("#send") == "Let A speak"


@pytest.mark.page
def test_a_turn_is_taken_back_said_again_and_said_otherwise(page: Any) -> None:
    first = turns_of(page)
    say(page, "a aa")
    second = turns_of(page)
    press(page, "Again")
    again = turns_of(page)
    assert again[:-1] == second[:-1] and again[-1] != second[-1]
    press(page, "Undo")
    assert turns_of(page) == second
    press(page, "Undo")
    assert turns_of(page) == first
    press(page, "Redo")

    page.locator("#turns .turn").nth(2).hover()
    page.get_by_role("button", name="Edit what B says").nth(1).click()
    page.keyboard.press("Control+a")
    page.keyboard.type("A.a")
    page.keyboard.press("Enter")
    until_read(page)
    edited = turns_of(page)
    assert edited[:3] == [*first, ("B", "A.a")] and edited[3][0] == "A" and len(edited) == 4
    assert page.evaluate("document.activeElement.id") == "line"

    page.get_by_role("button", name="Edit what A says").first.click()
    page.keyboard.press("Escape")
    until(page, "document.querySelector('.turn.editing') === null")
    assert turns_of(page) == edited
    press(page, "New talk")
    assert turns_of(page) == [] and page.evaluate("minigpt.text()") == ""
    press(page, "Undo")
    assert turns_of(page) == edited


# In the page itself: a person, or playwright, may be too late on a busy machine.
STOP_AT_ONCE = """async () => {
  while (!minigpt.now().busy) await new Promise(requestAnimationFrame);
  [...document.querySelectorAll("button")].find((button) => button.innerText === "Stop").click();
}"""


@pytest.mark.page
def test_an_answer_can_be_stopped_and_gone_on_with(open_page: Open, tmp_path: Path) -> None:
    found = found_talk("letters", tmp_path)
    assert found.config is not None
    origin = replace(found.config.origin, alphabet=b"a .".hex())  # it cannot end a turn
    found = replace(found, config=replace(found.config, origin=origin))
    page = open_page(found, link="#prompt=&temperature=1&maxNewTokens=2")
    say(page, "aa")
    assert page.inner_text("#status") == "2 tokens written."
    before = page.evaluate("minigpt.text()")
    press(page, "Go on")
    assert page.evaluate("minigpt.text()").startswith(before)
    assert len(turns_of(page)) == 2

    page.evaluate("document.querySelector('#settings').open = true")
    page.fill("#set-maxNewTokens", "2000")
    page.fill("#line", "a")
    page.press("#line", "Enter")
    page.evaluate(STOP_AT_ONCE)
    until_read(page)
    assert "Stopped" in page.inner_text("#status")


@pytest.mark.page
def test_an_answer_that_is_whole_is_told_once(page: Any) -> None:
    say(page, "a")
    name, said = turns_of(page)[-1]
    assert page.inner_text("#talk [role=status]").split() == f"{name}: {said}".split()
    assert page.get_attribute("#turns", "role") == "log"
    assert page.get_attribute("#turns", "aria-live") == "off"  # not word by word


@pytest.mark.page
def test_what_has_left_the_window_is_marked(page: Any) -> None:
    for _ in range(4):
        say(page, "aa a. aa a aa")
    start = page.evaluate("minigpt.now().starts.at(-1)")
    assert start > 0
    grey = page.evaluate("document.querySelectorAll('#turns .out-of-sight').length")
    assert grey == start
    assert page.locator("#turns .left-line").is_visible()


@pytest.mark.page
def test_a_link_and_a_reload_keep_the_talk(page: Any, open_page: Open, found: FoundModel) -> None:
    page.select_option("#answerer", "BA")
    say(page, "a aa")
    page.locator("#turns [data-index]").nth(4).click()
    until_drawn(page)
    turns = turns_of(page)
    press(page, "Copy link")
    other = open_page(found, link=page.evaluate("navigator.clipboard.readText()"))
    until_read(other)
    page.reload()
    until_read(page)
    for opened in (page, other):
        assert turns_of(opened) == turns
        assert opened.input_value("#answerer") == "BA"
        assert opened.evaluate("minigpt.now().chosen") == 4
    page.click("#look-sheet")
    press(page, "Copy link")
    other = open_page(found, link=page.evaluate("navigator.clipboard.readText()"))
    assert other.locator("#paper").is_visible() and not other.locator("#talk").is_visible()


@pytest.mark.page
def test_in_a_page_that_follows_a_link_those_speak_who_speak_where_it_is_opened_anew(
    page: Any, open_page: Open, found: FoundModel
) -> None:
    page.select_option("#asker", "BA")
    page.select_option("#answerer", "B")
    page.evaluate("location.hash = '#prompt=B: a'")
    until(page, "minigpt.text() === 'B: a'")
    until_drawn(page)
    other = open_page(found, link="#prompt=B: a")
    until_drawn(other)
    for opened in (page, other):
        names = [opened.input_value(f"#{select}") for select in ("asker", "answerer")]
        assert names == ["B", "A"]


@pytest.mark.page
def test_openings_are_turns_and_begin_a_talk(open_page: Open, tmp_path: Path) -> None:
    found = found_talk("tokens", tmp_path)
    sample = "B: aa aa a a.\n\nA: aaa aa.aa.\n\nB: a a a a a.\n\nB: A"
    write_samples(tmp_path, {1: sample})
    moving = {"viewport": {"width": 1200, "height": 900}, "reduced_motion": "no-preference"}
    page = open_page(found, context=moving)
    until(page, "minigpt.text().startsWith('B: aa aa a a.\\n\\nA:')")  # it is answered at once
    page.locator(".opening").nth(1).click()
    until_read(page)
    assert turns_of(page)[0] == ("B", "a a a a a.") and turns_of(page)[1][0] == "A"


@pytest.mark.page
@pytest.mark.parametrize("width", [390, 1280])
def test_the_talk_fits_the_window_and_axe_finds_nothing(
    width: int, open_page: Open, found: FoundModel
) -> None:
    context = PHONE if width == 390 else {"viewport": {"width": width, "height": 900}}
    page = open_page(found, link=LINK, context=context)
    until_read(page)
    for _ in range(2):
        page.click("#theme")
        say(page, "aa aa a a.")
        until_still(page)
        assert axe_finds(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Edit what A says").first.click()
    assert axe_finds(page) == []
    page.keyboard.press("Escape")
    if width == 390:
        box = page.locator("#send").bounding_box()
        assert box["y"] + box["height"] < page.locator("#panel-bar").bounding_box()["y"]
        tap_word(page)
        assert page.evaluate("document.documentElement.dataset.panel") == "open"


def tap_word(page: Any) -> None:
    page.locator("#turns .words [data-index]").last.tap()
    until(page, "minigpt.now().chosen !== null")
    until_still(page)
