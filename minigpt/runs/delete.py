"""What there is of a run to delete: its own files, and what the cache and the folder for temporary
files hold of its text. Nothing else is touched, and links are not followed.
"""

import contextlib
import itertools
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import UserError
from ..config import TextConfig, from_dict
from ..data.readers.document import STANDARD_INPUT
from ..data.source import find_source
from ..data.temporary import kind_of, left_copies, remove_copy
from ..data.token_files import find_prepared, remove_prepared
from ..interop.hub import is_huggingface_folder
from ..system.json_objects import read_object
from .base import is_base
from .begin import files_of, locked
from .folder import CONFIG, FOLDERS, JOB, JOURNAL, LOCK, STATE, WEIGHTS, read_raw_config
from .state import facts_of
from .weights import read_about

_CLASSES = "classes"  # of older studios: classes/CLASS/PERSON/, with runs/ and texts/


@dataclass(frozen=True)
class Remains:
    """What there is of a run."""

    folder: Path
    files: list[Path]  # of the run
    prepared: list[Path]  # folders in the cache, with tokens of its text
    copies: list[Path]  # of its text, which killed processes have left
    others: list[Path]  # in its folder, but not the run's; they stay
    knows_text: bool  # whether the run says of which text it is

    def delete(self) -> None:
        """Delete all of it but the `others`. The run goes last: if this is interrupted, it can be
        deleted again."""
        for folder in self.prepared:
            remove_prepared(folder)
        for copy in self.copies:
            remove_copy(copy)
        for file in self.files:
            if file.is_dir():
                shutil.rmtree(file)
            else:
                file.unlink(missing_ok=True)


@contextlib.contextmanager
def runs_to_delete(folders: Sequence[Path]) -> Iterator[list[Remains]]:
    """What there is of each run in a list; no process can train them meanwhile. Afterwards their
    folders are removed if they are empty.

    Raises:
        UserError: if one of the folders is no run, or a link to one, or is being trained, or its
            lock is a link.
    """
    with contextlib.ExitStack() as stack:
        found = []
        for folder in folders:
            _check_is_run(folder)
            try:
                stack.enter_context(locked(folder))
            except UserError:
                raise UserError(f"{folder} is being trained; stop that first") from None
            found.append(_remains(folder))
        yield found

    for folder in folders:
        if any((folder / name).exists() for name in (CONFIG, WEIGHTS)):
            continue
        (folder / LOCK).unlink(missing_ok=True)
        for empty in (*(folder / name for name in FOLDERS), folder):
            with contextlib.suppress(OSError):  # not empty, a mount, or the current folder
                empty.rmdir()


def folders_of_classes(folder: Path) -> list[Path]:
    """The folders `runs` and `texts` of each person in a folder `classes`, all of which the studio
    has made; none in any other folder."""
    if folder.name != _CLASSES:
        return []
    people = [one for above in _inside(folder) for one in _inside(above) if not one.is_symlink()]
    named = [one / name for one in sorted(people) for name in ("runs", "texts")]
    there = [made for made in named if made.is_dir() and not made.is_symlink()]
    return there if any(made.name == "runs" for made in there) else []


def runs_inside(folders: Sequence[Path]) -> list[Path]:
    """The runs in folders of runs, those in their bins too."""
    places = [place for folder in folders for place in (folder, folder / ".bin")]
    held = [path for place in places for path in _inside(place)]
    return [path for path in held if not path.is_symlink() and _looks_like_run(path)]


def delete_folders(folders: Sequence[Path]) -> None:
    """Delete folders of a class, with all that they hold, and those above if they are empty then:
    of a person, of the class, of all classes."""
    for folder in folders:
        shutil.rmtree(folder)
        for above in (*folder.parents,)[:3]:
            with contextlib.suppress(OSError):  # not empty
                above.rmdir()


def size_of(paths: Iterable[Path]) -> int:
    """How many bytes files have together, and those in folders; links do not count."""
    files = [file for path in paths for file in (path.rglob("*") if path.is_dir() else [path])]
    own = [file for file in files if file.is_file() and not file.is_symlink()]
    return sum(file.stat().st_size for file in own)


def _check_is_run(folder: Path) -> None:
    """Refuse the base, and a folder that only looks like a run's: it would lose files of another
    program."""
    if is_base(folder):
        raise UserError(f"{folder} is the base, which comes with minigpt; it is not deleted")
    if folder.is_symlink():
        raise UserError(f"{folder} is a link; name the folder itself: {folder.resolve()}")
    if is_huggingface_folder(folder):
        raise UserError(f"{folder} is an exported model and not a run; delete the folder yourself")
    if not _looks_like_run(folder):
        raise UserError(f"{folder} is not a run")
    if (folder / LOCK).is_symlink():  # some versions of filelock would empty what it leads to
        raise UserError(f"{folder / LOCK} is a link; remove it first")


def _looks_like_run(folder: Path) -> bool:
    """Whether a folder holds a run, or what a training has left that never made one. Where all that
    could tell it is damaged, the names must: there is a file of a journal, and nothing else but
    files that a run can have."""
    has_config = {"format", "model", "training"} <= read_raw_config(folder).keys()
    if has_config or read_about(folder / WEIGHTS):
        return True
    journal = folder / JOURNAL
    if journal.is_symlink():
        return False
    is_asked = {"asked", "is_waiting"} <= read_object(journal / JOB).keys()
    if is_asked or "began" in read_object(journal / STATE):
        return True

    files = files_of(folder)
    return any(journal / name in files for name in (JOB, STATE)) and not _others(folder, files)


def _remains(folder: Path) -> Remains:
    files = files_of(folder)
    text, fingerprint = _origin(folder)
    return Remains(
        folder=folder,
        files=files,
        prepared=find_prepared(fingerprint) if fingerprint else [],
        copies=_copies(text, fingerprint) if fingerprint else [],
        others=_others(folder, files),
        knows_text=fingerprint is not None,
    )


def _others(folder: Path, files: Sequence[Path]) -> list[Path]:
    """What a folder holds beside the files of its run."""
    inner = [folder / name for name in FOLDERS]
    known = {*files, folder / LOCK, *inner}
    held = [*folder.iterdir(), *itertools.chain.from_iterable(map(_inside, inner))]
    return [path for path in held if path not in known or path.is_symlink()]


def _origin(folder: Path) -> tuple[Any, str | None]:
    """What a run says of its text, and the fingerprint of that; None if it does not. A training
    that came no further than its tokens has said the fingerprint."""
    origin = read_raw_config(folder).get("origin")
    if not isinstance(origin, dict) or not isinstance(origin.get("fingerprint"), str):
        return None, facts_of(folder).said.get("fingerprint")
    return origin.get("text"), origin["fingerprint"]


def _inside(folder: Path) -> list[Path]:
    """What a folder holds, unless it is a link."""
    return [] if folder.is_symlink() or not folder.is_dir() else [*folder.iterdir()]


def _copies(text: Any, fingerprint: str) -> list[Path]:
    """The copies of standard input or of documents that are the text with this fingerprint."""
    try:
        config = from_dict(TextConfig, text)
    except UserError:
        return []
    return [copy for copy in left_copies() if _is_copy(copy, config, fingerprint)]


def _is_copy(copy: Path, config: TextConfig, fingerprint: str) -> bool:
    """Whether a run learned from a copy: its config names it, or the run has read the same text."""

    def put(names: tuple[str, ...]) -> tuple[str, ...]:
        """The names, with this copy in the place of the copy that the run has read."""
        kinds = {name: "stdin" if name == STANDARD_INPUT else kind_of(Path(name)) for name in names}
        return tuple(str(copy) if kinds[name] == kind_of(copy) else name for name in names)

    if str(copy) in (*config.files, *config.validation):
        return True
    read = replace(config, files=put(config.files), validation=put(config.validation))
    if read == config or STANDARD_INPUT in (*read.files, *read.validation):  # not kept
        return False
    with contextlib.suppress(UserError):
        return find_source(read).fingerprint == fingerprint
    return False
