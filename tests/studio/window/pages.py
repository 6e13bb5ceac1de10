"""What the tests do with a window of the studio, and ask it."""

from pathlib import Path
from typing import Any

from minigpt.config import TALES
from minigpt.data.files import find_files

STORY = find_files((TALES,))[0].read_text(encoding="utf-8")[:20_000]


def drop(page: Any, folder: Path, files: dict[str, bytes]) -> None:
    """Choose files at home, and wait for the screen of their text."""
    kept = folder / "dropped"
    kept.mkdir()
    for name, data in files.items():
        (kept / name).write_bytes(data)
    page.get_by_label("Choose files").set_input_files([kept / name for name in files])
    page.wait_for_url("**/text/*")


def is_too_wide(page: Any) -> bool:
    """Whether the page can be scrolled sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth > innerWidth"))
