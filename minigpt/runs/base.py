"""The base: a small English model that comes with minigpt, in `data/base/` of a checkout and in
`base/` of an installed package.

It is a run of which only four files are left: how it is sampled, weights in 8 bits, the tokenizer,
and a config without texts, which also holds the checksums of these three and its own.
`data/base/pack.py` makes it.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from .. import UserError
from .folder import CONFIG, GENERATION, TOKENIZER, WEIGHTS, read_raw_config
from .read_model import FoundModel, load_run

BASE = "base"  # its name, wherever a run can be named
NO_TEXTS = "the texts that the base learned from are not on this machine"

# What is in its config beside what the config of a run has.
CHECKSUMS = "sha256"  # of its files
READ = "bytes_read"  # how much text the base has learned from

_CHECKED = (WEIGHTS, TOKENIZER, GENERATION)
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
        found = checksums(folder, content)
    except OSError as error:  # perhaps only another user may read it, as in a system's folder
        raise UserError(f"the base cannot be read: {error}; {_REMEDY}") from None
    if content.get(CHECKSUMS) != found:
        raise UserError(f"the base in {folder} is damaged; {_REMEDY}")
    return folder


def bytes_read() -> int | None:
    """How many bytes of text the base has learned from; None if it does not say so."""
    size = read_raw_config(base_folder()).get(READ)
    return size if isinstance(size, int) else None


def checksums(folder: Path, content: dict[str, Any]) -> dict[str, str]:
    """The SHA-256 of the weights, of the tokenizer, of how it is sampled, and of what a config says
    beside the checksums, in hexadecimal."""
    rest = {key: value for key, value in content.items() if key != CHECKSUMS}
    found = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in _CHECKED}
    found[CONFIG] = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    return found
