"""The last state of a sharded training: a folder to which each process writes its shards.

torch.distributed.checkpoint writes and reads it, so that any number of processes can read what any
other number has written. What is where it keeps in a pickle by default, which runs as code when
read; with the writer and reader used here that stands in the safetensors files' own headers.
`state.json` beside them has the counters, a SHA-256 of each file and of itself.
"""

import hashlib
import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

import torch.distributed.checkpoint as dcp
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException

from .. import UserError
from ..runs import sync_folder, write_text
from .processes import Processes

VERSION = 1
STATE = "state.json"


def save_shards(
    folder: Path,
    counters: str,
    tensors: dict[str, Tensor],
    processes: Processes,
    make_room: Callable[[], None],
) -> None:
    """Write each process's part of the tensors, whole or not at all.

    Args:
        folder: to be made, or replaced.
        counters: JSON to go with them.
        tensors: sharded, or alike on all processes.
        processes: all that have a part.
        make_room: called when all is on disk, before it is renamed to `folder`.

    Raises:
        OSError: on all processes, if one of them cannot write.
    """
    new = folder.with_name(f".new-{folder.name}")
    try:
        processes.by_first(lambda: _make_empty(new))
        writer = dcp.HuggingFaceStorageWriter(str(new), save_distributed=True)
        dcp.save(tensors, storage_writer=writer)
        mine = processes.together(lambda: _checksums(new, processes))
        checksums = {name: sum for part in processes.gather(mine) for name, sum in part.items()}
        processes.by_first(lambda: _put_in_place(new, folder, counters, checksums, make_room))
    except CheckpointException as failed:
        problem = _first(failed)
        raise problem if isinstance(problem, OSError) else OSError(str(problem)) from None
    finally:
        if processes.is_first:
            shutil.rmtree(new, ignore_errors=True)


def read_counters(folder: Path, processes: Processes) -> str:
    """What was saved with the tensors, when the files are found to be whole.

    Of several processes each looks at some of the files.

    Raises:
        UserError: if a file is missing or damaged.
    """
    try:
        state = json.loads((folder / STATE).read_text(encoding="utf-8"))
        if state["version"] > VERSION:
            raise UserError(
                f"format {state['version']} is newer than this minigpt's, {VERSION}: update it"
            )
        counters, expected = state["state"], state["files"]
        if state["sha256"] != _sealed(counters, expected):
            raise UserError(f"{STATE} is damaged, its checksum does not match")
        missing = sorted(expected.keys() - {file.name for file in _files(folder)})
        if missing:
            raise UserError(f"{missing[0]} is missing")
        for name, checksum in _checksums(folder, processes).items():
            if expected.get(name) != checksum:
                raise UserError(f"{name} is damaged, its checksum does not match")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"it is damaged: {error}") from None
    return str(counters)


def load_shards(
    folder: Path, blanks: Callable[[Iterable[str]], dict[str, Tensor]]
) -> dict[str, Tensor]:
    """The tensors of a folder that is whole, or this process's shards of them.

    Args:
        folder: that `save_shards` wrote.
        blanks: from the names there are, tensors to be filled, sharded or not.

    Raises:
        ValueError: if one is missing or has another shape.
    """
    reader = dcp.HuggingFaceStorageReader(str(folder))
    tensors = blanks(reader.read_metadata().state_dict_metadata)
    try:
        with warnings.catch_warnings():  # that this is done by each process by itself
            warnings.simplefilter("ignore", UserWarning)
            dcp.load(tensors, storage_reader=reader, no_dist=True)
    except CheckpointException as failed:
        raise ValueError(str(_first(failed))) from None
    return tensors


def _make_empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def _put_in_place(
    new: Path,
    folder: Path,
    counters: str,
    checksums: dict[str, str],
    make_room: Callable[[], None],
) -> None:
    state = {
        "version": VERSION,
        "state": counters,
        "files": checksums,
        "sha256": _sealed(counters, checksums),
    }
    write_text(json.dumps(state, indent=2) + "\n", new / STATE)
    make_room()
    os.rename(new, folder)
    sync_folder(folder.parent)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def _checksums(folder: Path, processes: Processes) -> dict[str, str]:
    """SHA-256 of this process's share of the files, by name."""
    checksums = {}
    for path in _files(folder)[processes.rank :: processes.size]:
        with open(path, "rb") as file:
            checksums[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return checksums


def _sealed(counters: str, checksums: dict[str, str]) -> str:
    return hashlib.sha256((counters + json.dumps(checksums, sort_keys=True)).encode()).hexdigest()


def _first(failed: CheckpointException) -> BaseException:
    """What went wrong on the process of the lowest rank."""
    return failed.failures[min(failed.failures)][0]
