"""Two runs side by side, and one beside counting."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from .conftest import Program
from .learners import ask_for, shown, wait_for_end
from .pages import axe_finds, is_too_wide

pytestmark = pytest.mark.studio


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A studio with two runs that are the same."""
    folder = tmp_path_factory.mktemp("compared")
    run = ask_for(folder, "diary", steps=40)
    running = Program(folder)
    wait_for_end(run)
    shutil.copytree(run, run.with_name("again"))
    yield running
    running.kill()


@pytest.fixture
def compare(page: Any, program: Program) -> Any:
    page.goto(f"{program.url}/compare?left=diary&right=counting")
    page.get_by_role("heading", name="Compare").wait_for()
    return page


def write_both(page: Any) -> tuple[str, str]:
    page.get_by_role("button", name="Write both").click()
    page.get_by_text("Both are writing.").wait_for()
    page.get_by_text("Both are writing.").wait_for(state="detached", timeout=60_000)
    left, right = (shown(page, f"section:nth-of-type({n}) .written") for n in (1, 2))
    return left, right


def test_a_run_and_counting_write_from_the_same_beginning(compare: Any) -> None:
    compare.get_by_label("Beginning").fill("The old king")
    left, right = write_both(compare)
    assert left.startswith("The old king") and right.startswith("The old king")
    assert left != right

    again = write_both(compare)
    assert again == (left, right)  # the same die
    compare.get_by_role("button", name="Throw again").click()
    compare.get_by_text("Both are writing.").wait_for()
    compare.get_by_text("Both are writing.").wait_for(state="detached", timeout=60_000)
    assert shown(compare, "section:nth-of-type(1) .written") != left


def test_two_equal_runs_write_the_same(compare: Any) -> None:
    compare.get_by_role("combobox", name="Right").select_option("again")
    left, right = write_both(compare)
    assert left == right != ""
    assert "right=again" in compare.url
    compare.reload()
    assert compare.get_by_role("combobox", name="Right").input_value() == "again"


def test_counting_alone_is_not_compared_with_itself(compare: Any) -> None:
    compare.get_by_role("combobox", name="Left").select_option("counting")
    compare.get_by_text("Counting can be only one of the two.").wait_for()
    assert compare.get_by_role("button", name="Write both").is_disabled()


@pytest.mark.parametrize("width", [390, 800, 1280])
def test_it_fits_the_window_and_axe_finds_nothing(width: int, compare: Any) -> None:
    compare.set_viewport_size({"width": width, "height": 800})
    for theme in ("Dark", "Light"):
        assert axe_finds(compare) == []
        compare.get_by_role("button", name=theme).click()
    assert not is_too_wide(compare)
