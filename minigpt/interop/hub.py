"""Models by name, such as "gpt2": from the Hugging Face cache, or downloaded into it."""

import re
from pathlib import Path

from .. import UserError

# Weights and text only: nothing that could be run.
_FILES = [
    "config.json",
    "model.safetensors",
    "model-*.safetensors",
    "model.safetensors.index.json",
    "tokenizer.json",
    "vocab.json",
    "merges.txt",
]


def is_hub_name(name: str) -> bool:
    """Whether a name that is no path here could be a model's: "name" or "owner/name"."""
    if not re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", name):
        return False
    return "/" not in name or not Path(name).parent.exists()  # runs/fabels is a slip of the pen


def hub_folder(name: str) -> Path:
    """The folder of a model, from the cache or, with a network, downloaded into it.

    Raises:
        UserError: if it is in neither place, saying where it was looked for.
    """
    try:
        from huggingface_hub import constants, snapshot_download
    except ImportError:
        raise UserError(
            f"no such run: {name} is no folder here; to look for a model of that name on the "
            "Hugging Face hub, pip install huggingface_hub"
        ) from None
    try:
        folder = Path(snapshot_download(name, local_files_only=True, allow_patterns=_FILES))
        if any(folder.glob("*.safetensors")):  # what another program cached may be a part
            return folder
    except (OSError, ValueError):
        pass
    try:
        return Path(snapshot_download(name, allow_patterns=_FILES))
    except Exception as error:  # what its network library raises depends on its version
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise UserError(
            f"no such run: {name} is no folder here, is not in the Hugging Face cache "
            f"({constants.HF_HUB_CACHE}) and could not be downloaded ({reason})"
        ) from None
