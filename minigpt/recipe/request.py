"""What a training is asked for: the settings that were given, and the parts that it begins with."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .. import UserError
from ..config import FROM_NOTHING, PLANNED, TextConfig, TrainConfig, check_interpolation
from ..runs.base import BASE, base_folder, is_base, read_base
from ..runs.found import FoundModel
from ..tokenizer import CharacterTokenizer, Tokenizer
from ..training.messages import say
from ..training.setup import as_lesson
from .given import Given, gather_given
from .start import adapted, leaves_shape_open, starting_point

if TYPE_CHECKING:
    from torch import nn

    from .plan import Plan

Fields = Mapping[str, Any]  # of a config, that were given


@dataclass(frozen=True)
class Asked:
    """The fields of the three configs that were given."""

    text: Fields
    model: Fields
    training: Fields


@dataclass(frozen=True)
class Request:
    """The settings of a training and what it begins with."""

    text: TextConfig
    training: TrainConfig
    given: Given  # what a plan cannot change
    start: FoundModel | None = None  # the model that it begins with; None: a new one
    network: "nn.Module | None" = None  # somebody's own, for which nothing is planned
    tokenizer: Tokenizer | None = None  # None: one of the kind that `text` names
    asked: Asked | None = None  # what it was made from, if it may begin with the base instead

    @cached_property
    def with_base(self) -> "Request | None":
        """The same request begun with the base; None if a plan may not choose that. The base is
        read at the first use of this property; a line says if it is missing or damaged."""
        if self.asked is None:
            return None
        try:
            base = read_base()
        except UserError as error:
            say(f"{error}; this training begins from nothing")
            return None

        asked = self.asked
        if (self.given.context_length or 0) > base.glass.context_length:
            return None  # it was not trained to look so far back
        text = {**asked.text, "init": BASE}
        request = _request_with(adapted(base, asked.model), text, asked.model, asked.training)
        return replace(request, training=self.training)

    def with_minutes(self, minutes: float) -> "Request":
        """The same for so many minutes."""
        request = replace(
            self,
            training=replace(self.training, minutes=minutes),
            given=replace(self.given, minutes=minutes),
        )

        base = self.with_base
        of_base = None if base is None else base.with_minutes(minutes)
        vars(request)["with_base"] = of_base  # in the property's cache: it is not read again
        return request

    def with_plan(self, plan: "Plan | None") -> "Request":
        """The same with all that a plan has chosen."""
        if plan is None:
            return self
        if self.start is None and plan.init is not None:
            if self.with_base is None:  # another process has planned
                raise UserError(
                    f"the plan begins with the base in {base_folder()}, which is not whole"
                )
            return self.with_base.with_plan(plan)

        text = replace(self.text, max_characters=plan.max_characters)
        if self.tokenizer is None and text.tokenizer == "bpe":
            text = replace(text, vocab_size=plan.model.vocab_size)

        chosen = {name: getattr(plan, name) for name in PLANNED if hasattr(plan, name)}
        chosen |= {"device": plan.device, "precision": plan.precision}
        if self.training.lesson:
            chosen["steps"] = plan.steps
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
    init = text.get("init")
    if init == FROM_NOTHING:
        text = {**text, "init": None}
    if text.get("only") is not None:  # whether a token counts is known of whole tokens only
        training = {**training, "token_split_prob": 0.0}

    _check_own_parts(text, model, has_network=network is not None, has_tokenizer=bool(tokenizer))
    if network is None:
        check_interpolation(training.get("interpolate"), text.get("init"))

    start = starting_point(text, model)
    if start is not None:
        if init == BASE and not is_base(start.folder):  # another model with the base's name
            text = {**text, "init": str(start.folder.absolute())}
        return _request_with(start, text, model, training)

    given = gather_given(text, model, training)
    request = Request(TextConfig(**text), as_lesson(TrainConfig(**training)), given)
    is_open = network is None and init is None and leaves_shape_open(text, model)
    may_begin_with_base = is_open and not given.lesson  # a lesson begins with nothing
    if tokenizer is not None:
        kind = "char" if isinstance(tokenizer, CharacterTokenizer) else "bpe"
        given = replace(given, tokenizer=kind, vocab_size=tokenizer.vocab_size)
    elif may_begin_with_base:
        request = replace(request, asked=Asked(text, model, training))
    return replace(request, given=given, network=network, tokenizer=tokenizer)


def _request_with(start: FoundModel, text: Fields, model: Fields, training: Fields) -> Request:
    """A training that begins with a model."""
    return Request(
        TextConfig(**text),
        as_lesson(TrainConfig(**training)),
        given=gather_given(text, model, training, start),
        start=start,
        tokenizer=start.tokenizer,
    )


def _check_own_parts(
    text: Fields, model: Fields, *, has_network: bool, has_tokenizer: bool
) -> None:
    """Refuse settings of a network or a tokenizer that was given."""
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
