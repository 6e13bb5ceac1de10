"""The runs in a folder: all of them, the newest, one that was not finished; and what a run says of
itself.
"""

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import UserError
from ..config import GPT_NAME, TextConfig
from ..data.readers.document import title
from ..data.source import check_is_in_files
from ..system.commands import command
from ..system.platforms import name_problem, quote_path
from ..system.shown import plural
from ..tokenizer import load_tokenizer
from .folder import (
    CHECKPOINT,
    CONFIG,
    COUNTING_BITS,
    LAST,
    PREVIOUS,
    TOKENIZER,
    WEIGHTS,
    check_is_gpt,
    has_checkpoint,
    kept_steps,
    read_config,
    read_usual,
)
from .state import facts_of, is_training
from .weights import count_weights, read_best, read_network

_LONGEST_NAME = 200  # bytes; a system takes 255, some of which an ending needs

if TYPE_CHECKING:
    SystemPath = Path
else:
    SystemPath = type(Path())  # before Python 3.12 Path itself cannot be subclassed


class Run(SystemPath):
    """The path of a run's folder, which says what is in it where it is printed by itself."""

    def about(self) -> dict[str, Any]:
        """What `minigpt runs` tells of it; UserError if it is damaged."""
        config = read_config(self)
        facts = facts_of(self)
        text = config.origin.text
        files = text.files if text else ("no known text",)
        written = time.localtime((self / WEIGHTS).stat().st_mtime)
        return {
            "name": str(self),
            "text": " ".join(map(title, files)),
            "init": text.init if text else None,
            "network": read_network(self / WEIGHTS),
            "parameters": count_weights(self / WEIGHTS),
            "bits_per_byte": facts.bits_per_byte,
            COUNTING_BITS: facts.evaluation.get(COUNTING_BITS),
            "written": time.strftime("%Y-%m-%d %H:%M", written),
            "finished": facts.is_finished,
            "kept": self.kept(),
        }

    def kept(self) -> list[int]:
        """The steps whose weights are kept, in order: ``f"{run}@{step}"`` names one."""
        return kept_steps(self)

    def __repr__(self) -> str:
        try:
            about = self.about()
        except (UserError, OSError) as error:
            return f"{self}: {error}" if (self / WEIGHTS).exists() else repr(Path(self))

        bits = about["bits_per_byte"]
        loss = "not evaluated" if bits is None else f"{bits:.3f} bits/byte"
        counting = about[COUNTING_BITS]
        if counting is not None:
            loss += f" (counting {counting:.3f})"

        size = f"{about['parameters'] / 1e6:.2f} M parameters"
        if about["network"] != GPT_NAME:
            size = f"{about['network']}, {size}"
        text = about["text"]
        if about["init"]:
            text += f", begun with {about['init']}"
        state = "" if about["finished"] else ", not finished"
        if about["kept"]:
            state += f", weights of {plural(len(about['kept']), 'step')} kept"
        return f"{about['name']}: {loss}, {size}, {text}, {about['written']}{state}"


def newest_run(runs: str | Path = "runs") -> Path:
    """The run with the newest weights, of those that have learned something."""
    for folder in all_runs(runs):
        if read_best(folder / WEIGHTS) is not None:
            return folder
    raise UserError(f"no run in {runs}/ yet; train one first: {command('train')} my.txt")


def unfinished_run(text: TextConfig, fingerprint: str) -> Run | None:
    """Of the runs in `runs/` that can be continued, the one trained last. Such a run was begun on
    the same files, which have not changed since, is not finished, and no process trains it now."""
    files = full_names([*text.files, *text.validation])
    for folder in runs_by_training():
        with contextlib.suppress(UserError, OSError):  # damaged, of another version, or busy
            config = read_config(folder)
            learned_from = full_names([*config.text.files, *config.text.validation])
            is_same = config.origin.fingerprint == fingerprint and learned_from == files
            if not is_same or facts_of(folder).is_finished or is_training(folder):
                continue
            if why_not_continued(folder) is None:
                return folder
    return None


def why_not_continued(folder: Path) -> str | None:
    """Why `--resume` cannot continue a run, whatever it is given; None if it can."""
    if not has_checkpoint(folder):
        return "it has no checkpoint"
    try:
        check_is_gpt(folder)
        load_tokenizer(folder / TOKENIZER)
        check_is_in_files(read_config(folder).text)
        read_usual(folder)
    except UserError as problem:
        if problem.kind == "text_gone":
            return f"{problem}; a new run can begin with its model: --init {quote_path(folder)}"
        return str(problem)
    return None


def full_names(names: Sequence[str]) -> list[str]:
    """By which the same file is known, however its name was typed."""
    return [os.path.abspath(name) for name in names]


def all_runs(runs: str | Path = "runs") -> list[Run]:
    """The runs in a folder, newest weights first."""
    weights = Path(runs).glob(f"[!.]*/{WEIGHTS}")
    folders = [file.parent for file in weights if (file.parent / CONFIG).exists()]
    return _newest_first(folders, [WEIGHTS])


def runs_by_training(runs: str | Path = "runs") -> list[Run]:
    """The runs in a folder that have a checkpoint, the one that was trained last first."""
    return _newest_first(all_runs(runs), [f"{CHECKPOINT}/{name}" for name in (LAST, PREVIOUS)])


def _newest_first(folders: Sequence[Path], names: Sequence[str]) -> list[Run]:
    """The runs that have a file with one of these names, by when the newest of them was written."""
    written: dict[Run, float] = {}
    for folder in folders:
        times = []
        for name in names:
            # A file may be gone meanwhile: it is replaced by a new one, or its run is deleted.
            with contextlib.suppress(OSError):
                times.append((folder / name).stat().st_mtime)
        if times:
            written[Run(folder)] = max(times)
    return sorted(written, key=written.__getitem__, reverse=True)


def free_name(name: str, runs: str | Path = "runs") -> Path:
    """`runs/name`, or the first of name-2, name-3, ... that does not exist; `runs/run` where the
    system allows no such name. A long name is cut off, and what is not UTF-8 in it left out."""
    name = os.fsencode(name)[:_LONGEST_NAME].decode(errors="ignore")
    if not name or name_problem(f"runs/{name}") is not None:
        name = "run"
    folder = Path(runs) / name
    number = 1
    while folder.exists():
        number += 1
        folder = Path(runs) / f"{name}-{number}"
    return folder
