"""The dial: what to train on a text, on this machine, in the minutes that are given.

`plan` is a pure function of the text, the machine and the settings, of which those that are given
always win. Each choice follows a rule of rules.py; here they are put in order, since one needs what
another found. choose_plan.py measures the text and the machine, and chooses among plans.
"""

import json
import math
from dataclasses import asdict, dataclass, replace
from functools import cached_property

from .. import UserError
from ..config import GPTConfig, Setting, Settings, TrainConfig
from ..data.batches import Dataset
from ..model import flops_per_token
from ..training.messages import duration
from . import rules
from .forecast import expected_after_tokens, is_like_those_tried
from .machine import Machine
from .size_and_batch import choose_draft, count_steps, used_by
from .text_stats import TextStats
from .tuning import tuned

_SHARE_OF_EVALUATIONS = 0.05  # of all minutes, at most
_SHORT_STEP = 60  # seconds; a training whose steps take no longer is never refused
_STEPS_WORTHWHILE = 100  # the minutes that are proposed suffice for so many steps


@dataclass(frozen=True)
class Planned:
    """All settings of a training, what to expect of it, and what it was planned from."""

    settings: Settings
    asked: Settings  # those that the plan was made around
    start: GPTConfig | None  # of the model that the training begins with
    text: TextStats
    machine: Machine

    # What to expect, roughly
    tokens: int  # of the training text
    epochs: float  # how often it is read
    trained_tokens: int  # in all steps together
    steps: int  # that fit into the time or the epochs
    seconds: float  # that these take
    ends_early: bool  # whether the epochs are over before the time is
    # On the validation text at the end; None if the training begins with a model whose loss on this
    # text is not known, or if no text like this was tried
    bits_per_byte: float | None

    # Bits per byte to expect, where there was a choice of what to begin with
    from_nothing: float | None = None
    with_base: float | None = None
    why_device: str = ""  # where there was a choice of the device: a line
    held_out: tuple[str, ...] = ()  # what is validated on, a name for each file of it

    @property
    def init(self) -> str | None:
        """The model that the training begins with; None: nothing."""
        init: str | None = self.settings["init"]
        return init

    @cached_property
    def model(self) -> GPTConfig:
        """The network."""
        return self.settings.network

    def with_tokens(self, dataset: Dataset) -> "Planned":
        """The plan fitted to the tokens of the text, whose number it had to guess: all is planned
        anew but the vocabulary, and what the text and the device are."""
        vocab_size = dataset.tokenizer.vocab_size
        vocabulary = self.settings.said["vocab_size"]
        if vocab_size != vocabulary.value:
            vocabulary = Setting(vocab_size, "planned", ", as many as the text gives")
        most = self.settings.said["max_characters"]
        made = {"vocab_size": vocabulary, "max_characters": most}
        asked = Settings({**self.asked.said, **made})

        size = self.text.size
        if most.value is not None:  # only so much of the text has become tokens
            size = min(size, round(most.value * self.text.bytes_per_character))
        text = replace(self.text, bytes_per_token=size / len(dataset.train))
        fitted = plan(text, self.machine.rounded(), asked, self.start, forecast_by=self.machine)
        return replace(
            fitted,
            from_nothing=self.from_nothing,
            with_base=self.with_base,
            why_device=self.why_device,
            held_out=self.held_out,
        ).checked()

    def checked(self) -> "Planned":
        """The plan, as it is told: without losses to expect if the forecast was not tried on texts
        like this, or if the words of one speaker alone are learned. Such losses are good enough to
        choose by, but not to be shown.

        UserError if the warm-up context is too long.
        """
        shorter = self.settings["warmup_context"]
        longer = self.settings["context_length"]
        if shorter > longer:
            raise UserError(
                f"--warmup-context {shorter} is longer than the context that is planned, "
                f"{longer}; leave it out, or name a --context-length too",
                kind="setting",
            )
        is_of_all_speakers = self.settings["only"] is None
        if is_of_all_speakers and is_like_those_tried(self.text.predictability, self.text.size):
            return self
        return replace(self, bits_per_byte=None, from_nothing=None, with_base=None)

    def to_json(self, reasons: list[str]) -> str:
        """The text of plan.json, with the lines that tell of the plan."""
        settings = {name: setting._asdict() for name, setting in self.settings.said.items()}
        content = {
            "init": self.init,
            "device": self.settings["device"],
            "precision": self.settings["precision"],
            "settings": settings,
            "text": asdict(self.text),
            "speed": self.machine.speed and asdict(self.machine.speed),
            "tokens": self.tokens,
            "steps": self.steps,
            "seconds": self.seconds,
            "ends_early": self.ends_early,
            "bits_per_byte": self.bits_per_byte,
            "from_nothing": self.from_nothing,
            "with_base": self.with_base,
            "held_out": self.held_out,
            "reasons": reasons,
        }
        return json.dumps(content, indent=2) + "\n"


def plan(
    text: TextStats,
    machine: Machine,
    settings: Settings,
    start: GPTConfig | None = None,
    *,
    forecast_by: Machine | None = None,
) -> Planned:
    """All settings, around those that are not open: those of the largest model for which both the
    time and the text suffice, or for the model to begin with, whose config is `start`.

    `machine` decides the settings. The forecast is for `forecast_by`, if given.
    """
    asked = settings
    if text.loss_before is not None and start is not None:
        settings = tuned(settings, text, start)  # what this plans, nothing below plans again

    longest = None if start is None else start.context_length
    draft = choose_draft(text, machine, settings, longest)
    settings = _regularised(draft.settings, draft.epochs, text, start)

    model = settings.network
    used = used_by(settings, machine)
    is_pretrained = settings["init"] is not None
    bytes_to_read = draft.trained_tokens * rules.bytes_per_token(text, model.vocab_size)
    settings = settings.planned(
        learning_rate=rules.plan_learning_rate(model.emb_dim, is_pretrained, draft.filling),
        interpolate=is_pretrained,
        warmup_context=rules.plan_warmup_context(model, is_pretrained),
        num_evals=_plan_num_evals(text, model, used, settings),
        num_workers=min(machine.num_workers, settings["batch_size"]),
        max_characters=rules.plan_max_characters(text.size, bytes_to_read),
    )
    # Of what was asked for: "auto" stands for one of them.
    where = {"device": machine.device, "precision": machine.precision}
    settings = settings.with_values("planned", where)

    forecast_by = forecast_by or machine
    steps = count_steps(draft, forecast_by)
    if settings["lesson"]:  # it is as many steps long as the plan says, however long they take
        settings = settings.with_values("planned", {"steps": steps.number})

    draft = replace(draft, steps=steps)
    return Planned(
        settings,
        asked,
        start,
        text,
        forecast_by,
        tokens=draft.tokens,
        epochs=draft.epochs,
        trained_tokens=draft.trained_tokens,
        steps=steps.number,
        seconds=steps.seconds,
        ends_early=steps.ends_early,
        bits_per_byte=expected_after_tokens(draft.trained_tokens, text, model, settings["init"]),
    )


def _regularised(
    settings: Settings, epochs: float, text: TextStats, start: GPTConfig | None
) -> Settings:
    """The settings with what keeps a model from learning its text by heart. The more often a text
    is read, the more each is used: split tokens, dropout (at least that with which the model to
    begin with has learned), one table of embeddings for input and output, weight decay."""
    width = settings["emb_dim"]
    split_prob = rules.plan_token_split_prob(epochs, width, text.tokenizer)
    settings = settings.planned(token_split_prob=split_prob)

    is_helped = settings["token_split_prob"] > 0.0 or start is not None
    dropout = rules.plan_dropout(epochs, width, is_helped)
    if start is not None:
        dropout = max(dropout, start.dropout)
    is_tied = rules.plan_tied(epochs, settings.network)
    settings = settings.planned(dropout=dropout, tie_embeddings=is_tied)

    decay = rules.plan_weight_decay(epochs, width, settings["tie_embeddings"])
    return settings.planned(weight_decay=decay)


def _plan_num_evals(text: TextStats, model: GPTConfig, machine: Machine, settings: Settings) -> int:
    """The usual number of evaluations, or fewer (at least 4) so that they take at most 5% of the
    time. With a given number of steps, one for every ten of them, up to the usual number."""
    usual = TrainConfig.num_evals
    if settings["steps"] is not None:
        return rules.evals_in_steps(settings["steps"])

    tokens = text.validation / rules.bytes_per_token(text, model.vocab_size)
    operations = min(tokens, settings["eval_tokens"]) * flops_per_token(model, training=False)
    seconds = operations / machine.flops + 0.3  # for a sample and files
    fitting = _SHARE_OF_EVALUATIONS * 60 * settings["minutes"] / seconds
    return int(rules.clamped(fitting, 4, usual))


def has_time_for_a_step(planned: Planned) -> bool:
    """Whether a single step can be made. A step of less than a minute always can, however few the
    minutes, since a busy machine seems several times as slow as it is; and so can any step if their
    number is given."""
    if planned.asked["steps"] is not None:
        return True
    seconds_a_step = planned.seconds / planned.steps
    return seconds_a_step <= max(60 * planned.asked["minutes"], _SHORT_STEP)


def check_step(planned: Planned) -> None:
    """Refuse minutes in which not a single step can be made."""
    if not has_time_for_a_step(planned):
        seconds = 60 * planned.asked["minutes"]
        seconds_a_step = planned.seconds / planned.steps
        enough = math.ceil(_STEPS_WORTHWHILE * seconds_a_step / 60)
        raise UserError(
            f"{duration(seconds)} are too short: one step would take about "
            f"{duration(seconds_a_step)}; try a shorter --context-length, a smaller model or "
            f"--minutes {enough}",
            kind="too_few_minutes",
        )
