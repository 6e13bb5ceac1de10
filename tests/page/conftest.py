"""Pages in Debian's Chromium, driven by playwright; `make test-page` installs both."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minigpt.config import GPTConfig, named_shapes
from minigpt.generation.numpy_gpt import NumpyGPT
from minigpt.page.build import build_page
from minigpt.runs.found import FoundModel
from minigpt.runs.journal import JOURNAL, TEXTS
from minigpt.runs.json_lines import lines_of
from minigpt.tokenizer import Tokenizer, make_tokenizer

from ..browser import new_context
from ..tokenizer.examples import FABLE

SHAPE = {"emb_dim": 24, "num_layers": 2, "num_heads": 3, "context_length": 64}
PROMPT = "There the cat eats dates and the cat sat"
Open = Callable[..., Any]  # a page of a model, its file's name with what follows it


def random_found(tokenizer: Tokenizer, folder: Path, seed: int = 0, **shape: Any) -> FoundModel:
    """A model of this shape with wide random weights."""
    config = GPTConfig(tokenizer.vocab_size, **shape)
    random, weights = np.random.default_rng(seed), {}
    for name, shape in named_shapes(config):
        drawn = random.standard_normal(shape).astype(np.float32)
        wide = drawn * 1.5 / shape[-1] ** 0.5 if len(shape) == 2 else 1 + 0.2 * drawn
        weights[name] = wide.astype(np.float32)
    weights["token_embedding.weight"][tokenizer.end_of_text] = 0  # hardly ever drawn
    return FoundModel(folder, NumpyGPT(config, weights), tokenizer)


def write_samples(folder: Path, texts: dict[int, str]) -> None:
    """What the model of a run wrote after its evaluations, by step."""
    rows = [{"step": step, "is_evaluation": True, "text": texts[step]} for step in texts]
    (folder / JOURNAL).mkdir(exist_ok=True)
    (folder / JOURNAL / TEXTS).write_text(lines_of(rows))


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> FoundModel:
    """A small model with rotary positions and pieces of words as tokens."""
    tokenizer = make_tokenizer("bpe", 320, [FABLE])
    return random_found(tokenizer, tmp_path_factory.mktemp("run"), **SHAPE)


def until(page: Any, condition: str) -> None:
    """Wait for a condition in JavaScript; playwright's own way needs what the page forbids."""
    for _ in range(400):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(25)
    raise AssertionError(f"never: {condition}")


def until_read(page: Any) -> None:
    """Wait until nothing is written and the surprise of each token is known."""
    page.wait_for_timeout(60)  # a frame or two, until it has begun
    until(page, "document.querySelector('#tokens').ariaBusy === 'false'")


def until_drawn(page: Any) -> None:
    """Wait until the map and the open view show what they are about."""
    two_frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    page.evaluate(two_frames)  # what has changed is asked for in the first one
    until(page, "!document.querySelector('#map[aria-busy=true], .view[aria-busy=true]')")


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
    page.wait_for_timeout(40)


@pytest.fixture(scope="module")
def open_page(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """Opens the page of a model; at the end there was no error and no request but for the page."""
    folder, opened, wrong = tmp_path_factory.mktemp("page"), [], []
    allowed = ("file://", "blob:", "data:")

    def open_page(
        found: FoundModel,
        *,
        link: str = "",
        width: int = 1600,
        context: dict[str, Any] | None = None,
        **settings: Any,
    ) -> Any:
        file = folder / f"{len(opened)}.html"
        file.write_text(build_page(found, "test", **settings), encoding="utf-8")
        # With less motion no page writes on its own when it opens.
        usual = {"viewport": {"width": width, "height": 1000}, "reduced_motion": "reduce"}
        context = new_context(chromium, **usual | (context or {}))
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        opened.append(context)
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda r: r.url.startswith(allowed) or wrong.append(r.url))
        page.goto(f"{file.as_uri()}{link}")
        page.evaluate("minigpt.ready")
        return page

    yield open_page
    for context in opened:
        context.close()
    assert wrong == []
