"""Pages in Debian's Chromium, driven by playwright; `make test-page` installs both."""

import base64
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minigpt.config import USUAL, GPTConfig, named_shapes
from minigpt.generation.numpy_gpt import NumpyGPT
from minigpt.page.build import build_page
from minigpt.runs.folder import GENERATION, JOURNAL, SAMPLES
from minigpt.runs.read_model import FoundModel
from minigpt.system.eight_bits import restored, rounded
from minigpt.system.json_objects import lines_of
from minigpt.system.safetensors_files import read_weights
from minigpt.tokenizer import Tokenizer, make_tokenizer

from ..browser import new_context, two_frames
from ..patience import PATIENCE
from ..tokenizer.examples import FABLE

SHAPE = {"emb_dim": 24, "num_layers": 2, "num_heads": 3, "context_length": 64}
PROMPT = "There the cat eats dates and the cat sat"
Open = Callable[..., Any]  # a page of a model, its file's name with what follows it


def random_found(tokenizer: Tokenizer, folder: Path, seed: int = 0, **shape: Any) -> FoundModel:
    """A model of this shape with wide random weights, as its page holds it, that is sampled as a
    new run is."""
    config = GPTConfig(tokenizer.vocab_size, **shape)
    random, weights = np.random.default_rng(seed), {}
    for name, shape in named_shapes(config):
        drawn = random.standard_normal(shape).astype(np.float32)
        wide = drawn * 1.5 / shape[-1] ** 0.5 if len(shape) == 2 else 1 + 0.2 * drawn
        weights[name] = wide.astype(np.float32)
    weights["token_embedding.weight"][tokenizer.end_of_text] = 0  # hardly ever drawn
    (folder / GENERATION).write_text(json.dumps(USUAL))
    return as_in_page(FoundModel(folder, NumpyGPT(config, weights), tokenizer))


def as_in_page(found: FoundModel) -> FoundModel:
    """The model whose weights are those that are stored in the page of a model, rounded to 8
    bits."""
    weights = {
        name: array.astype(np.float32)
        for name, array in restored(rounded(found.glass.weights)).items()
    }
    return replace(found, glass=NumpyGPT(found.glass.config, weights))


def weights_in(page: str, folder: Path) -> dict[str, Any]:
    """The weights that a page holds, read by the package."""
    (content,) = re.findall(r'id="weights">([^<]*)</script>', page)
    file = folder / "weights.safetensors"
    file.write_bytes(base64.b64decode(content))
    return read_weights(file)


def write_samples(folder: Path, texts: dict[int, str]) -> None:
    """What the model of a run wrote after its evaluations, by step."""
    rows = [{"step": step, "is_evaluation": True, "text": texts[step]} for step in texts]
    (folder / JOURNAL).mkdir(exist_ok=True)
    (folder / JOURNAL / SAMPLES).write_text(lines_of(rows))


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> FoundModel:
    """A small model with rotary positions and pieces of words as tokens."""
    tokenizer = make_tokenizer("bpe", 320, [FABLE])
    return random_found(tokenizer, tmp_path_factory.mktemp("run"), **SHAPE)


def until(page: Any, condition: str) -> None:
    """Wait for a condition in JavaScript; playwright's own way needs what the page forbids."""
    is_so = page.evaluate(f"""async () => {{
        const end = Date.now() + {PATIENCE * 1000};
        while (!({condition})) {{
            if (Date.now() > end) return false;
            await new Promise(done => setTimeout(done, 10));
        }}
        return true;
    }}""")
    assert is_so, f"never: {condition}"


def until_read(page: Any) -> None:
    """Wait until nothing is written and the surprise of each token is known."""
    two_frames(page)  # what has changed is asked for in the first one
    until(page, "document.querySelector('#tokens').ariaBusy === 'false'")


def until_drawn(page: Any) -> None:
    """Wait until the map and the open view show what they are about."""
    two_frames(page)
    until(page, "!document.querySelector('#map[aria-busy=true], .view[aria-busy=true]')")


def until_still(page: Any) -> None:
    """Wait until all is drawn, and nothing moves or changes its colour any more."""
    until_drawn(page)
    page.evaluate("Promise.allSettled(document.getAnimations().map(({ finished }) => finished))")
    two_frames(page)


def until_longer(page: Any, length: int, tokens: int = 1) -> None:
    """Wait until so many tokens are written after those that were there, or the writing is over."""
    until(page, f"minigpt.now().ids.length >= {length + tokens} || !minigpt.now().busy")


def pass_time(page: Any, milliseconds: int) -> None:
    """The page takes it to be so much later."""
    page.evaluate(
        """ms => {
            const now = () => Performance.prototype.now.call(performance);
            const ahead = performance.now() - now() + ms;
            performance.now = () => now() + ahead;
        }""",
        milliseconds,
    )


def type_in_one_go(page: Any, text: str) -> None:
    """Type without a pause, as the page takes it, however long the machine needs."""
    page.evaluate("() => { const now = performance.now(); performance.now = () => now; }")
    page.keyboard.type(text)
    page.evaluate("delete performance.now")


def open_view(page: Any, view: str) -> None:
    """Open a view by its first box in the map."""
    page.locator(f"#map [data-view='{view}']").first.click()
    until_drawn(page)


def write(page: Any) -> str:
    """Write on, and give back the whole text."""
    page.get_by_role("button", name="Write", exact=True).click()
    until_read(page)
    return str(page.evaluate("minigpt.text()"))


def place_of(page: Any, index: int) -> tuple[float, float]:
    """The middle of a token in the window; it is brought into sight."""
    x, y = page.evaluate(f"""() => {{
        const token = document.querySelector("#tokens [data-index='{index}']");
        token.scrollIntoView({{ block: "nearest" }});
        const {{ x, y, width, height }} = token.getClientRects()[0];
        return [x + width / 2, y + height / 2];
    }}""")
    return x, y


def choose(page: Any, index: int) -> None:
    """Choose a token of the text with the mouse."""
    page.mouse.click(*place_of(page, index))
    until_drawn(page)


def tap(page: Any, index: int) -> None:
    """Choose a token of the text with a finger."""
    page.touchscreen.tap(*place_of(page, index))
    until(page, f"minigpt.now().chosen === {index}")
    until_drawn(page)


class Pages:
    """Opens pages in one browser. The page of a model is built once, and a tab that a test has left
    is used again: a new one takes three times as long to open."""

    def __init__(self, browser: Any, folder: Path):
        self.browser = browser
        self.folder = folder
        # By the identity of a model, which is kept so that no other one gets it.
        self.built: dict[tuple[Any, ...], tuple[FoundModel, Path]] = {}
        self.free: dict[str, list[Any]] = defaultdict(list)  # by the options of their context
        self.problems: dict[Any, list[str]] = {}  # by tab
        self.visits = 0

    def file_of(self, found: FoundModel, **settings: Any) -> Path:
        """The file of the page of a model."""
        key = (id(found), *sorted(settings.items()))
        if key not in self.built:
            file = self.folder / f"{len(self.built)}.html"
            page = build_page(found, "test", **settings)
            stored = weights_in(page, self.folder)
            for name, array in found.glass.weights.items():  # which tests compute with
                np.testing.assert_array_equal(stored[name], array)
            file.write_text(page, encoding="utf-8")
            self.built[key] = (found, file)
        return self.built[key][1]

    def new_tab(self, options: dict[str, Any]) -> Any:
        context = new_context(self.browser, **options)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        tab = context.new_page()
        wrong = self.problems[tab] = []
        allowed = ("file://", "blob:", "data:")
        tab.on("console", lambda message: wrong.append(message.text))
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("request", lambda r: r.url.startswith(allowed) or wrong.append(r.url))
        return tab

    @contextmanager
    def lent(self) -> Iterator[Open]:
        """A function that opens pages. At the end there was no error, and no request but for the
        pages."""
        tabs: list[tuple[str, Any]] = []

        def open_page(
            found: FoundModel,
            *,
            link: str = "",
            width: int = 1600,
            context: dict[str, Any] | None = None,
            is_new: bool = False,
            **settings: Any,
        ) -> Any:
            # With less motion no page writes on its own when it opens.
            usual = {"viewport": {"width": width, "height": 1000}, "reduced_motion": "reduce"}
            options = usual | (context or {})
            size = options.pop("viewport")
            key = "new" if is_new else repr(sorted(options.items()))
            tab = self.free[key].pop() if self.free[key] else self.new_tab(options)
            tabs.append((key, tab))

            tab.set_viewport_size(size)
            tab.mouse.move(0, 0)
            tab.emulate_media(media="null", reduced_motion=options["reduced_motion"])
            self.visits += 1  # a reload finds what was kept at its own address
            tab.goto(f"{self.file_of(found, **settings).as_uri()}?{self.visits}{link}")
            tab.evaluate("minigpt.ready")
            return tab

        yield open_page
        problems = [problem for _, tab in tabs for problem in self.problems[tab]]
        for key, tab in tabs:
            if key == "new" or problems:
                tab.context.close()
            else:
                self.free[key].append(tab)
        assert problems == []


@pytest.fixture(scope="session")
def pages(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Pages:
    return Pages(chromium, tmp_path_factory.mktemp("pages"))


@pytest.fixture
def open_page(pages: Pages) -> Iterator[Open]:
    """Opens the page of a model, for one test; with `is_new` in a tab without a history."""
    with pages.lent() as opened:
        yield opened


@pytest.fixture(scope="module")
def open_for_module(pages: Pages) -> Iterator[Open]:
    """The same for all tests of a file."""
    with pages.lent() as opened:
        yield opened
