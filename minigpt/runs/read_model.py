"""A model read from its folder: weights in the glass engine, tokenizer and, of a run, settings."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from .. import UserError
from ..config import GPTConfig, SampleConfig
from ..config.parts.norms import NamedArrays
from ..generation.numpy_gpt import NumpyGPT
from ..system.safetensors_files import read_weights
from ..tokenizer import Tokenizer, TokenizerLike, load_tokenizer, same_tokenizer
from .folder import (
    CONFIG,
    TOKENIZER,
    WEIGHTS,
    RunConfig,
    check_is_gpt,
    existing_file,
    kept_file,
    read_config,
    read_usual,
)

if TYPE_CHECKING:
    from ..model import GPT


@dataclass(frozen=True)
class FoundModel:
    """A model with its tokenizer, the folder that they were found in and, if it is a run, its
    settings. `step` is given if the weights are not the run's best, but kept from that step."""

    folder: Path
    glass: NumpyGPT
    tokenizer: Tokenizer
    config: RunConfig | None = None
    step: int | None = None

    @property
    def is_run(self) -> bool:
        """Whether minigpt has trained it; else another program has."""
        return self.config is not None

    @cached_property
    def usual(self) -> SampleConfig:
        """How the model is sampled, if nothing else is given. It is read when it is first asked
        for: what does not sample can do without it. UserError if its file is damaged."""
        return read_usual(self.folder)

    @cached_property
    def model(self) -> "GPT":
        """The torch model, made when it is first asked for."""
        from ..generation.torch_gpt import torch_of

        return torch_of(self.glass)


def load_run(
    folder: str | Path, tokenizer: TokenizerLike | None = None, *, step: int | None = None
) -> FoundModel:
    """Read a run of a `GPT`, with its best weights or the weights that it has kept of a step. The
    error names what is missing or damaged."""
    folder = Path(folder)
    config = read_config(folder)
    check_is_gpt(folder)
    gpt_config = config.gpt

    path = weights_file(folder, step)
    own_tokenizer = tokenizer_of(folder, tokenizer)
    found = own_tokenizer.vocab_size
    said = gpt_config.vocab_size
    if found != said:
        problem = f"{found} tokens but {CONFIG} says vocab_size {said}"
        raise UserError(f"{folder / TOKENIZER} has {problem}")

    glass = make_glass(gpt_config, read_weights(path), path)
    return FoundModel(folder, glass, own_tokenizer, config, step=step)


def weights_file(folder: Path, step: int | None) -> Path:
    """The best weights of a run, or those of a step that it has kept."""
    return existing_file(folder, WEIGHTS) if step is None else kept_file(folder, step)


def tokenizer_of(folder: Path, given: TokenizerLike | None) -> Tokenizer:
    """The tokenizer of a run: read, or the one `given`, which must have the same tokens."""
    path = existing_file(folder, TOKENIZER)
    return load_tokenizer(path) if given is None else same_tokenizer(path, given)


def make_glass(config: GPTConfig, weights: NamedArrays, place: Path) -> NumpyGPT:
    """The glass engine with these weights; UserError with their place if they do not fit."""
    try:
        return NumpyGPT(config, weights)
    except UserError as error:
        raise UserError(f"{place} does not fit {CONFIG}: {error}") from None
