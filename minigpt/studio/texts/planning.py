"""A program: `python -m minigpt.studio.texts.planning FOLDER` measures a text and this computer
once, and writes to plans.json in the folder what to expect of a training, for each number of
minutes that the window offers. It loads torch.

plans.json has

    of                      the files and settings that were planned for
    is_done, share, phase   how far it is, from 0 to 1: "reading", "measuring" or "planning"
    measured                whether the computer was measured, a few minutes ago at most; false
                            beside a training, where an older measurement serves; null until that
                            is known
    stops                   what to expect, of one number of minutes after the other
    problem                 the kind and message of why there is no plan, or null
    speeds                  what was measured, and when
"""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock

from ... import UserError
from ...config import Settings, check_fields, count_parameters
from ...data.source import split
from ...devices.memory import enough_memory
from ...recipe.beginning import Beginning, beginning_of, with_base
from ...recipe.choose_plan import Measured, choose_plan, measure
from ...recipe.machine import Machine, Speed
from ...recipe.plan import Planned
from ...recipe.size_and_batch import whole_seconds
from ...recipe.text_stats import bits_by_counting
from ...recipe.texts import read_source
from ...runs.folder import PLAN
from ...runs.state import is_training
from ...system.json_objects import read_object
from .. import settings
from .folder import (
    FILES,
    PLANS_FILE,
    WORKING,
    chosen_settings,
    is_done,
    plans_of,
    write_json,
    write_problem,
)

MINUTES = (0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 240, 480)
_SECONDS_FRESH = 300.0  # for which the computer need not be measured again

Found = dict[str, Any]


def main(arguments: Sequence[str]) -> None:
    """Plan for a text in a process that can be spared."""
    os.umask(0o077)
    write_plans(Path(arguments[0]))


def write_plans(folder: Path) -> None:
    """Write plans.json for a text, unless that has been done."""
    with FileLock(folder / WORKING):
        of = plans_of(folder)
        if not is_done(folder / PLANS_FILE, of):
            _write_plans(folder, of)


def _write_plans(folder: Path, of: Found) -> None:
    """Write what to expect, piece by piece."""
    path = folder / PLANS_FILE
    speeds = read_object(path).get("speeds", [])
    found: Found = {
        "of": of,
        "is_done": False,
        "share": 0.0,
        "phase": "reading",
        "measured": None,
        "stops": [],
        "problem": None,
        "speeds": speeds,
    }
    write_json(found, path)

    try:
        with enough_memory("a smaller model"):
            for more in _steps(folder):
                found |= more
                write_json(found, path)
    except UserError as error:
        write_problem(path, of, error.kind, settings.for_window(str(error)))
        return

    write_json(found | {"is_done": True, "share": 1.0}, path)


def _steps(folder: Path) -> Iterator[Found]:
    """What each step of planning adds to plans.json."""
    beginning = _beginning(folder)
    source = read_source(beginning)

    yield {"phase": "measuring"}
    root = folder.parents[1]
    is_beside = _is_training(root)
    stored = _StoredSpeeds(root, oldest=0.0 if is_beside else time.time() - _SECONDS_FRESH)
    measured = measure(source, with_base(beginning), stored)
    speeds = stored.used
    if not speeds and not beginning.settings["lesson"]:  # a lesson has a fixed speed
        speeds = [_as_stored(machine) for machine in measured.machines]
    yield {
        "phase": "planning",
        "measured": not (is_beside and stored.used),
        "speeds": speeds,
    }

    scan = source.training.scan
    bytes_per_letter = scan.text_bytes / sum(scan.lengths)
    stops: list[Found] = []
    for minutes in MINUTES:
        stops.append(_stop(minutes, measured, bytes_per_letter))
        yield {"stops": stops, "share": round(len(stops) / (len(MINUTES) + 1), 2)}

    counting = bits_by_counting(*split(source, beginning.settings.text))
    letters = _letters(counting, bytes_per_letter)
    yield {"stops": [stop | {"counting_letters": letters} for stop in stops]}


def _beginning(folder: Path) -> Beginning:
    """The training that the settings ask for, of no particular number of minutes."""
    chosen = settings.planned_fields(chosen_settings(folder))
    return beginning_of(Settings.given({"files": (str(folder / FILES),), **chosen}))


def _stop(minutes: float, measured: Measured, bytes_per_letter: float) -> Found:
    """What to expect of a training of so many minutes; why not, if they are too few for one."""
    names = (
        "epochs",
        "bits",
        "letters",
        "counting_letters",
        "parameters",
        "seconds_per_step",
        "seconds",
        "ends_early",
        "begins_with",
    )
    found: Found = {"minutes": minutes, **dict.fromkeys(names), "problem": None}
    try:
        planned = choose_plan(measured.with_minutes(minutes))
    except UserError as error:
        return found | {"problem": {"kind": error.kind, "message": settings.for_window(str(error))}}

    return found | {
        "epochs": round(planned.epochs, 3),
        "bits": planned.bits_per_byte,
        "letters": _letters(planned.bits_per_byte, bytes_per_letter),
        "parameters": count_parameters(planned.model),
        "seconds_per_step": planned.seconds / planned.steps,
        "seconds": _seconds(planned, minutes),
        "ends_early": planned.ends_early,
        "begins_with": planned.init,
    }


def _letters(bits: float | None, bytes_per_letter: float) -> float | None:
    """Among how many equally likely letters a model chooses that needs so many bits a byte."""
    return None if bits is None else 2.0 ** (bits * bytes_per_letter)


def _seconds(planned: Planned, minutes: float) -> float:
    """How many seconds after its start the training is done."""
    seconds = 60.0 * minutes
    return min(whole_seconds(planned.seconds), seconds) if planned.ends_early else seconds


# The speed that was measured before


def _is_training(root: Path) -> bool:
    """Whether a training goes on, which would slow a measurement down."""
    return any(is_training(run) for run in (root / "runs").glob("*"))


class _StoredSpeeds:
    """The speeds that the plans of runs and texts in a folder hold. A call returns the newest one
    of a device, if it is not too old; `used` are all that were returned."""

    def __init__(self, root: Path, oldest: float):
        self.used: list[Found] = []
        self._root = root
        self._oldest = oldest  # in seconds since 1970

    def __call__(self, device: torch.device, precision: str, num_workers: int) -> Speed | None:
        for stored in sorted(self._all(), key=lambda stored: stored["time"], reverse=True):
            speed = _speed(stored.get("speed"))
            is_same = stored.get("precision") == precision and stored.get("device") == device.type
            if is_same and speed is not None and speed.num_workers == num_workers:
                self.used.append(stored)
                return speed
        return None

    def _all(self) -> Iterator[Found]:
        """Each speed with its device and precision, and when it was measured, in seconds since
        1970."""
        stored = []
        for path in self._root.glob(f"texts/*/{PLANS_FILE}"):
            stored += read_object(path).get("speeds", [])
        for path in self._root.glob(f"runs/*/{PLAN}"):
            plan = read_object(path)
            names = ("device", "precision", "speed")
            of_plan = {name: plan.get(name) for name in names}
            stored.append(of_plan | {"time": path.stat().st_mtime})
        yield from (speed for speed in stored if speed.get("time", 0.0) > self._oldest)


def _as_stored(machine: Machine) -> Found:
    """A speed that was measured just now."""
    return {
        "device": torch.device(machine.device).type,
        "precision": machine.precision,
        "speed": None if machine.speed is None else asdict(machine.speed),
        "time": time.time(),
    }


def _speed(stored: Any) -> Speed | None:
    """A speed from JSON; None if it is none."""
    if not isinstance(stored, dict):
        return None
    try:
        check_fields(Speed, stored)
        return Speed(**stored)
    except (UserError, TypeError):
        return None


if __name__ == "__main__":
    main(sys.argv[1:])
