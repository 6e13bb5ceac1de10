"""What a training is asked for: the settings that were given, and the parts that it begins with."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .. import UserError
from ..config import PLANNED, TextConfig, TrainConfig, check_decay
from ..tokenizer import CharacterTokenizer, Tokenizer
from ..training import distributed
from ..training.precision import resolved
from .given import Given, gather_given
from .start import starting_point

if TYPE_CHECKING:
    from torch import nn

    from .plan import Plan

Fields = Mapping[str, Any]  # of a config, that were given


@dataclass(frozen=True)
class Request:
    """The settings of a training and what it begins with."""

    text: TextConfig
    training: TrainConfig
    given: Given  # what a plan cannot change
    network: "nn.Module | None" = None  # None: a `GPT` is made as planned
    tokenizer: Tokenizer | None = None  # None: one of the kind that `text` names
    has_own_network: bool = False  # somebody's own, for which nothing is planned

    def with_plan(self, plan: "Plan | None") -> "Request":
        """The same with all that a plan has chosen."""
        if plan is None:
            return self
        text = replace(self.text, max_characters=plan.max_characters)
        if self.tokenizer is None and text.tokenizer == "bpe":
            text = replace(text, vocab_size=plan.model.vocab_size)

        chosen = {name: getattr(plan, name) for name in PLANNED if hasattr(plan, name)}
        return replace(self, text=text, training=replace(self.training, **chosen))


def make_request(
    text: Fields,
    model: Fields,
    training: Fields,
    *,
    network: "nn.Module | None" = None,
    tokenizer: Tokenizer | None = None,
) -> Request:
    """From the given fields of the three configs, and parts of your own.

    UserError if a setting has a wrong value, or would do nothing beside the others.
    """
    _check_own_parts(text, model, has_network=network is not None, has_tokenizer=bool(tokenizer))
    if network is None:
        check_decay(training.get("decay_towards"), text.get("init"))
    start = starting_point(text, model)
    given = gather_given(dict(text), dict(model), dict(training), start)
    request = Request(TextConfig(**text), TrainConfig(**training), given)

    if start is not None:
        return replace(request, network=start.model, tokenizer=start.tokenizer)
    if tokenizer is not None:
        kind = "char" if isinstance(tokenizer, CharacterTokenizer) else "bpe"
        given = replace(given, tokenizer=kind, vocab_size=tokenizer.vocab_size)
    return replace(
        request,
        given=given,
        network=network,
        tokenizer=tokenizer,
        has_own_network=network is not None,
    )


def training_on_this_machine(request: Request) -> TrainConfig:
    """The settings of a training with what "auto" means on this machine, so that a run that is
    continued goes on alike."""
    device = distributed.device_of_rank(request.training.device)
    return resolved(request.training, device, is_gpt=not request.has_own_network)


def _check_own_parts(
    text: Fields, model: Fields, *, has_network: bool, has_tokenizer: bool
) -> None:
    """Refuse settings of what somebody brings."""
    if has_network and model:
        raise UserError(
            f"the model that was given has its own {min(model)}; leave that setting out"
        )
    for name in ("init", "embedding_init"):
        if has_network and text.get(name) is not None:
            raise UserError(
                f"{name} is only for a GPT that minigpt makes; leave it or the model out"
            )
    if has_tokenizer and text.get("init") is not None:
        raise UserError("init brings its own tokenizer; leave the tokenizer out")
    if has_tokenizer and text.get("vocab_size") is not None:
        raise UserError(
            "the tokenizer that was given has its own vocab_size; leave that setting out"
        )
