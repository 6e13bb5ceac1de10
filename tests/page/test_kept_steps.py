"""The page of a single step that a run has kept: every number in it is of that model."""

from pathlib import Path

import numpy as np
import pytest

from minigpt.runs.find import find_model, glass_writer

from ..conftest import move_into, train_tiny
from .conftest import Open, as_in_page, open_view, until_read
from .facts import check_facts

pytestmark = pytest.mark.page

LINK = "#prompt=the fox asked a crow for bread&seed=1&maxNewTokens=5"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has kept the weights of steps 0, 2 and 8, the best."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        place = move_into(tmp_path_factory.mktemp("kept"), monkeypatch)
        return place / train_tiny(keep=3, learning_rate=0.03)


@pytest.mark.parametrize("name", ["", "@0", "@2"])
def test_the_page_of_a_step_is_of_the_model_as_it_was_then(
    open_page: Open, run: Path, name: str
) -> None:
    found = as_in_page(find_model(f"{run}{name}"))
    page = open_page(found, link=LINK)
    until_read(page)

    now = page.evaluate("minigpt.now()")
    forbidden = np.flatnonzero(glass_writer(found).bias).tolist()
    about = {"starts": now["starts"], "hidden": now["hidden"], "forbidden": forbidden}
    kinds: set[str] = set()
    for view in ("draw", "layers", "vectors"):
        open_view(page, view)
        kinds |= check_facts(page, "body", found, now["ids"], **about)
    assert {"probability", "after", "lens", "norm"} <= kinds

    open_view(page, "learned")
    evaluations = page.locator("#panel-learned input[type=range]").count()
    assert evaluations == (1 if name == "" else 0)  # of steps up to this one there is no loss
