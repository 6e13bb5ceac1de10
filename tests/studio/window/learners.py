"""Trainings of a few seconds, asked for as the window asks, in the folder of a studio."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from minigpt.studio.trainings import asking
from minigpt.studio.workspace import Workspace
from minigpt.system.json_objects import read_lines, read_object
from tests.patience import PATIENCE

from ..dropped import dropped
from .pages import STORY

SMALL = {
    "init": "none",
    "num_layers": 1,
    "emb_dim": 32,
    "num_heads": 2,
    "vocab_size": 300,
    "context_length": 32,
}
_BETWEEN = 20  # steps from one evaluation to the next
LONG = 20_000  # steps: nobody waits for the last


def ask_for(root: Path, name: str, steps: int) -> Path:
    """Put a training into the line of the studio in a folder; the folder of its run."""
    text = dropped(root, {"story.txt": STORY})
    about = {
        "id": text.name,
        "name": "story.txt",
        "size": len(STORY.encode()),
        "characters": len(STORY),
        "beginning": STORY[:60],
    }
    settings = {**SMALL, "steps": steps, "num_evals": steps // _BETWEEN}
    return asking.ask(Workspace(root), text=about, name=name, minutes=5.0, settings=settings)


def rows(run: Path, file: str) -> list[dict[str, Any]]:
    return list(read_lines(run / file))


def until(is_so: Callable[[], bool]) -> None:
    """Wait for something on the disk."""
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.1)


def letters_of(run: Path, bits: float) -> str:
    """As how many letters so many bits for a byte are shown."""
    text = json.loads((run / "journal" / "job.json").read_text())["text"]
    return f"{2 ** (bits * text['size'] / text['characters']):.1f}"


def shown(page: Any, selector: str) -> str:
    """The text of an element, its white space made even."""
    return re.sub(r"\s+", " ", page.locator(selector).inner_text()).strip()


def wait_for_end(run: Path) -> None:
    until(lambda: read_object(run / "journal/state.json").get("how") is not None)
