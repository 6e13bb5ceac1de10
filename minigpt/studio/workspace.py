"""The folder in which the studio was started, and where in it everything lies."""

import re
from dataclasses import dataclass
from pathlib import Path

from ..system.platforms import name_problem
from .answers import Refusal

NAME_LENGTH = 80  # characters
_UNSAFE = re.compile(r"[^\w .,()\[\]+=@-]+")  # in the name of a file or a run
_DEVICE = re.compile(r"(CON|PRN|AUX|NUL|COM\d|LPT\d)(\..*)?", re.IGNORECASE)  # on Windows
TEXT_ID = re.compile(r"[0-9a-f]{12}")


@dataclass(frozen=True)
class Workspace:
    """A folder with texts and runs. The folders in it are made when they are first needed."""

    root: Path

    @property
    def texts(self) -> Path:
        """A folder for each text that was dropped, by its id."""
        return self.root / "texts"

    @property
    def runs(self) -> Path:
        """All runs, also those that were trained in a terminal."""
        return self.root / "runs"

    @property
    def bin(self) -> Path:
        """The runs that were deleted, until the bin is emptied."""
        return self.runs / ".bin"

    @property
    def lock(self) -> Path:
        """Locked by the studio that is open."""
        return self.runs / ".studio.lock"

    @property
    def door(self) -> Path:
        """Where the studio that is open can be found, for a second command."""
        return self.runs / ".studio.json"

    def text_folder(self, text: str) -> Path:
        """The folder of a text that is there. A Refusal of status 404 if it is not."""
        folder = self.texts / text
        if not TEXT_ID.fullmatch(text) or not folder.is_dir():
            raise Refusal(404, "This text is not here any more.", kind="text_gone")
        return folder

    def text_folders(self) -> list[Path]:
        """Where the texts are, and what is left of some. Other folders there are somebody's own."""
        return [folder for folder in self.texts.glob("*/") if TEXT_ID.fullmatch(folder.name)]

    def run_folder(self, name: str) -> Path:
        """The folder of a run that is there. A Refusal of status 404 if it is not."""
        if not is_one_name(name) or not (self.runs / name).is_dir():
            raise Refusal(404, "Somebody moved or deleted this model.", kind="run_gone")
        return self.runs / name


def is_one_name(name: str) -> bool:
    """Whether a name can be that of a file directly in a folder, and not hidden there."""
    has_parts = any(sign in name for sign in "/\\\0")
    return name != "" and not has_parts and not name.startswith(".") and not name_problem(name)


def safe_name(shown: str, otherwise: str) -> str:
    """A name that every system can store, as near as possible to one that was typed or sent: at
    most 80 characters, no folders, none of the names that Windows keeps for itself. `otherwise` is
    for a name of which nothing is left."""
    last = re.split(r"[/\\]", shown)[-1]
    name = _UNSAFE.sub("_", last)
    name = name.strip(" .")
    if len(name) > NAME_LENGTH:
        stem, dot, ending = name.rpartition(".")
        ending = dot + ending if dot and len(ending) < 10 else ""
        name = (stem if ending else name)[: NAME_LENGTH - len(ending)].strip(" .") + ending
    if _DEVICE.fullmatch(name):
        name = f"_{name}"
    return name or otherwise
