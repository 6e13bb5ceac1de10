"""The base: a small English model that comes with minigpt, in `data/base/` of a checkout and in
`base/` of an installed package.

It is a run of which only three files are left: weights in float16, the tokenizer, and a config
without texts, which also holds the checksums of all three.
"""

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from .. import UserError
from ..data.origin import Origin
from ..system.atomic import write_text
from ..system.platforms import rename
from ..system.safetensors_files import save_tensors
from .folder import CONFIG, TOKENIZER, WEIGHTS, RunConfig, read_plan, read_raw_config
from .found import FoundModel, load_run
from .weights import metadata_of, read_best, read_network

BASE = "base"  # its name, wherever a run can be named
NO_TEXTS = "the texts that the base learned from are not on this machine"
LARGEST = 16_000_000  # bytes, of all files: every download of minigpt holds them

_CHECKSUMS = "sha256"  # what the config calls them
_READ = "bytes_read"  # how much text the base has learned from
_CHECKED = (WEIGHTS, TOKENIZER)
_REMEDY = "install minigpt again"


def base_folder() -> Path:
    """Where the base is, if it is there: in an installed package, or in a checkout."""
    package = Path(__file__).parents[1]
    packed = package / "base"
    return packed if packed.is_dir() else package.parent / "data" / "base"


def is_base(folder: Path) -> bool:
    """Whether this is the folder of the base, by any path."""
    return folder.resolve() == base_folder().resolve()


def read_base() -> FoundModel:
    """The base; UserError if it is missing or damaged."""
    return load_run(find_base())


def find_base() -> Path:
    """The folder of the base; UserError if it is missing or damaged. To hash the weights is quicker
    than to read them."""
    folder = base_folder()
    for name in (CONFIG, *_CHECKED):
        if not (folder / name).is_file():
            raise UserError(f"the base is missing: there is no {folder / name}; {_REMEDY}")
    content = read_raw_config(folder)
    try:
        found = {**_checksums(folder), CONFIG: _checksum_of_config(content)}
    except OSError as error:  # perhaps only another user may read it, as in a system's folder
        raise UserError(f"the base cannot be read: {error}; {_REMEDY}") from None
    if content.get(_CHECKSUMS) != found:
        raise UserError(f"the base in {folder} is damaged; {_REMEDY}")
    return folder


def bytes_read() -> int | None:
    """How many bytes of text the base has learned from; None if it does not say so."""
    size = read_raw_config(base_folder()).get(_READ)
    return size if isinstance(size, int) else None


def write_base(run: Path, out: Path, size_read: int | None = None) -> int:
    """Write the base's three files, made from a run, into the folder `out`; other files there stay.
    Returns their size in bytes.

    `size_read` is how many bytes of text it has learned from; unset: the whole text of the run.

    Raises:
        UserError: if `run` is not a run of a `GPT`, its weights do not fit into float16, or the
            files would be too large. Nothing is written then.
    """
    found = load_run(run)
    with np.errstate(over="ignore"):  # what is too large becomes infinite
        weights = {name: array.astype(np.float16) for name, array in found.glass.weights.items()}
    if not all(np.isfinite(array).all() for array in weights.values()):
        raise UserError(f"{run} has weights that are not finite numbers in float16")

    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as place:
        new = Path(place)
        save_tensors(weights, new / WEIGHTS, _about(run))
        write_text(found.tokenizer.to_json(), new / TOKENIZER)
        if size_read is None:
            size_read = _text_size(run)
        write_text(_config(found, _checksums(new), size_read), new / CONFIG)

        size = sum(file.stat().st_size for file in new.iterdir())
        if size > LARGEST:
            raise UserError(f"a base of {run} has {size:,} bytes, more than {LARGEST:,}")
        for file in new.iterdir():
            rename(file, out / file.name)
    return size


def _about(run: Path) -> dict[str, str]:
    """What the weights file says of itself: the network, and its loss where it was trained."""
    about: dict[str, Any] = {"network": read_network(run / WEIGHTS)}
    best = read_best(run / WEIGHTS)
    if best is not None:
        about["best"] = best
    return metadata_of(about)


def _config(found: FoundModel, checksums: dict[str, str], size: int | None) -> str:
    """The text of the base's config: as that of its run, but without texts and their places. `size`
    is how many bytes of text it has learned from, if that is known."""
    assert found.config is not None
    origin = Origin(
        knows_documents=found.config.origin.knows_documents,
        alphabet=found.config.origin.alphabet,
    )
    config = RunConfig(found.config.model, found.config.training, origin)
    content = {**json.loads(config.to_json()), _READ: size}
    checksums = {**checksums, CONFIG: _checksum_of_config(content)}
    return json.dumps({**content, _CHECKSUMS: checksums}, indent=2) + "\n"


def _checksums(folder: Path) -> dict[str, str]:
    """The SHA-256 of the weights and of the tokenizer, in hexadecimal."""
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in _CHECKED}


def _checksum_of_config(content: dict[str, Any]) -> str:
    """The SHA-256 of what a config says beside the checksums, in hexadecimal."""
    rest = {key: value for key, value in content.items() if key != _CHECKSUMS}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _text_size(run: Path) -> int | None:
    """The bytes of text that a run was planned for; None if it has no plan."""
    try:
        return int(read_plan(run)["text"]["size"])
    except (ValueError, LookupError, TypeError):
        return None
