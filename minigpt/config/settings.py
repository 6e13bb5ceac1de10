"""The settings of a text, a training, a sample and an evaluation, and which of them contradict each
other."""

import dataclasses
import importlib.util
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from .. import UserError
from ..system.platforms import how_to_install
from .checked import (
    ANY_SEED,
    Checked,
    Count,
    Factor,
    Fraction,
    Kept,
    Natural,
    Penalty,
    Positive,
    Probability,
    Samples,
    Seed,
    SeedOrAny,
    Share,
    Temperature,
    TopP,
    VocabSize,
    is_utf8,
    require,
    setting,
)
from .network import PRESETS, GPTConfig
from .reading import ReadingConfig

# What is planned from the text, the machine and the minutes unless it is given.
PLANNED = (
    "vocab_size", "context_length", "emb_dim", "num_layers", "num_heads", "dropout", "batch_size",
    "max_epochs", "token_split_prob", "learning_rate", "weight_decay", "interpolate",
    "warmup_context", "num_evals", "num_workers", "tie_embeddings",
)  # fmt: skip


# Of these, what comes with the model if a training begins with one.
SHAPE = ("vocab_size", "emb_dim", "num_layers", "num_heads", "tie_embeddings")
SMALLEST_VOCABULARY = 320  # tokens of a bpe that is planned
FROM_NOTHING = "none"  # for `init`
EARLY = 0.8  # of a training, in which tokens are split and the context is shorter


@dataclass(frozen=True)
class TextConfig(ReadingConfig):
    """Which text a model learns from, how it becomes tokens, and how their embeddings start."""

    files: tuple[str, ...] = setting(
        ("data/tales.txt",),
        "files of text, Word, EPUB, PDF, HTML and more (docs/documents.md), folders, patterns "
        "('a/*.txt'), or - for standard input",
        "FILE",
    )
    validation: tuple[str, ...] = setting(
        (), "text to validate on, instead of a part of the text; repeatable", "FILE"
    )
    validation_fraction: Fraction = setting(
        0.1, "share of the text that is set aside to validate on"
    )
    split: Literal["documents", "end"] = setting(
        "documents", "set aside whole documents, or the end of the text"
    )
    max_characters: Count | None = setting(
        None, "use this many characters of a longer text, from all over it"
    )
    only: str | None = setting(
        None, "of conversations, learn to say what this speaker says; the others are only read"
    )
    tokenizer: str = setting(
        "bpe", "bpe (learned from the text), char, or one of tiktoken's, as gpt2"
    )
    vocab_size: VocabSize | None = setting(None, "number of tokens in the bpe vocabulary")
    embedding_init: Literal["text", "random"] = setting(
        "text", "start the token embeddings from counts of the text, or at random"
    )
    init: str | None = setting(
        None,
        "begin with this run, base, a model such as hf:gpt2, or none (default: base or none, "
        "whichever should end lower)",
    )

    def _check(self) -> None:
        super()._check()
        require(self, "files", len(self.files) > 0, "at least one file")


@dataclass(frozen=True)
class TrainConfig(Checked):
    """How a model is trained."""

    minutes: Positive = setting(5.0, "how long the whole command may take")
    steps: Count | None = setting(None, "train this many steps, however long they take")
    lesson: bool = setting(
        False, "the same steps and losses on every laptop, begun from nothing (docs/training.md)"
    )
    max_epochs: Positive | None = setting(None, "end when the text has been read this many times")
    token_split_prob: Share = setting(
        0.0, "share of the tokens that are split in two, until the last fifth"
    )
    warmup_context: Count | None = setting(
        None, "shorter context to train with, until the last fifth"
    )
    batch_size: Count = setting(8, "sequences in a training step")
    micro_batch_size: Count | None = setting(
        None, "sequences computed at once, to save memory; all if unset"
    )
    num_workers: Count | None = setting(None, "threads that share each batch on a CPU")
    optimizer: Literal["adamw", "muon"] = setting(
        "muon", "muon: Muon for the matrices, AdamW for the rest"
    )
    learning_rate: Positive = setting(4e-3, "peak learning rate")
    min_lr_ratio: Share = setting(0.02, "last learning rate, as a share of the peak")
    warmup_ratio: Share = setting(0.02, "share of the training in which the learning rate rises")
    weight_decay: Share = setting(0.1, "decoupled weight decay of the matrices")
    interpolate: bool = setting(
        False,
        "end between the weights of --init and the trained ones, where the loss is lowest",
    )
    momentum: Probability = setting(0.9, "how long Muon remembers gradients")
    beta1: Probability = setting(0.9, "how long AdamW remembers gradients")
    beta2: Probability = setting(0.99, "how long AdamW remembers squared gradients")
    grad_clip: Positive = setting(1.0, "largest norm of the gradient; a larger one is scaled down")
    num_evals: Count = setting(10, "how many times to evaluate, the last one included")
    checkpoint_seconds: Positive = setting(
        30.0, "about this many seconds from one checkpoint to the next"
    )
    keep: Kept | None = setting(
        None, "keep the weights of this many steps, from step 0 to the last: runs/my@0, ..."
    )
    eval_tokens: Count = setting(131_072, "evaluate on at most this many tokens")
    sample_prompt: str = setting("", "how each sample of the training begins", "TEXT")
    seed: Seed = setting(0, "the same seed draws the same batches and initial weights")
    device: str = setting(
        "auto", "where to compute: auto (the fastest that is right), cpu, cuda, cuda:1 or mps"
    )
    precision: Literal["auto", "float32", "bfloat16", "float16"] = setting(
        "auto", "of matrix products; auto: whichever is fastest"
    )
    compile: Literal["auto", "on", "off"] = setting(
        "auto", "compile with torch.compile; auto: on CUDA, from 10 minutes or 5,000 steps on"
    )
    log: Literal["tensorboard", "wandb"] | None = setting(
        None, "also log the figures to this program"
    )

    def _check(self) -> None:
        require(self, "sample_prompt", is_utf8(self.sample_prompt), "text in UTF-8")


@dataclass(frozen=True)
class SampleConfig(Checked):
    """How a text is generated."""

    max_new_tokens: Natural = setting(300, "how many tokens to write at most")
    temperature: Temperature = setting(
        0.8, "below 1 favours likely tokens, above 1 evens them out; 0: always the likeliest"
    )
    top_k: Count | None = setting(None, "choose only among this many of the likeliest tokens")
    top_p: TopP | None = setting(
        None, "choose only among the likeliest tokens that together have this probability"
    )
    min_p: Share | None = setting(
        None, "leave out tokens less likely than this share of the likeliest one's probability"
    )
    repetition_penalty: Factor = setting(
        1.0, "above 1, such as 1.1, avoids tokens that the prompt or the text already has"
    )
    presence_penalty: Penalty = setting(
        0.0, "subtracted from the logit of a token that has been written"
    )
    frequency_penalty: Penalty = setting(
        0.0, "subtracted from a token's logit each time that it was written"
    )
    stop: tuple[str, ...] = setting((), r"end before this text (\n: new line); repeatable", "TEXT")
    whole_sentences: bool = setting(
        False, "go on to the end of the sentence, for at most 200 tokens more"
    )
    samples: Samples = setting(1, "number of continuations, written side by side")
    seed: SeedOrAny | None = setting(
        None, "the same seed writes the same text; random if unset or -1"
    )

    def _check(self) -> None:
        if self.seed == ANY_SEED:
            object.__setattr__(self, "seed", None)
        is_right = all(text and is_utf8(text) for text in self.stop)
        require(self, "stop", is_right, "texts, none empty")


@dataclass(frozen=True)
class InferenceConfig(Checked):
    """How a trained model is run."""

    device: str = setting("auto", "where to compute: auto, cpu, cuda, cuda:1 or mps")
    precision: Literal["float32", "bfloat16"] = setting("float32", "bfloat16 is faster on a GPU")


@dataclass(frozen=True)
class EvaluationConfig(ReadingConfig):
    """How to measure how well a model predicts a text."""

    stride: Count | None = setting(
        None, "tokens from one window to the next; below the context length, windows overlap"
    )
    batch_size: Count = setting(16, "windows computed at once; fewer need less memory")
    device: str = setting("auto", "where to compute: auto, cpu, cuda, cuda:1 or mps")


# In each row a setting, another one that can leave it without effect, and for which values of the
# other this is so.
_USELESS: tuple[tuple[str, str, Callable[[Any], bool]], ...] = (
    ("minutes", "steps", lambda steps: steps is not None),
    ("max_epochs", "steps", lambda steps: steps is not None),
    ("steps", "lesson", bool),
    ("num_workers", "lesson", bool),
    ("device", "lesson", bool),
    ("precision", "lesson", bool),
    ("compile", "lesson", bool),
    ("seed", "lesson", bool),
    ("vocab_size", "tokenizer", lambda tokenizer: tokenizer != "bpe"),
    ("token_split_prob", "tokenizer", lambda tokenizer: tokenizer == "char"),
    ("validation_fraction", "validation", lambda validation: len(validation) > 0),
    ("momentum", "optimizer", lambda optimizer: optimizer == "adamw"),
    ("rotary_base", "positions", lambda positions: positions == "learned"),
    ("num_workers", "attention_dropout", lambda dropout: dropout > 0),
    ("num_workers", "compile", lambda compile: compile == "on"),
    ("rename", "plain", bool),
    ("anonymous", "plain", bool),
    ("silence", "plain", bool),
    ("only", "plain", bool),
    ("token_split_prob", "only", lambda only: only is not None),
    # Of other commands:
    ("json", "interactive", bool),
    ("show", "interactive", bool),
    ("samples", "interactive", bool),
    ("min_words", "interactive", bool),
    ("show", "json", bool),
    ("min_words", "json", bool),
    ("min_words", "show", bool),
    ("wrap", "json", bool),
    ("wrap", "show", bool),
    ("samples", "min_words", bool),
    ("json", "delete", bool),
    ("stride", "copied", bool),
    ("batch_size", "copied", bool),
)
# Values that ask for nothing; of every setting, False does so too.
_ASKS_FOR_NOTHING = {"token_split_prob": 0, "num_workers": 1, "samples": 1, "min_words": 0}


def check_given(given: Mapping[str, Any], known: Mapping[str, Any] | None = None) -> None:
    """Refuse settings that were given and would be ignored beside others.

    `given` holds fields of configs and other options of a command; None and () mean that a setting
    was not given. `known` holds values of settings that were not given, where these differ from the
    defaults.
    """
    wanted = {name: value for name, value in given.items() if value not in (None, (), [])}
    defaults = {
        field.name: field.default
        for config in (GPTConfig, TextConfig, TrainConfig)
        for field in dataclasses.fields(config)
    }
    values = {**defaults, **(known or {}), **wanted}
    parts = PRESETS.get(str(values["architecture"]), {})  # an unknown one is refused elsewhere
    values |= {part: usual for part, usual in parts.items() if values[part] is None}

    for name, other, is_useless in _USELESS:
        asked = wanted.get(name, False)
        asks_for_nothing = asked is False or asked == _ASKS_FOR_NOTHING.get(name)
        if not asks_for_nothing and other in values and is_useless(values[other]):
            # A part that was not given comes from the architecture.
            cause = "architecture" if other in parts and other not in wanted else other
            beside = _option(cause)
            value = values[cause]
            if isinstance(value, str | int | float) and not isinstance(value, bool):
                beside += f" {value}"
            remedy = "leave one of them out" if cause in wanted else "leave it out"
            raise UserError(
                f"{_option(name)} does nothing beside {beside}; {remedy}", kind="setting"
            )

    check_log(wanted.get("log"))
    shorter = wanted.get("warmup_context", 0)
    longer = {**(known or {}), **wanted}.get("context_length", math.inf)
    if shorter > longer:
        raise UserError(
            f"--warmup-context {shorter} is longer than --context-length {longer}",
            kind="setting",
        )


def check_interpolation(interpolate: bool | None, init: str | None) -> None:
    """Refuse to interpolate between random weights and trained ones."""
    if interpolate and init is None:
        raise UserError(
            "--interpolate is for a training that begins with a model; name it by --init",
            kind="setting",
        )


def check_log(name: str | None) -> None:
    """Refuse to log to a program whose package is not installed."""
    if name is not None and importlib.util.find_spec(name) is None:
        raise UserError(f"--log {name} needs a package: {how_to_install(name)}", kind="setting")


def _option(field: str) -> str:
    return f"--{field.replace('_', '-')}"


def cache_folder() -> Path:
    """Where token files are kept: $MINIGPT_CACHE, or minigpt in the user's cache folder."""
    if chosen := os.environ.get("MINIGPT_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "minigpt"


def counted(number: int, noun: str) -> str:
    """1 step, 2 steps."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
