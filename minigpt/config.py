"""Every setting of a run: the model, its training, its text. Frozen dataclasses, saved as JSON.

The help text of a field is also that of its command line option. Values are checked once, when a
config is made; the code that receives a config trusts it. No torch, which takes long to load.
"""

import dataclasses
import functools
import math
import os
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

from . import UserError

Config = TypeVar("Config")

# What is planned from the text, the machine and the minutes unless it is given.
PLANNED = (
    "vocab_size", "context_length", "emb_dim", "num_layers", "num_heads", "dropout", "batch_size",
    "max_epochs", "token_split_prob", "learning_rate", "weight_decay", "warmup_context",
    "num_evals", "num_workers", "tie_embeddings",
)  # fmt: skip


class Limits(NamedTuple):
    """Which numbers a field takes, in words and as a test."""

    words: str
    hold: Callable[[float], bool]


Count = Annotated[int, Limits("at least 1", lambda n: n >= 1)]
Natural = Annotated[int, Limits("at least 0", lambda n: n >= 0)]
# No vocabulary or context in use is larger.
Size = Annotated[int, Limits("between 1 and 262,144", lambda n: 1 <= n <= 1 << 18)]
Seed = Annotated[int, Limits("between 0 and 2^63 - 1", lambda n: 0 <= n < 1 << 63)]
Positive = Annotated[float, Limits("above 0 and below 1e6", lambda x: 0 < x < 1e6)]
Share = Annotated[float, Limits("between 0 and 1", lambda x: 0 <= x <= 1)]
Fraction = Annotated[float, Limits("above 0 and below 1", lambda x: 0 < x < 1)]
Probability = Annotated[float, Limits("at least 0 and below 1", lambda x: 0 <= x < 1)]
Penalty = Annotated[float, Limits("between -1e3 and 1e3", lambda x: -1e3 <= x <= 1e3)]
VocabSize = Annotated[int, Limits("at least 257", lambda n: n >= 257)]
Samples = Annotated[int, Limits("between 1 and 4,096", lambda n: 1 <= n <= 4096)]
Temperature = Annotated[float, Limits("at least 0 and below 1e3", lambda x: 0 <= x < 1e3)]
TopP = Annotated[float, Limits("above 0 and at most 1", lambda x: 0 < x <= 1)]
Factor = Annotated[float, Limits("above 0 and below 1e3", lambda x: 0 < x < 1e3)]
Base = Annotated[float, Limits("above 1 and below 1e12", lambda x: 1 < x < 1e12)]

SMALLEST_VOCABULARY = 320  # tokens of a bpe that is planned
_LARGEST_TABLE = 1 << 24  # numbers, of rotary positions
_WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def setting(default: Any, help: str, repeated: str = "") -> Any:
    """A field; `repeated` is what the help calls one value of an option that is given again."""
    return dataclasses.field(default=default, metadata={"help": help, "repeated": repeated})


class Checked:
    """A dataclass that checks its fields; a UserError names the one that is wrong."""

    def __post_init__(self) -> None:
        check_fields(type(self), vars(self))
        self._check()

    def _check(self) -> None:
        """Raise a UserError if fields do not fit together."""


@dataclass(frozen=True)
class TextConfig(Checked):
    """Which text a model learns from, how it becomes tokens, and how their embeddings start."""

    files: tuple[str, ...] = setting(
        ("data/tales.txt",), "text files, folders, patterns ('a/*.txt'), or - for stdin", "FILE"
    )
    validation: tuple[str, ...] = setting((), "text to validate on; may be given again", "FILE")
    validation_fraction: Fraction = setting(0.1, "share of the text set aside to validate on")
    split: Literal["documents", "end"] = setting("documents", "validate on documents or on the end")
    max_characters: Count | None = setting(None, "of a longer text use this many, from all over it")
    text_field: str = setting("text", "the field of .jsonl files that holds the text")
    tokenizer: str = setting("bpe", "bpe (learned from the text), char, or tiktoken's, as gpt2")
    vocab_size: VocabSize | None = setting(None, "tokens in a bpe vocabulary")
    embedding_init: Literal["text", "random"] = setting("text", "where token embeddings come from")
    init: str | None = setting(None, "a run, or a model such as hf:gpt2, to train further")

    def _check(self) -> None:
        _require(self, "files", len(self.files) > 0, "at least one file")


# The architectures: the parts of models that other programs run by these names.
PRESETS: dict[str, dict[str, Any]] = {
    "qwen3": {
        "norm": "rms",
        "positions": "rotary",
        "qk_norm": True,
        "feed_forward": "swiglu",
        "bias": False,
    },
    "llama": {
        "norm": "rms",
        "positions": "rotary",
        "qk_norm": False,
        "feed_forward": "swiglu",
        "bias": False,
    },
    "gpt2": {
        "norm": "layer",
        "positions": "learned",
        "qk_norm": False,
        "feed_forward": "gelu",
        "bias": True,
    },
}
PARTS = tuple(PRESETS["qwen3"])  # their names


@dataclass(frozen=True)
class GPTConfig(Checked):
    """The shape of a model and the parts that it is made of.

    `architecture` is a preset of the parts: those that are left out (None) are filled in from it
    when the config is made. Any part may be given beside it.

    - ``qwen3``: RMSNorm, rotary positions, query/key norm, SwiGLU, no biases;
    - ``llama``: the same without query/key norm;
    - ``gpt2``: LayerNorm, learned positions, GELU, biases.
    """

    vocab_size: Size = setting(MISSING, "number of different tokens")
    architecture: Literal["qwen3", "llama", "gpt2"] = setting(
        "qwen3", "preset of norm, positions, qk-norm, feed-forward and bias"
    )
    context_length: Size = setting(256, "how many tokens back the model can look")
    emb_dim: Size = setting(128, "width: size of the vector that stands for a token")
    num_layers: Size = setting(4, "number of transformer blocks")
    num_heads: Size = setting(4, "attention heads in each block")
    num_kv_heads: Size | None = setting(None, "key/value heads, if fewer")
    head_dim: Size | None = setting(None, "size of a head; emb_dim / num_heads if unset")
    hidden_dim: Size | None = setting(
        None, "feed-forward width; 4 (gelu) or 8/3 (swiglu) times emb_dim if unset"
    )
    norm: Literal["rms", "layer"] = setting(None, "RMSNorm or LayerNorm")
    positions: Literal["rotary", "learned"] = setting(
        None, "rotary: turn queries and keys; learned: add a vector to each token's"
    )
    qk_norm: bool = setting(None, "RMSNorm of the queries and keys in each head")
    feed_forward: Literal["swiglu", "gelu"] = setting(
        None, "swiglu: W_out (silu(W_gate x) * W_in x); gelu: W_out gelu(W_in x)"
    )
    bias: bool = setting(None, "biases in the blocks' matrices and in LayerNorm")
    dropout: Probability = setting(0.0, "probability that training drops an activation")
    attention_dropout: Probability = setting(0.0, "probability that it drops an attention weight")
    tie_embeddings: bool = setting(True, "use the token embedding as the output layer too")
    rotary_base: Base = setting(10_000.0, "base of the rotary positions' wavelengths")
    norm_eps: Fraction = setting(1e-6, "epsilon of the normalisation layers")

    def __post_init__(self) -> None:
        # An unknown architecture is refused when the fields are checked.
        for part, usual in PRESETS.get(str(self.architecture), {}).items():
            if getattr(self, part) is None:
                object.__setattr__(self, part, usual)

        super().__post_init__()

    def _check(self) -> None:
        heads = self.num_heads
        must_be_even = self.positions == "rotary"  # two components of a head turn together
        if self.head_dim is None:
            divides = self.emb_dim % heads == 0
            _require(self, "emb_dim", divides, f"a multiple of num_heads ({heads})")
            fits = not must_be_even or self.head_size % 2 == 0
            _require(self, "emb_dim", fits, f"an even multiple of num_heads ({heads})")
        else:
            fits = not must_be_even or self.head_dim % 2 == 0
            _require(self, "head_dim", fits, "even")

        divides = heads % self.kv_heads == 0
        _require(self, "num_kv_heads", divides, f"a divisor of num_heads ({heads})")

        longest = _LARGEST_TABLE // self.head_size
        fits = self.context_length <= longest
        _require(self, "context_length", fits, f"at most {longest:,} for heads this wide")

    @property
    def head_size(self) -> int:
        """Size of one attention head, the default filled in."""
        return self.emb_dim // self.num_heads if self.head_dim is None else self.head_dim

    @property
    def kv_heads(self) -> int:
        """Number of key/value heads, the default filled in."""
        return self.num_heads if self.num_kv_heads is None else self.num_kv_heads

    @property
    def ff_dim(self) -> int:
        """Width inside the feed-forward, the default filled in."""
        if self.hidden_dim is not None:
            return self.hidden_dim
        if self.feed_forward == "gelu":
            return 4 * self.emb_dim
        return -(-8 * self.emb_dim // 3 // 32) * 32  # two thirds of 4x, rounded up to 32

    @property
    def preset(self) -> str | None:
        """The architecture that has exactly these parts; None if there is none."""
        parts = {part: getattr(self, part) for part in PARTS}
        return next((name for name, preset in PRESETS.items() if preset == parts), None)

    @property
    def kind(self) -> str:
        """What to call a model like this: its preset, or an architecture and what differs."""
        if self.preset is not None:
            return self.preset

        changes = []
        for part, usual in PRESETS[self.architecture].items():
            value = getattr(self, part)
            if value != usual:
                shown = {True: "on", False: "off"}.get(value, value)
                changes.append(f"{part.replace('_', '-')} {shown}")
        return f"{self.architecture} with {', '.join(changes)}"


GPT_NAME = "GPT"  # what a network is called that is exactly the `GPT` of model.py


def weight_shapes(config: GPTConfig) -> dict[str, tuple[int, ...]]:
    """The shape of each weight of a model by its name, in which # is the number of a block.

    This is the one table of them: the torch model has these parameters, runs and pages hold these
    tensors, and what a model counts and costs follows from it. A tied head is the token embedding.
    """
    c = config
    q_dim = c.num_heads * c.head_size
    kv_dim = c.kv_heads * c.head_size

    tables = {"token_embedding": (c.vocab_size, c.emb_dim)}
    if c.positions == "learned":
        tables["position_embedding"] = (c.context_length, c.emb_dim)
    if not c.tie_embeddings:
        tables["head"] = (c.vocab_size, c.emb_dim)

    matrices = {  # (out, in)
        "blocks.#.attention.W_query": (q_dim, c.emb_dim),
        "blocks.#.attention.W_key": (kv_dim, c.emb_dim),
        "blocks.#.attention.W_value": (kv_dim, c.emb_dim),
        "blocks.#.attention.out_proj": (c.emb_dim, q_dim),
        "blocks.#.feed_forward.W_in": (c.ff_dim, c.emb_dim),
        "blocks.#.feed_forward.out_proj": (c.emb_dim, c.ff_dim),
    }
    if c.feed_forward == "swiglu":
        matrices["blocks.#.feed_forward.W_gate"] = (c.ff_dim, c.emb_dim)

    norms = {
        "blocks.#.attention_norm": (c.emb_dim,),
        "blocks.#.feed_forward_norm": (c.emb_dim,),
        "final_norm": (c.emb_dim,),
    }
    head_norms = {}
    if c.qk_norm:
        head_norms["blocks.#.attention.query_norm"] = (c.head_size,)
        head_norms["blocks.#.attention.key_norm"] = (c.head_size,)

    biased: dict[str, tuple[int, ...]] = {}
    if c.bias:
        biased |= matrices
    if c.bias and c.norm == "layer":
        biased |= norms

    modules: dict[str, tuple[int, ...]] = {**tables, **matrices, **norms, **head_norms}
    weights = {f"{name}.weight": shape for name, shape in modules.items()}
    biases = {f"{name}.bias": shape[:1] for name, shape in biased.items()}
    return weights | biases


def named_shapes(config: GPTConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The name and the shape of every weight, those of a block once for each block."""
    for pattern, shape in weight_shapes(config).items():
        for i in range(config.num_layers if "#" in pattern else 1):
            yield pattern.replace("#", str(i)), shape


def count_parameters(config: GPTConfig) -> int:
    """How many parameters a model has."""
    return sum(
        math.prod(shape) * (config.num_layers if "#" in name else 1)
        for name, shape in weight_shapes(config).items()
    )


@dataclass(frozen=True)
class TrainConfig(Checked):
    """How a model is trained."""

    minutes: Positive = setting(5.0, "how long the whole command may take")
    steps: Count | None = setting(None, "train this many steps instead, however long they take")
    max_epochs: Positive | None = setting(None, "end after reading the text this often")
    token_split_prob: Share = setting(0.0, "share of tokens split in two, until near the end")
    warmup_context: Count | None = setting(None, "shorter context until near the end")
    batch_size: Count = setting(8, "sequences in a training step")
    micro_batch_size: Count | None = setting(None, "how many at once, to save memory; all if unset")
    num_workers: Count | None = setting(None, "threads that share each batch on a CPU")
    optimizer: Literal["adamw", "muon"] = setting("muon", "muon: for matrices, AdamW for the rest")
    learning_rate: Positive = setting(4e-3, "peak learning rate")
    min_lr_ratio: Share = setting(0.02, "last learning rate, as a share of the peak")
    warmup_ratio: Share = setting(0.02, "share of the training in which the learning rate rises")
    weight_decay: Share = setting(0.1, "decoupled weight decay of the matrices")
    momentum: Probability = setting(0.9, "how long Muon remembers gradients")
    beta1: Probability = setting(0.9, "how long AdamW remembers gradients")
    beta2: Probability = setting(0.99, "how long AdamW remembers squared gradients")
    grad_clip: Positive = setting(1.0, "largest norm of the gradient")
    num_evals: Count = setting(10, "how many times to evaluate, the last one included")
    checkpoint_seconds: Positive = setting(30.0, "save a checkpoint about this often")
    eval_tokens: Count = setting(131_072, "evaluate on at most this many tokens")
    seed: Seed = setting(0, "the same seed draws the same batches and initial weights")
    device: str = setting("auto", "auto, cpu, cuda, cuda:1 or mps")
    precision: Literal["auto", "float32", "bfloat16"] = setting("auto", "auto: whichever is faster")
    compile: Literal["auto", "on", "off"] = setting("auto", "by torch.compile; auto: on a GPU")
    log: Literal["tensorboard", "wandb"] | None = setting(None, "also log figures to this program")


@dataclass(frozen=True)
class SampleConfig(Checked):
    """How a text is generated."""

    max_new_tokens: Natural = setting(300, "how many tokens to write at most")
    temperature: Temperature = setting(0.8, "below 1 safer, above 1 bolder; 0: the likeliest token")
    top_k: Count | None = setting(None, "choose among this many likeliest tokens only")
    top_p: TopP | None = setting(None, "choose among the fewest tokens together this probable")
    min_p: Share | None = setting(None, "leave out tokens less likely than this times the best")
    repetition_penalty: Factor = setting(1.0, "1.1 avoids tokens of prompt and text so far")
    presence_penalty: Penalty = setting(0.0, "subtracted from a token's logit once written")
    frequency_penalty: Penalty = setting(0.0, "subtracted each time it was written")
    stop: tuple[str, ...] = setting((), r"end before this text (\n: new line); repeatable", "TEXT")
    whole_sentences: bool = setting(
        False, "then go on until the sentence ends, for at most 200 tokens more"
    )
    samples: Samples = setting(1, "how many continuations to write, side by side")
    seed: Seed | None = setting(None, "the same seed writes the same text; random if unset")

    def _check(self) -> None:
        # Half a surrogate pair, from bytes that are not UTF-8, cannot be encoded.
        whole = not any("\ud800" <= c <= "\udfff" for text in self.stop for c in text)
        _require(self, "stop", whole and all(self.stop), "texts, none empty")


@dataclass(frozen=True)
class InferenceConfig(Checked):
    """How a trained model is run."""

    device: str = setting("auto", "auto, cpu, cuda, cuda:1 or mps")
    precision: Literal["float32", "bfloat16"] = setting("float32", "bfloat16: faster on a GPU")


@dataclass(frozen=True)
class EvaluationConfig(Checked):
    """How to measure how well a model predicts a text."""

    text_field: str = setting("text", "the field of .jsonl files that holds the text")
    stride: Count | None = setting(
        None, "tokens from one window to the next; fewer than the context: windows overlap"
    )
    batch_size: Count = setting(16, "windows computed at once; fewer take less memory")
    device: str = setting("auto", "auto, cpu, cuda, cuda:1 or mps")


def from_dict(cls: type[Config], data: Any) -> Config:
    """A dataclass from JSON values; UserError if a field is unknown, missing or of another type."""
    if not isinstance(data, dict):
        raise UserError(f"{cls.__name__}: expected an object, got {type(data).__name__}")
    check_fields(cls, data)
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        if field.default is MISSING and field.name not in data:
            raise UserError(f"{cls.__name__}: {field.name} is missing")
    return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in data.items()})


def check_fields(cls: type, values: Mapping[str, Any]) -> None:
    """Refuse a value of another type than its field of a config, or out of its range."""
    hints = _type_hints(cls)
    for name, value in values.items():
        if name not in hints:
            raise UserError(f"{cls.__name__}: unknown field {name!r}")
        if (expected := _problem(value, hints[name])) is not None:
            raise UserError(f"{name} must be {expected}, got {value!r}")


@functools.cache  # it takes longer than the check itself; a server checks every request
def _type_hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls, include_extras=True)


# A setting, one beside which it would do nothing, and for which values of that.
_USELESS: tuple[tuple[str, str, Callable[[Any], bool]], ...] = (
    ("minutes", "steps", lambda steps: steps is not None),
    ("max_epochs", "steps", lambda steps: steps is not None),
    ("vocab_size", "tokenizer", lambda tokenizer: tokenizer != "bpe"),
    ("token_split_prob", "tokenizer", lambda tokenizer: tokenizer == "char"),
    ("validation_fraction", "validation", lambda validation: len(validation) > 0),
    ("momentum", "optimizer", lambda optimizer: optimizer == "adamw"),
    ("rotary_base", "positions", lambda positions: positions == "learned"),
    ("num_workers", "attention_dropout", lambda dropout: dropout > 0),
    ("num_workers", "compile", lambda compile: compile == "on"),
)
_ASKS_FOR_NOTHING = {"token_split_prob": 0, "num_workers": 1}


def check_given(given: Mapping[str, Any], known: Mapping[str, Any] | None = None) -> None:
    """Refuse settings of a training that were given and would be ignored beside others.

    `given` holds fields of TextConfig, GPTConfig and TrainConfig, where None and () are as good as
    not given; `known` what others are that were not, if not their defaults.
    """
    wanted = {name: value for name, value in given.items() if value not in (None, ())}
    defaults = {
        field.name: field.default
        for config in (GPTConfig, TextConfig, TrainConfig)
        for field in dataclasses.fields(config)
    }
    values = {**defaults, **(known or {}), **wanted}
    parts = PRESETS.get(str(values["architecture"]), {})  # an unknown one is refused elsewhere
    values |= {part: usual for part, usual in parts.items() if values[part] is None}

    for name, other, is_useless in _USELESS:
        is_wanted = name in wanted and wanted[name] != _ASKS_FOR_NOTHING.get(name)
        if is_wanted and is_useless(values[other]):
            # A part that was not given comes from the architecture.
            cause = "architecture" if other in parts and other not in wanted else other
            shown = values[cause] if isinstance(values[cause], str | int | float) else ""
            beside = f"{_option(cause)} {shown}".rstrip()
            remedy = "leave one of them out" if cause in wanted else "leave it out"
            raise UserError(f"{_option(name)} does nothing beside {beside}; {remedy}")

    shorter = wanted.get("warmup_context", 0)
    longer = wanted.get("context_length", math.inf)
    if shorter > longer:
        raise UserError(f"--warmup-context {shorter} is longer than --context-length {longer}")


def _option(field: str) -> str:
    return f"--{field.replace('_', '-')}"


def _problem(value: Any, hint: Any) -> str | None:
    """What a value must be to be of type `hint`; None if it is. True is no number, 1 is a float."""
    kind, inner = get_origin(hint), get_args(hint)
    if kind is Annotated:
        base, limits = inner
        return _problem(value, base) or (None if limits.hold(value) else limits.words)
    if kind in (Union, UnionType):  # with None
        return None if value is None else _problem(value, inner[0])
    if kind is Literal:
        return None if value in inner else "one of " + ", ".join(inner)
    if kind is tuple:
        if not isinstance(value, list | tuple):
            return "a list"
        problem = next(filter(None, (_problem(item, inner[0]) for item in value)), None)
        return problem and f"a list, each item {problem}"
    right = isinstance(value, int | float if hint is float else hint)
    return None if right and isinstance(value, bool) == (hint is bool) else _WORDS[hint]


def _require(config: Any, name: str, holds: bool, expected: str) -> None:
    if not holds:
        raise UserError(f"{name} must be {expected}, got {getattr(config, name)}")


def cache_folder() -> Path:
    """Where token files are kept: $MINIGPT_CACHE, or minigpt in the user's cache folder."""
    if chosen := os.environ.get("MINIGPT_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "minigpt"


def counted(number: int, noun: str) -> str:
    """1 step, 2 steps."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
