"""What a training begins with: nothing, a trained model, or a network of somebody's own; and the
settings that come with it.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from .. import UserError
from ..config import FREE, GPTConfig, Settings, check_given, check_interpolation
from ..data.batches import Dataset
from ..generation.numpy_gpt import NumpyGPT
from ..model import GPT
from ..runs.base import BASE, base_folder, is_base, read_base
from ..runs.find import find_model
from ..runs.read_model import FoundModel
from ..tokenizer import CharacterTokenizer, Tokenizer, tiktoken_tokenizer
from ..training.messages import say
from . import induction
from .embedding_init import embedding_init, head_init, sample
from .text_stats import TextStats

# Fields of a model to begin with that are planned anew; for a run by recipe/tuning.py. Other models
# have far longer contexts than two cores can train on, and GPT-2's dropout of attention weights
# doubles the time of a step there.
_PLANNED_FOR_RUNS = {"context_length", "dropout"}
_PLANNED_FOR_OTHERS = {"context_length", "attention_dropout"}


@dataclass(frozen=True)
class Beginning:
    """What a training begins with, and its settings before the plan."""

    settings: Settings
    found: FoundModel | None = None  # a trained model; None: a new one
    network: nn.Module | None = None  # somebody's own, for which nothing is planned
    tokenizer: Tokenizer | None = None  # None: one of the kind that the settings name
    text: TextStats | None = None  # as this model sees it, once it is measured

    @property
    def config(self) -> GPTConfig | None:
        """Of the trained model."""
        return None if self.found is None else self.found.glass.config

    def with_minutes(self, minutes: float) -> "Beginning":
        """The same for so many minutes."""
        return replace(self, settings=self.settings.with_values("given", {"minutes": minutes}))


def beginning_of(
    settings: Settings, *, network: nn.Module | None = None, tokenizer: Any = None
) -> Beginning:
    """What the settings, and parts of your own, ask for.

    UserError if a setting would do nothing beside these, or the model cannot be read.
    """
    init = settings["init"]
    has_network = network is not None
    has_tokenizer = tokenizer is not None
    if has_network or has_tokenizer:
        _check_own_parts(settings, has_network=has_network, has_tokenizer=has_tokenizer)
    if not has_network and settings.fixed("interpolate"):
        check_interpolation(init)
    if init is not None:
        refused = settings.shaping()
        if refused:
            option = refused[0].replace("_", "-")
            raise UserError(
                f"--init keeps the model's shape, tokenizer and weights; leave out --{option}"
            )
        return _with_model(settings, model_to_begin_with(init))

    if tokenizer is not None:
        kind = "char" if isinstance(tokenizer, CharacterTokenizer) else "bpe"
        brought = {"tokenizer": kind, "vocab_size": tokenizer.vocab_size}
        settings = settings.with_values("brought", brought, why=", as given")
    elif settings["tokenizer"] not in ("bpe", "char"):  # it brings its tokens
        name = settings["tokenizer"]
        brought = {"vocab_size": tiktoken_tokenizer(name).vocab_size}
        settings = settings.with_values("brought", brought, why=f", those of {name}")
    return Beginning(settings, network=network, tokenizer=tokenizer)


def with_base(asked: Beginning) -> tuple[Beginning, ...]:
    """What a training may begin with: what was asked for and, if nothing was, the base. A line says
    if that is missing or damaged."""
    settings = asked.settings
    is_new = settings.is_open("init") and asked.network is None and asked.tokenizer is None
    if not is_new or settings["lesson"] or settings.shaping():
        return (asked,)

    try:
        base = read_base()
    except UserError as error:
        say(f"{error}; this training begins from nothing")
        return (asked,)
    if (settings.fixed("context_length") or 0) > base.glass.context_length:
        return (asked,)  # it was not trained to look so far back
    return (asked, _with_model(settings.with_values("planned", {"init": BASE}), base))


def chosen_of(beginnings: tuple[Beginning, ...], init: str | None) -> Beginning:
    """The one that a plan has chosen, perhaps in another process."""
    for beginning in beginnings:
        if beginning.settings["init"] == init:
            return beginning
    raise UserError(f"the plan begins with the base in {base_folder()}, which is not whole")


def model_to_begin_with(init: str) -> FoundModel:
    """The model that `--init` names; UserError if it cannot be read or is damaged."""
    found = find_model(init)
    if not all(np.isfinite(array).all() for array in found.glass.weights.values()):
        raise UserError(f"{init} is damaged: some of its weights are not finite numbers")
    return found


def _with_model(settings: Settings, found: FoundModel) -> Beginning:
    """A training that begins with a model, which brings its shape and its tokens."""
    if settings["init"] == BASE and not is_base(found.folder):  # another one with the base's name
        settings = settings.with_values("given", {"init": str(found.folder.absolute())})

    changes = {name: settings[name] for name in FREE if settings.source(name) == "given"}
    found = adapted(found, changes)
    brought = dataclasses.asdict(found.glass.config)
    if isinstance(found.tokenizer, CharacterTokenizer):
        brought["tokenizer"] = "char"
    for name in _PLANNED_FOR_RUNS if found.is_run else _PLANNED_FOR_OTHERS:
        brought.pop(name)

    check_given(settings.given_values(), brought)
    new = {name: value for name, value in brought.items() if name not in changes}
    settings = settings.with_values("brought", new)
    return Beginning(settings, found=found, tokenizer=found.tokenizer)


def adapted(found: FoundModel, changes: Mapping[str, Any]) -> FoundModel:
    """The same weights under a config with these changes of the fields that are free."""
    glass = found.glass
    config = dataclasses.replace(glass.config, **changes)
    weights = dict(glass.weights)
    name = "position_embedding.weight"
    if name in weights:
        learned = glass.config.context_length
        if config.context_length > learned:
            raise UserError(
                f"context_length must be at most {learned}, the positions that the model has "
                f"learned, got {config.context_length}"
            )
        weights[name] = weights[name][: config.context_length]
    return dataclasses.replace(found, glass=NumpyGPT(config, weights))


def _check_own_parts(settings: Settings, *, has_network: bool, has_tokenizer: bool) -> None:
    """Refuse settings of a network or a tokenizer that was given."""
    shape = {field.name for field in dataclasses.fields(GPTConfig)} - {"vocab_size"}
    of_network = sorted(settings.given_values().keys() & shape)
    if has_network and of_network:
        raise UserError(
            f"the model that was given has its own {of_network[0]}; leave that setting out"
        )
    for name in ("init", "embedding_init"):
        if has_network and settings.fixed(name) is not None:
            raise UserError(
                f"{name} is only for a GPT that minigpt makes; leave it or the model out"
            )
    if has_tokenizer and settings["init"] is not None:
        raise UserError("init brings its own tokenizer; leave the tokenizer out")
    if has_tokenizer and not settings.is_open("vocab_size"):
        raise UserError(
            "the tokenizer that was given has its own vocab_size; leave that setting out"
        )


# The network


def begin(beginning: Beginning, settings: Settings, dataset: Dataset) -> nn.Module:
    """The network that a training begins with, as planned: a new `GPT`, a trained one, or the one
    that was given. A new one already knows which tokens resemble each other, and which follow
    which."""
    if beginning.network is not None:
        return beginning.network
    config = settings.network
    if beginning.found is not None:
        return adapted(beginning.found, {name: getattr(config, name) for name in FREE}).model

    torch.manual_seed(settings["seed"])
    model = GPT(config)
    if settings["embedding_init"] == "text":
        _learn_from_counts(model, dataset, settings["tokenizer"], settings["seed"])
    return model


def _learn_from_counts(model: GPT, dataset: Dataset, tokenizer: str, seed: int) -> None:
    """Set the embedding, and the model's head if it has weights of its own, by which tokens stand
    beside which in the text. Set two attention heads that continue what the text repeats, if the
    model has room for them."""
    config = model.config
    reserved = induction.reserved_components(config, tokenizer)
    vectors = embedding_init(dataset.train, config.vocab_size, config.emb_dim - reserved, seed)
    if reserved:
        vectors = induction.with_reserved(vectors, reserved)  # (vocab_size, emb_dim)
    model.token_embedding.load_state_dict({"weight": vectors})

    if not config.tie_embeddings:
        head = head_init(dataset.train, model.final_norm(vectors))  # (vocab_size, emb_dim)
        model.head.load_state_dict({"weight": head})
    if reserved:
        induction.start(model, sample(dataset.train), reserved)
