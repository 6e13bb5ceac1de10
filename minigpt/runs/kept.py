"""The weights that a run has kept of single steps of its training, `kept/STEP.safetensors`. They
are named by the run, an @ and the step, as in "fables@120".
"""

import re
from pathlib import Path

from .. import UserError
from ..interop.hub import PREFIX
from ..system.atomic import whole_name
from .folder import KEPT, STEP_NAME

_WEIGHTS = ".safetensors"
_PAGE = ".html"
_STEP = re.compile(STEP_NAME)
_MOST_LISTED = 24


def kept_file(folder: Path, step: int) -> Path:
    """Where the weights of a step are, if they are kept."""
    return folder / KEPT / f"{step}{_WEIGHTS}"


def kept_page(folder: Path, step: int) -> Path:
    """Where the page of a step is, once it is made."""
    return folder / KEPT / f"{step}{_PAGE}"


def kept_steps(folder: Path) -> list[int]:
    """The steps whose weights a run has kept, in order."""
    return [step for step in steps_in(folder) if kept_file(folder, step).is_file()]


def steps_in(folder: Path) -> list[int]:
    """The steps of which a run has kept anything, whole or half-written, in order."""
    files = [Path(whole_name(file.name)) for file in (folder / KEPT).glob("*")]
    ours = [file.stem for file in files if file.suffix in (_WEIGHTS, _PAGE)]
    return sorted({int(name) for name in ours if _STEP.fullmatch(name)})


def find_kept(folder: Path, typed: str) -> int:
    """The step that was typed after the @ of a run. If it is not kept, a UserError lists the steps
    that are."""
    steps = kept_steps(folder)
    if not steps:
        raise UserError(f"{folder} has kept no weights of single steps; train with --keep 12")
    if _STEP.fullmatch(typed) and int(typed) in steps:
        return int(typed)
    asked = typed if typed.isdecimal() else repr(typed)
    raise UserError(f"{folder} has no weights of step {asked}; it has those of {listed(steps)}")


def check_is_whole(name: str | Path) -> None:
    """Refuse the full name of a single step where a whole run is asked for."""
    run, at, _ = str(name).rpartition("@")
    if at and not Path(name).is_dir() and not str(name).startswith(PREFIX):
        raise UserError(f"{name} is one step of a run; name the whole run: {run}")


def listed(steps: list[int]) -> str:
    """Steps as a list to read; of many, only the first and the last ones."""
    names = list(map(str, steps))
    if len(names) > _MOST_LISTED:
        names[_MOST_LISTED // 2 : -_MOST_LISTED // 2] = ["..."]
    return ", ".join(names)
