"""Makes the base from a run of training: python data/base/pack.py runs/NAME [--out data/base]

It writes model.safetensors (in 8 bits), tokenizer.json, generation.json and config.json. The config
tells nothing of the texts; SOURCES.md does. `minigpt/runs/base.py` reads what is written here.
"""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minigpt import UserError
from minigpt.data.origin import Origin
from minigpt.runs.base import CHECKSUMS, READ, checksums
from minigpt.runs.find import full_name
from minigpt.runs.folder import (
    CONFIG,
    GENERATION,
    TOKENIZER,
    WEIGHTS,
    RunConfig,
    read_plan,
    read_usual,
)
from minigpt.runs.read_model import FoundModel, load_run
from minigpt.runs.weights import metadata_of, read_best, read_network
from minigpt.system.atomic import write_text
from minigpt.system.eight_bits import LARGEST_NUMBER, restored, rounded
from minigpt.system.platforms import rename
from minigpt.system.safetensors_files import save_tensors

LARGEST = 16_000_000  # bytes, of all files: every download of minigpt holds them


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the base from a run of training.")
    parser.add_argument("run", help="the run, of a GPT with a tokenizer of minigpt's own")
    here = Path(__file__).parent
    parser.add_argument("--out", type=Path, default=here, help=f"the folder (default: {here})")
    read = "megabytes of text that it has read (default: the whole text of the run)"
    parser.add_argument("--read", type=float, metavar="MB", help=read)
    given = parser.parse_args()

    size_read = None if given.read is None else round(given.read * 1e6)
    try:
        size = write_base(Path(full_name(given.run)), given.out, size_read)
    except (UserError, OSError) as error:
        sys.exit(f"error: {error}")
    print(f"{given.out}: {size:,} bytes, of {LARGEST:,} at most")


def write_base(run: Path, out: Path, size_read: int | None = None) -> int:
    """Write the base's files, made from a run, into the folder `out`; other files there stay.
    Returns their size in bytes.

    `size_read` is how many bytes of text it has learned from; unset: the whole text of the run.

    Raises:
        UserError: if `run` is not a run of a `GPT`, does not say how it is sampled, its weights are
            not finite numbers in 8 bits or too small for them, or the files would be too large.
            Nothing is written then.
    """
    found = load_run(run)
    if not (run / GENERATION).is_file():
        raise UserError(f"{run} does not say how it is sampled: it has no {GENERATION}")
    read_usual(run)  # refuses a file that is damaged

    weights = rounded(found.glass.weights)
    if not all(np.isfinite(array).all() for array in weights.values()):
        raise UserError(f"{run} has weights that are not finite numbers in 8 bits")
    for name, array in restored(weights).items():
        if not _is_near(found.glass.weights[name], array):
            raise UserError(f"{run} has a row of {name} that is too small for 8 bits")

    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as place:
        new = Path(place)
        save_tensors(weights, new / WEIGHTS, _about(run))
        write_text(found.tokenizer.to_json(), new / TOKENIZER)
        shutil.copy(run / GENERATION, new)

        content = _config(found)
        content[READ] = _text_size(run) if size_read is None else size_read
        content[CHECKSUMS] = checksums(new, content)
        write_text(json.dumps(content, indent=2) + "\n", new / CONFIG)

        size = sum(file.stat().st_size for file in new.iterdir())
        if size > LARGEST:
            raise UserError(f"a base of {run} has {size:,} bytes, more than {LARGEST:,}")
        for file in new.iterdir():
            rename(file, out / file.name)
    return size


def _is_near(whole: NDArray[np.float32], rounded: NDArray[np.float32]) -> bool:
    """Whether no number is off by more than half a step of its row, and a little: the step is
    rounded too. Vectors ``(columns,)``, which have 16 bits, always are."""
    if whole.ndim != 2:
        return True
    steps = np.abs(whole).max(axis=1, keepdims=True) / LARGEST_NUMBER  # (rows, 1)
    errors = np.abs(rounded - whole)  # (rows, columns)
    return bool((errors <= 0.51 * steps).all())


def _about(run: Path) -> dict[str, str]:
    """What the weights file says of itself: the network, and its loss where it was trained."""
    about: dict[str, Any] = {"network": read_network(run / WEIGHTS)}
    best = read_best(run / WEIGHTS)
    if best is not None:
        about["best"] = best
    return metadata_of(about)


def _config(found: FoundModel) -> dict[str, Any]:
    """The config of a run without its texts and their places."""
    assert found.config is not None
    origin = Origin(
        knows_documents=found.config.origin.knows_documents,
        alphabet=found.config.origin.alphabet,
    )
    config = RunConfig(found.config.model, found.config.training, origin)
    content: dict[str, Any] = json.loads(config.to_json())
    return content


def _text_size(run: Path) -> int | None:
    """The bytes of text that a run was planned for; None if it has no plan."""
    try:
        return int(read_plan(run)["text"]["size"])
    except (ValueError, LookupError, TypeError):
        return None


if __name__ == "__main__":
    main()
