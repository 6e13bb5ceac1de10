"""One whole story, as a person without a terminal lives it: a text is dropped, learned for half a
minute, used, and deleted without a trace."""

import re
from pathlib import Path
from typing import Any

import pytest

from .learners import shown
from .opened import Program, real_program
from .pages import STORY, drop

pytestmark = [pytest.mark.studio, real_program]

SECRET = "The purple walrus sang at noon."
STUDIO_FILES = {"runs/.studio.json", "runs/.studio.lock"}


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All programs keep what is temporary in the folder of the test, too."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))


def test_from_a_dropped_text_to_the_last_trace_of_it(
    page: Any, program: Program, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = STORY[:10_000] + SECRET + STORY[10_000:]
    drop(page, tmp_path_factory.mktemp("desk"), {"diary.txt": text.encode()})
    page.get_by_role("region", name="As the model sees it").wait_for()
    page.locator(".sure").wait_for()
    page.get_by_label("½ min").check()
    page.get_by_role("button", name="Start learning").click()

    # It is watched while it learns: first what it writes before it has learned anything.
    page.wait_for_url("**/run/diary")
    page.get_by_role("heading", name="What it writes now").wait_for()
    page.locator(".curve .now").get_by_text("Unseen pages").wait_for()
    assert shown(page, ".writes .written") != ""

    page.locator(".head").get_by_text(re.compile("Done after")).wait_for()
    page.frame_locator(".page iframe").get_by_role("button", name="Write", exact=True).wait_for()
    page.get_by_role("button", name="Childhood").click()
    page.locator(".writes .moment").wait_for()

    page.get_by_label("How the text begins").fill("The old king")
    page.locator(".try").get_by_role("button", name="Write").click()
    written = page.locator(".try .written")
    written.filter(has_text=re.compile("^The old king.{20}", re.S)).wait_for()

    # The studio itself has stayed small: children have read, learned and written.
    process = Path(f"/proc/{program.process.pid}")
    memory = re.search(r"VmHWM:\s+(\d+) kB", (process / "status").read_text())
    assert memory is not None
    assert int(memory[1]) < 120_000
    assert "torch" not in (process / "maps").read_text()

    assert holding(program.folder, SECRET)
    page.get_by_role("button", name="Delete all that came from my text").click()
    page.get_by_text("The model diary").wait_for()
    page.get_by_role("button", name="Delete all of it").click()
    page.wait_for_url(f"{program.url}/")
    page.get_by_text("Your models will appear here.").wait_for()

    left = {path.relative_to(program.folder).as_posix() for path in files_in(program.folder)}
    open_studio = re.compile(r"cache/.*|temporary/minigpt-studio-\w+/\.lock")
    assert {name for name in left if not open_studio.fullmatch(name)} == STUDIO_FILES
    for words in (SECRET, "diary", *STORY.splitlines()[3:200:40]):
        assert len(words) < 5 or holding(program.folder, words) == []


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def holding(folder: Path, words: str) -> list[Path]:
    """The files in a folder that hold some words."""
    return [path for path in files_in(folder) if words.encode() in path.read_bytes()]
