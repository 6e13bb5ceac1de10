"""The law of the page: every number on the screen is the model's, whatever somebody does.

Somebody does twenty things, at random but from a fixed seed. After each the page must come to
rest, and every number of the model that is in sight is computed again with the glass engine, for
the window that the model saw. MINIGPT_SEQUENCES=300 tries so many people instead of 10.
"""

import os
import random
from collections.abc import Sequence
from typing import Any

import pytest

from minigpt.runs.read_model import FoundModel
from minigpt.tokenizer import make_tokenizer

from ..patience import PATIENCE
from ..tokenizer.examples import FABLE
from .conftest import Open, random_found, until_longer
from .facts import Predicted, check_facts

pytestmark = pytest.mark.page

SEQUENCES = int(os.environ.get("MINIGPT_SEQUENCES", "10"))
ACTIONS = 20
CONTEXT = 24  # tokens, so that most texts are longer
SHAPES: dict[str, dict[str, Any]] = {
    "qwen3": {"architecture": "qwen3", "num_heads": 4, "num_kv_heads": 2},
    "gpt2, untied": {"architecture": "gpt2", "num_heads": 3, "tie_embeddings": False},
}
PIECES = (
    " the cat",
    "\n",
    "\n\n",
    " 日本語",
    "🇩🇪",
    "é",
    "  ",
    " eats",
    "12",
    ".",
    "“",
    " x" * 9,
    "\t",
)

RESTS = f"""async () => {{
  const frame = () => new Promise((done) => setTimeout(() => requestAnimationFrame(done), 20));
  const isWaiting = (element) => element.checkVisibility() && element.ariaBusy === "true";
  const isBusy = () =>
    minigpt.now().busy || [...document.querySelectorAll("[aria-busy]")].some(isWaiting);
  const start = performance.now();
  for (let calm = 0; calm < 3; calm = isBusy() ? 0 : calm + 1) {{
    if (performance.now() - start > {PATIENCE * 1000}) return false;
    await frame();
  }}
  return true;
}}"""
# The tints of the sheet, unless a view shows something else in it, and both layers of the text.
SHEET = """() => {
  const tokens = document.querySelector("#tokens");
  const tintOf = (e) => [Number(e.dataset.index), Number(e.style.getPropertyValue("--tint"))];
  const isSurprise = tokens.dataset.tints === "surprise";
  const tints = isSurprise ? [...tokens.querySelectorAll("[data-index]")].map(tintOf) : [];
  return [tints, tokens.textContent, document.querySelector("textarea").value];
}"""
# What somebody may press, but for what leaves the page (downloads, the clipboard).
PRESS = """(at) => {
  const leaves = (e) => /^(Save|Copy)/.test(e.textContent);
  const canBePressed = (e) => e.checkVisibility() && !e.matches(":disabled") && !leaves(e);
  const all = document.querySelectorAll("button, summary, [type=checkbox], [type=radio]");
  const found = [...all].filter(canBePressed);
  const chosen = found[Math.floor(at * found.length)];
  const name = chosen?.ariaLabel || chosen?.textContent;
  chosen?.click();
  return name;
}"""
BEND = """([at, to]) => {
  const all = document.querySelectorAll("input[type=range], select");
  const found = [...all].filter((e) => e.checkVisibility());
  const chosen = found[Math.floor(at * found.length)];
  if (!chosen) return null;
  if (chosen.options) chosen.selectedIndex = Math.floor(to * chosen.options.length);
  else chosen.value = Number(chosen.min) + to * (chosen.max - chosen.min);
  chosen.dispatchEvent(new Event("input", { bubbles: true }));
  chosen.dispatchEvent(new Event("change", { bubbles: true }));
  return chosen.id;
}"""


class Person:
    """Somebody who does things with a page, at random."""

    def __init__(self, page: Any, seed: int):
        self.page = page
        self.random = random.Random(seed)
        self.done: list[str] = []

    def act(self) -> None:
        """Do one thing."""
        things = {
            self.press: 6,
            self.choose: 4,
            self.write: 3,
            self.type: 3,
            self.write_and_type: 1,
            self.write_and_stop: 1,
            self.paste: 1,
            self.bend: 2,
            self.reload: 1,
            self.back: 1,
        }
        (thing,) = self.random.choices(list(things), weights=list(things.values()))
        what = thing()
        self.done.append(f"{thing.__name__} {what}" if what else thing.__name__)

    def press(self) -> Any:
        return self.page.evaluate(PRESS, self.random.random())

    def bend(self) -> Any:
        return self.page.evaluate(BEND, [self.random.random(), self.random.random()])

    def choose(self) -> str:
        """Set the caret, which chooses a token."""
        length = len(self.page.input_value("textarea"))
        place = self.random.randint(0, length)
        self.page.focus("textarea")
        self.page.evaluate(
            "at => document.querySelector('textarea').setSelectionRange(at, at)", place
        )
        return str(place)

    def type(self) -> str:
        self.choose()
        piece = self.random.choice(PIECES)
        self.page.keyboard.insert_text(piece)
        return repr(piece)

    def paste(self) -> str:
        """Another text, up to three contexts long."""
        count = self.random.randint(0, CONTEXT)
        text = "".join(self.random.choice(PIECES) for _ in range(count))
        self.page.fill("textarea", text)
        return repr(text)

    def write(self) -> None:
        self._press_if_possible("Write")

    def write_and_type(self) -> str:
        self._press_if_possible("Write")
        return self.type()

    def write_and_stop(self) -> None:
        before = self.page.evaluate("minigpt.now().ids.length")
        self._press_if_possible("Write")
        until_longer(self.page, before, self.random.randint(0, 8))
        self._press_if_possible("Stop")

    def reload(self) -> None:
        self.page.reload()
        self.page.evaluate("minigpt.ready")

    def back(self) -> None:
        """One step back in the history; whoever leaves the page by it comes again."""
        address = self.page.url
        self.page.go_back(wait_until="commit")
        if not self.page.url.startswith("file:"):
            self.page.goto(address)
        self.page.evaluate("minigpt.ready")

    def _press_if_possible(self, name: str) -> None:
        button = self.page.get_by_role("button", name=name, exact=True)
        if button.count() and button.first.is_visible() and button.first.is_enabled():
            button.first.evaluate("button => button.click()")


def check_all(page: Any, found: FoundModel, forbidden: Sequence[int] = ()) -> set[str]:
    """Compare every number and tint in sight with the glass engine; the kinds that were there."""
    now = page.evaluate("minigpt.now()")
    about = {
        "starts": now["starts"],
        "off": [tuple(map(int, head.split("."))) for head in now["off"]],
        "settings": as_in_the_package(now["settings"]),
        "hidden": now["hidden"],
        "forbidden": forbidden,
    }
    check_sheet(page, found, now["ids"], about)
    return check_facts(page, "body", found, now["ids"], **about)


def check_sheet(page: Any, found: FoundModel, ids: list[int], about: dict[str, Any]) -> None:
    """Compare the sheet's tints with the glass engine, and its tokens with its textarea."""
    tints, tokens, typed = page.evaluate(SHEET)
    assert tokens == f"{typed}\u200b"
    for place, tint in tints:
        bits = (
            Predicted(found, ids, place, **about).number("bits", {"place": place}) if place else 0
        )
        assert tint == pytest.approx(min(1, max(0, bits / 10)), abs=1e-3), (place, tint)


def as_in_the_package(settings: dict[str, float]) -> dict[str, Any]:
    """The page's settings of the draw by the package's names; in the page, 0 is no top k."""
    return {
        "temperature": settings["temperature"],
        "top_k": int(settings["topK"]) or None,
        "top_p": settings["topP"],
        "min_p": settings["minP"],
        "repetition_penalty": settings["repetitionPenalty"],
        "dry_multiplier": settings["dryMultiplier"],
        "dry_base": settings["dryBase"],
        "dry_allowed_length": int(settings["dryAllowedLength"]),
    }


@pytest.fixture(scope="module", params=SHAPES)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> FoundModel:
    """A small model with a short context; one with rotary positions, one with learned ones."""
    tokenizer = make_tokenizer("bpe", 320, [FABLE])
    shape = {"emb_dim": 24, "num_layers": 2, "context_length": CONTEXT} | SHAPES[request.param]
    return random_found(tokenizer, tmp_path_factory.mktemp("run"), **shape)


@pytest.mark.parametrize("seed", range(SEQUENCES // len(SHAPES)))
def test_every_number_in_sight_is_the_models(open_page: Open, found: FoundModel, seed: int) -> None:
    page = open_page(found, link="#maxNewTokens=20", is_new=True)
    person = Person(page, seed)
    seen: set[str] = set()
    try:
        for _ in range(ACTIONS):
            person.act()
            assert page.evaluate(RESTS), "never at rest"
            seen |= check_all(page, found)
            # The sheet shows the end of a text, a carriage return and half a character as signs.
            written = page.input_value("textarea").replace("∎", "").rstrip("�")
            text = page.evaluate("minigpt.text()").replace("\r", "␍").rstrip("�")
            assert written == text, (written[-30:], text[-30:])
            assert page.inner_text("#problem") == ""
    except AssertionError as error:
        raise AssertionError(f"{error} after {person.done}") from error
    assert seen
