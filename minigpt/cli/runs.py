"""`minigpt runs`: the runs there are, newest first; deletes one if asked to."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .. import UserError
from ..config import check_given
from ..system.commands import command
from ..system.shown import plural
from .options import Parser
from .terminal import print_message, write

if TYPE_CHECKING:
    from ..runs.delete import Remains


def options(parser: Parser) -> None:
    add = parser.add_argument
    add("folder", nargs="?", default="runs", help="the folder that the runs are in (default: runs)")
    add("--json", action="store_true", help="print a JSON record for each run, one a line")
    delete = "delete this run, and what the cache holds of its text; asks first"
    add("--delete", metavar="NAME", help=delete)
    add("--yes", action="store_true", help="delete without asking")


def run(given: argparse.Namespace) -> None:
    """Print a line for each run, or a JSON record; or delete one."""
    check_given({"json": given.json, "delete": given.delete})
    if given.delete is not None:
        _delete(given)
        return
    if given.yes:
        raise UserError("--yes is for --delete NAME")

    from ..runs.listing import all_runs

    runs = all_runs(given.folder)
    for one in runs:
        try:
            line = json.dumps(one.about()) if given.json else repr(one)
        except (UserError, OSError) as error:  # damaged, or deleted meanwhile
            print_message(str(error))
        else:
            write(line)
    if not runs:
        print_message(f"no run in {given.folder}/ yet; train one first: {command('train')} my.txt")


def _delete(given: argparse.Namespace) -> None:
    """Say what would be deleted, ask, and delete it."""
    from ..runs.delete import delete_folders, folders_of_classes, runs_inside, runs_to_delete

    can_ask = sys.stdin is not None and sys.stdin.isatty()
    if not given.yes and not can_ask:
        raise UserError("--delete asks first, and there is no terminal to answer; add --yes")

    folder = Path(given.delete)
    of_classes = folders_of_classes(folder)  # which older versions of the studio have kept
    if of_classes:
        runs = runs_inside(of_classes)
    else:
        folder = _run_named(given.delete, given.folder)
        runs = [folder]

    with runs_to_delete(runs) as found:
        for remains in found:
            _show(remains)
        for kept in of_classes:
            print_message(f"all that {kept} holds, {_size([kept])}")
        if not of_classes:
            _show_others(found[0])

    # No lock is held while it asks: whoever looks at the run would take it for one that is trained.
    if not given.yes and not _is_confirmed():
        return
    with runs_to_delete(runs) as found:
        for remains in found:
            remains.delete()
    delete_folders(of_classes)

    _report(folder, found)


def _run_named(name: str, runs: str) -> Path:
    """The folder that the name of a run to delete means; UserError if it can mean two."""
    from ..runs.base import BASE
    from ..runs.find import check_is_whole, full_name

    if not name:  # of a variable that is not set, perhaps
        raise UserError("--delete needs the name of a run")

    doubts: list[str] = []
    full = full_name(name, runs=runs, say=doubts.append)
    if full == BASE:
        raise UserError("the base comes with minigpt and is not yours to delete")
    check_is_whole(full)
    folder = Path(full)
    if doubts:
        both = f"{folder.absolute()} and {Path(runs, name)}"
        raise UserError(f"{name} can mean {both}; give the whole name of one of them")
    return folder


def _show(remains: "Remains") -> None:
    """Say what is there."""
    from ..data.readers.document import title

    names = [str(file.relative_to(remains.folder)) for file in remains.files]
    print_message(f"the run {remains.folder}, {_size(remains.files)}: {', '.join(names)}")
    for folder in remains.prepared:
        print_message(f"in the cache, {_size([folder])}: {folder}")
    for copy in remains.copies:
        print_message(f"a copy of {title(copy)}, {_size([copy])}: {copy}")
    if not remains.knows_text:
        cache = "you may delete the folder tokens in the cache at any time"
        print_message(f"which text it learned from is not known; {cache}")


def _show_others(remains: "Remains") -> None:
    """Say what will be left."""
    for other in remains.others:
        print_message(f"not touched, since it is not of the run: {other}")
    for kind in ("hf", "gguf"):
        export = Path(f"exports/{remains.folder.resolve().name}-{kind}")
        if export.exists():
            print_message(f"not touched, since it is an export: {export}")


def _is_confirmed() -> bool:
    print("delete this? [y/N] ", end="", file=sys.stderr, flush=True)
    is_sure = sys.stdin.readline().strip().lower() in ("y", "yes")
    if not is_sure:
        print_message("nothing was deleted")
    return is_sure


def _report(folder: Path, found: "Sequence[Remains]") -> None:
    """Say what is gone, and what could not be removed."""
    gone = [str(folder)]
    prepared = {path for remains in found for path in remains.prepared}
    copies = {path for remains in found for path in remains.copies}
    for paths, noun in ((prepared, "prepared text"), (copies, "copied text")):
        left = sorted(path for path in paths if path.exists())
        if len(left) < len(paths):
            gone.append(plural(len(paths) - len(left), noun))
        for path in left:
            print_message(f"in use, and still there: {path}")

    write(f"deleted: {', '.join(gone)}")
    if folder.exists():
        print_message(f"{folder}/ itself is still there")


def _size(paths: "list[Path]") -> str:
    from ..runs.delete import size_of

    size = size_of(paths)
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} KB"
