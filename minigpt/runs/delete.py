"""What there is of a run to delete: its own files, and what the cache and the folder for temporary
files hold of its text. Nothing else is touched, and links are not followed.
"""

import contextlib
import itertools
import shutil
from collections.abc import Iterable, Iterator
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
from .base import is_base
from .folder import CONFIG, FOLDERS, LOCK, WEIGHTS, read_raw_config
from .making import files_of, locked
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
def run_to_delete(folder: Path) -> Iterator[Remains]:
    """What there is of a run; no process can train it meanwhile. Afterwards its folder is removed
    if it is empty.

    Raises:
        UserError: if the folder is no run, or a link to one, or is being trained, or its lock is a
            link.
    """
    _check_is_run(folder)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(folder))
        except UserError:
            raise UserError(f"{folder} is being trained; stop that first") from None
        yield _remains(folder)

    if not any((folder / name).exists() for name in (CONFIG, WEIGHTS)):
        (folder / LOCK).unlink(missing_ok=True)
        for empty in (*(folder / name for name in FOLDERS), folder):
            with contextlib.suppress(OSError):  # not empty, a mount, or the current folder
                empty.rmdir()


def people_in(folder: Path) -> list[Path]:
    """The folders of people in a folder `classes`; none in any other."""
    if folder.name != _CLASSES:
        return []
    people = [one for above in _inside(folder) for one in _inside(above)]
    return sorted(one for one in people if not one.is_symlink() and (one / "runs").is_dir())


@contextlib.contextmanager
def people_to_delete(people: Iterable[Path]) -> Iterator[list[Remains]]:
    """What there is of each run in the folders of people, those in their bins too. No process can
    train them meanwhile; UserError if one does.
    """
    places = [place for one in people for place in (one / "runs", one / "runs" / ".bin")]
    found = [path for place in places for path in _inside(place) if not path.is_symlink()]
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(run_to_delete(run)) for run in found if _looks_like_run(run)]


def folders_of(person: Path) -> list[Path]:
    """The folders that the studio has made in the folder of a person."""
    folders = [person / "runs", person / "texts"]
    return [folder for folder in folders if folder.is_dir() and not folder.is_symlink()]


def delete_people(people: Iterable[Path]) -> None:
    """Delete the folders that the studio has made for people, with all that they hold, and the
    folders above if they are empty then."""
    for one in people:
        for folder in folders_of(one):
            shutil.rmtree(folder)
        for above in (one, one.parent, one.parent.parent):
            with contextlib.suppress(OSError):  # not empty
                above.rmdir()


def size_of(paths: Iterable[Path]) -> int:
    """How many bytes files have together, and those in folders."""
    files = [file for path in paths for file in (path.rglob("*") if path.is_dir() else [path])]
    return sum(file.stat().st_size for file in files if file.is_file())


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
    has_config = {"format", "model", "training"} <= read_raw_config(folder).keys()
    return has_config or bool(read_about(folder / WEIGHTS))


def _remains(folder: Path) -> Remains:
    files = files_of(folder)
    inner = [folder / name for name in FOLDERS]
    known = {*files, folder / LOCK, *inner}
    held = [*folder.iterdir(), *itertools.chain.from_iterable(map(_inside, inner))]

    text, fingerprint = _origin(folder)
    return Remains(
        folder=folder,
        files=files,
        prepared=find_prepared(fingerprint) if fingerprint else [],
        copies=_copies(text, fingerprint) if fingerprint else [],
        others=[path for path in held if path not in known or path.is_symlink()],
        knows_text=fingerprint is not None,
    )


def _origin(folder: Path) -> tuple[Any, str | None]:
    """What config.json says of the text and its fingerprint; None if it does not."""
    origin = read_raw_config(folder).get("origin")
    if not isinstance(origin, dict) or not isinstance(origin.get("fingerprint"), str):
        return None, None
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
