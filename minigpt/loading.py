"""A model by any name: a run's folder, a folder in the Hugging Face layout, a model of the hub.

This is what `minigpt.load` and every command that takes a run go through.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .config import InferenceConfig
from .device import choose_device
from .generation.precision import in_precision
from .generation.writer import Writer
from .interop.hub import hub_folder, is_hub_name
from .interop.huggingface import is_huggingface_folder, read_folder
from .model import GPT
from .run_folder import load_run
from .tokenizer import Tokenizer


@dataclass(frozen=True)
class FoundModel:
    """A model with its tokenizer, and the folder that they were found in."""

    folder: Path
    model: GPT
    tokenizer: Tokenizer


def find_model(name: str | Path) -> FoundModel:
    """Read a run, a folder in the Hugging Face layout, or a model of the hub such as "gpt2".

    Raises:
        UserError: if there is none of that name, saying where it was looked for; if a file is
            missing or damaged; if the model is of an architecture that ours do not match.
    """
    folder = Path(name)
    if not folder.exists() and is_hub_name(str(name)):
        folder = hub_folder(str(name))
    if is_huggingface_folder(folder):
        return FoundModel(folder, *read_folder(folder))
    run = load_run(folder)
    return FoundModel(folder, run.model, run.tokenizer)


def load(run: str | Path, device: str = "auto", **settings: Any) -> Writer:
    """The writer of a model.

    Args:
        run: a run's folder such as "runs/fables", a folder in the Hugging Face layout, or a
            model of the hub such as "gpt2".
        device: "auto", "cpu", "cuda", ...
        settings: other fields of :class:`~minigpt.InferenceConfig`, such as precision="int8".

    Raises:
        UserError: as :func:`find_model`, or if a setting is out of range.
    """
    config = InferenceConfig(device=device, **settings)
    chosen = choose_device(config.device)
    found = find_model(run)
    model = in_precision(found.model, config.precision).to(chosen)
    return Writer(model, found.tokenizer, config.compile)
