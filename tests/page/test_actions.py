"""Whatever a person does, in any order: nothing hangs, and the sheet shows the model's numbers."""

import json
from functools import cache
from typing import Any

import numpy as np
import pytest

from minigpt.generation.scoring import log_softmax
from minigpt.runs.found import FoundModel
from minigpt.tokenizer import make_tokenizer

from ..tokenizer.examples import FABLE
from .conftest import Open, place_of, random_found, until, until_read
from .test_sheet import SAME

pytestmark = pytest.mark.page
SHAPE = {"emb_dim": 24, "num_layers": 2, "num_heads": 2, "context_length": 24}
PARTS = [
    " the cat",
    "s",
    " ",
    "\n",
    "日本",
    "🇩🇪",
    ", ",
    "  ",
    "It's",
    " 12",
    "\n\n",
    "∎",
    "e\u0301",
]
SEQUENCES, ACTIONS = 4, 20
# What a tab keeps before it is put to sleep: the versions of the text.
KEPT = (
    "window.dispatchEvent(new Event('freeze')), JSON.parse(sessionStorage.getItem('minigpt-page'))"
)
SHEET = """[document.querySelector('#text').value, document.querySelector('#tokens').textContent,
    [...document.querySelectorAll('#tokens [data-index]')]
        .map(e => [Number(e.dataset.index), Number(e.style.getPropertyValue('--tint'))]),
    ...['#status', '#problem'].map(name => document.querySelector(name).textContent)]"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> FoundModel:
    tokenizer = make_tokenizer("bpe", 300, [FABLE])
    return random_found(tokenizer, tmp_path_factory.mktemp("run"), **SHAPE)


class Person:
    """Somebody who does one thing after another, at random."""

    def __init__(self, page: Any, seed: int):
        self.page = page
        self.random = np.random.default_rng(seed)

    def act(self) -> str:
        names = [name for name in dir(self) if name.startswith("do_")]
        name = str(self.random.choice(names))
        getattr(self, name)()
        if self.random.random() < 0.5:
            self.page.wait_for_timeout(int(self.random.integers(0, 120)))
        return name

    def parts(self, most: int) -> str:
        return "".join(self.random.choice(PARTS, size=self.random.integers(0, most)))

    def press(self, name: str) -> None:
        button = self.page.get_by_role("button", name=name, exact=True)
        if button.is_enabled():
            button.click()

    def do_write(self) -> None:
        self.press("Write")

    def do_stop(self) -> None:
        self.press("Stop")

    def do_write_from_here(self) -> None:
        self.press("Write from here")

    def do_again(self) -> None:
        self.press("Again")

    def do_undo(self) -> None:
        self.press("Undo")

    def do_undo_with_a_key(self) -> None:
        self.page.focus("#text")
        self.page.keyboard.press("Control+z")

    def do_redo(self) -> None:
        self.press("Redo")

    def do_new_text(self) -> None:
        self.page.fill("#text", self.parts(40))

    def do_type(self) -> None:
        self.page.focus("#text")
        for _ in range(self.random.integers(0, 8)):
            self.page.keyboard.press(str(self.random.choice(["ArrowLeft", "ArrowUp", "Home"])))
        self.page.keyboard.type(self.parts(4).replace("\n", "."))

    def do_delete(self) -> None:
        self.page.focus("#text")
        key = str(self.random.choice(["Backspace", "Delete", "Control+Backspace"]))
        for _ in range(self.random.integers(1, 5)):
            self.page.keyboard.press(key)

    def do_choose(self) -> None:
        count = self.page.locator("#tokens [data-index]").count()
        index = int(self.random.integers(0, max(1, count)))
        try:
            self.page.mouse.click(*place_of(self.page, index))
        except Exception as error:
            assert "null" in str(error) or "undefined" in str(error)  # it is gone, or has no place

    def do_step(self) -> None:
        self.press(str(self.random.choice(["Previous token", "Next token"])))

    def do_heads(self) -> None:
        off = [f"{i + 1}.{h + 1}" for i in range(2) for h in range(2) if self.random.random() < 0.3]
        self.page.evaluate(f"""() => {{
            for (const button of document.querySelectorAll("#panel-heads .switches button")) {{
                const isOff = {json.dumps(off)}.includes(button.textContent);
                if ((button.ariaPressed === "false") !== isOff) button.click();
            }}
        }}""")

    def do_reload(self) -> None:
        self.page.reload()
        self.page.evaluate("minigpt.ready")

    def do_back(self) -> None:
        self.page.evaluate("history.length > 2 && history.state?.version > 1 && history.back()")


@pytest.mark.parametrize("seed", range(SEQUENCES))
def test_nothing_hangs_and_each_number_is_the_models(
    seed: int, open_page: Open, found: FoundModel
) -> None:
    link = "#prompt=The cat&maxNewTokens=40&temperature=1.2"
    page = open_page(found, link=link, weights="float32")
    person = Person(page, seed)

    @cache
    def logits(window: tuple[int, ...], off: tuple[tuple[int, int], ...]) -> Any:
        record = found.glass.record(np.array(window), off)
        return log_softmax(found.glass.logits(record.residual[-1, -1]))

    for turn in range(ACTIONS):
        done = person.act()
        if turn % 2:
            continue  # the next one comes before this one has ended
        until_read(page)
        until(page, SAME)
        kept = page.evaluate(KEPT)
        value, shown, tints, status, problem = page.evaluate(SHEET)
        assert shown == f"{value}\u200b", done
        assert status != "Writing." and problem == "", done

        text = next(text for text in unpacked(kept["texts"]) if text["number"] == kept["text"])
        off = tuple(sorted(tuple(map(int, name.split("."))) for name in kept["off"]))
        for place, tint in tints:
            start = text["starts"][place]
            window = tuple(text["ids"][start:place])
            assert len(window) <= SHAPE["context_length"]
            bits = -logits(window, off)[text["ids"][place]] / np.log(2) if window else 0
            assert tint == pytest.approx(min(1, max(0, bits / 10)), abs=1e-3), (done, place)


def unpacked(saved: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The versions that a tab keeps, each whole."""
    texts: dict[int, dict[str, Any]] = {}
    for text in saved:
        parent = texts.get(text.get("parent") or 0, {"ids": [], "starts": []})
        starts = [start for count, start in text["starts"] for _ in range(count)]
        kept = text["kept"]
        texts[text["number"]] = text | {
            "ids": [*parent["ids"][:kept], *text["ids"]],
            "starts": [*parent["starts"][:kept], *starts],
        }
    return list(texts.values())
