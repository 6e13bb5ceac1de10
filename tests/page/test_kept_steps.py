"""A page that holds the weights of earlier steps: the slider of "How it learned" moves the model of
the whole page, which says so, and every number in sight is of the model that it names.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minigpt.page.build import steps_in_page
from minigpt.runs.find import find_model, glass_writer
from minigpt.runs.found import FoundModel

from ..conftest import move_into, train_tiny
from .conftest import Open, open_view, until, until_drawn, until_read, write
from .facts import check_facts

pytestmark = pytest.mark.page

LINK = "#prompt=the fox asked a crow for bread&seed=1&maxNewTokens=5"
SLIDE = """to => {
  const slider = document.querySelector("#panel-learned input");
  slider.value = to === "end" ? slider.max : to;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
}"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has kept the weights of steps 0, 2 and 8, the best."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        place = move_into(tmp_path_factory.mktemp("kept"), monkeypatch)
        return place / train_tiny(keep=3, learning_rate=0.03)


@pytest.fixture(scope="module")
def found(run: Path) -> FoundModel:
    return find_model(run)


def step_on_view(page: Any) -> Any:
    return page.evaluate("minigpt.now().step")


def slide(page: Any, to: Any) -> None:
    open_view(page, "learned")
    page.evaluate(SLIDE, to)
    until_read(page)
    until_drawn(page)


def check_views(page: Any, found: FoundModel) -> None:
    """All numbers in sight are of this model, in some views."""
    now = page.evaluate("minigpt.now()")
    forbidden = np.flatnonzero(glass_writer(found).bias).tolist()
    about = {"starts": now["starts"], "hidden": now["hidden"], "forbidden": forbidden}
    kinds: set[str] = set()
    for view in ("draw", "layers", "vectors", "learned"):
        open_view(page, view)
        kinds |= check_facts(page, "body", found.glass, now["ids"], **about)
    assert {"probability", "after", "lens", "norm"} <= kinds


def test_the_slider_moves_the_model_of_the_whole_page(
    open_page: Open, found: FoundModel, run: Path
) -> None:
    page = open_page(found, link=LINK, weights="float32")
    until_read(page)
    check_views(page, found)

    for to, step, when in (("0", 0, "before its training"), ("1", 2, "after step 2 of its")):
        slide(page, to)
        assert step_on_view(page) == step
        assert f"You see the model as it was {when}" in page.inner_text("#step-shown")
        assert page.inner_text("#title") == f"test@{step}"
        check_views(page, find_model(f"{run}@{step}"))

    write(page)  # with the model of step 2
    open_view(page, "draw")
    page.get_by_role("button", name="Back to the trained model").click()
    until_read(page)
    until_drawn(page)
    assert step_on_view(page) is None and page.inner_text("#title") == "test"
    assert not page.is_visible("#step-shown")
    check_views(page, found)


def test_a_link_and_a_reload_keep_the_step(open_page: Open, found: FoundModel) -> None:
    page = open_page(found, link=f"{LINK}&step=2", weights="float32")
    until(page, "minigpt.now().step === 2")
    page.reload()
    until(page, "window.minigpt && minigpt.now().step === 2")
    page.get_by_role("button", name="Copy link").click()
    until(page, "document.querySelector('#status').textContent.includes('Copied')")
    assert "step=2" in page.evaluate("navigator.clipboard.readText()")

    wrong = open_page(found, link=f"{LINK}&step=5", weights="float32")
    until_read(wrong)
    assert step_on_view(wrong) is None


def test_a_page_holds_as_many_steps_as_are_asked_for_and_a_step_holds_itself_alone(
    found: FoundModel, run: Path
) -> None:
    def steps(model: FoundModel, *most: int) -> list[int]:
        return steps_in_page(model, np.dtype("float16"), *most)

    assert steps(found) == [0, 2]  # the last one is the model itself
    assert steps(found, 1) == [0]
    assert steps(found, 0) == []
    assert steps(find_model(f"{run}@2")) == []
