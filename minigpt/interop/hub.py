"""Models of the Hugging Face hub, named `hf:gpt2` or `hf:owner/name`: from its cache on this
machine, or downloaded into it. A name without that prefix never reaches the network. And how a
folder in the hub's format is known."""

from pathlib import Path

from .. import UserError
from ..system.json_objects import read_object
from ..system.platforms import how_to_install
from ..tokenizer import has_tokenizer

PREFIX = "hf:"
# Weights, settings and text only: nothing that could be run.
_TOKENIZER_FILES = ["tokenizer.json", "vocab.json", "merges.txt", "added_tokens.json"]
_SETTINGS_FILES = ["config.json", "generation.json"]  # the second of a model that minigpt exported
_FILES = [*_SETTINGS_FILES, "model.safetensors", "model-*.safetensors", *_TOKENIZER_FILES]


def is_huggingface_folder(folder: Path) -> bool:
    """Whether the folder's config.json is in transformers' format."""
    return "model_type" in read_object(folder / "config.json")


def hub_folder(name: str) -> Path:
    """The folder of the model `hf:...`, from the cache or, with a network, downloaded into it."""
    try:
        from huggingface_hub import constants, snapshot_download
    except ImportError:
        raise UserError(f"{name} needs: {how_to_install('hub')}") from None

    repository = name.removeprefix(PREFIX)
    cached: Path | None = None
    try:
        cached = Path(snapshot_download(repository, local_files_only=True, allow_patterns=_FILES))
        if _is_model(cached) and has_tokenizer(cached):
            return cached
    except (OSError, ValueError):
        pass

    try:
        return Path(snapshot_download(repository, allow_patterns=_FILES))
    except Exception as error:  # what its network library raises depends on its version
        if cached is not None and _is_model(cached):  # GPT-2 can do without a tokenizer of its own
            return cached
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise UserError(
            f"{name} is not in the Hugging Face cache ({constants.HF_HUB_CACHE}) and could not be "
            f"downloaded ({reason})"
        ) from None


def _is_model(folder: Path) -> bool:
    """Whether a folder holds a config and weights; another program may have cached other files."""
    return (folder / "config.json").exists() and any(folder.glob("*.safetensors"))
