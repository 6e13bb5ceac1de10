"""What a plan is made around: the settings that were given, and those of a model to start from."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeVar

from ..config import GPTConfig, TrainConfig, check_fields, check_given
from ..runs.found import FoundModel
from ..tokenizer import CharacterTokenizer, tiktoken_tokenizer

Value = TypeVar("Value")

# Fields of a model to start from that are planned anew; for a run by recipe/tuning.py. Other
# models have far longer contexts than two cores can train on, and GPT-2's dropout of attention
# weights doubles the time of a step there.
_PLANNED_FOR_RUNS = {"context_length", "dropout"}
_PLANNED_FOR_OTHERS = {"context_length", "attention_dropout"}


@dataclass(frozen=True)
class Given:
    """Settings that matter to a plan, under the names that they have in TextConfig, GPTConfig and
    TrainConfig.

    None: not given, so that the plan chooses, or does without. What no plan chooses has its usual
    value where it was not given.
    """

    # The text
    tokenizer: str = "bpe"
    vocab_size: int | None = None
    max_characters: int | None = None
    init: str | None = None
    start: GPTConfig | None = None  # of the model that `init` names

    # The model
    emb_dim: int | None = None
    num_layers: int | None = None
    num_heads: int | None = None
    context_length: int | None = None
    dropout: float | None = None
    attention_dropout: float = GPTConfig.attention_dropout
    tie_embeddings: bool | None = None
    others: Mapping[str, Any] = field(default_factory=dict)  # given fields of GPTConfig

    # The training
    minutes: float = TrainConfig.minutes
    steps: int | None = None
    lesson: bool = TrainConfig.lesson
    max_epochs: float | None = None
    token_split_prob: float | None = None
    warmup_context: int | None = None
    batch_size: int | None = None
    num_workers: int | None = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    interpolate: bool | None = None
    num_evals: int | None = None
    eval_tokens: int = TrainConfig.eval_tokens
    compile: str = TrainConfig.compile

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "Given":
        """From fields of the three configs; those that do not matter to a plan are left out."""
        names = {f.name for f in fields(cls)}
        other_names = {f.name for f in fields(GPTConfig)} - names
        known = {name: value for name, value in settings.items() if name in names}
        others = {name: value for name, value in settings.items() if name in other_names}
        return cls(**known, others=others)


def gather_given(
    text: Mapping[str, Any],
    model: Mapping[str, Any],
    training: Mapping[str, Any],
    start: FoundModel | None = None,
) -> Given:
    """All that a plan cannot change: the given fields of the three configs, and what comes with a
    model to start from.

    UserError if a setting has a wrong value or would do nothing beside the others.
    """
    check_fields(GPTConfig, model)
    given = {**text, **model, **training}
    if start is None:
        check_given(given)
        tokenizer = given.get("tokenizer", Given.tokenizer)
        if tokenizer not in ("bpe", "char"):  # it brings its tokens
            given["vocab_size"] = tiktoken_tokenizer(tokenizer).vocab_size
        return Given.of(given)

    config = start.glass.config
    brought = asdict(config)
    if isinstance(start.tokenizer, CharacterTokenizer):
        brought["tokenizer"] = "char"
    planned_anew = _PLANNED_FOR_RUNS if start.is_run else _PLANNED_FOR_OTHERS
    for name in planned_anew - model.keys():
        del brought[name]
    check_given(given, brought)
    return Given.of({**text, **brought, **training, "start": config})


def either(given: Value | None, planned: Value) -> Value:
    """What is given, if it is, else what is planned."""
    return planned if given is None else given
