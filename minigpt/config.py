"""Every setting of a run: the model, its training, its text. Frozen dataclasses, saved as JSON.

The help text of a field is the help text of the command line option of the same name.
Values are checked once, here; the code that receives a config trusts it. Imports no torch, so
that the command line can answer before torch is loaded.
"""

import dataclasses
import os
import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from . import UserError

Config = TypeVar("Config")

# What is worked out from the text, the machine and the minutes where it is not given.
PLANNED = (
    "vocab_size", "context_length", "emb_dim", "num_layers", "num_heads", "dropout", "batch_size",
    "max_epochs", "token_split_prob", "warmup_context", "num_evals",
)  # fmt: skip

_LARGEST_TABLE = 1 << 24  # numbers
_LARGEST = 1 << 18  # of any size in a model: no vocabulary or context in use is larger


def setting(default: Any, help: str, *, repeated: str = "") -> Any:
    """A field with its default value and the help text of its option.

    Args:
        default: its value unless given.
        help: what --help says of it.
        repeated: for a field of several values: what each is called where the option is given
            once for each.
    """
    return field(default=default, metadata={"help": help, "repeated": repeated})


class _Checked:
    """A dataclass whose fields are checked when it is made: their types, then their values."""

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for name, hint in hints.items():
            value = getattr(self, name)
            if not _is_a(value, hint):
                raise UserError(f"{name} must be {_described(hint)}, got {value!r}")
        self._check()

    def _check(self) -> None:
        """Raise UserError, naming the field, if a value is out of range."""


@dataclass(frozen=True)
class TextConfig(_Checked):
    """Which text a model learns from, how it becomes tokens, and what these start as.

    Raises:
        UserError: naming the field, its value and what it may be.
    """

    files: tuple[str, ...] = setting(
        ("data/fables.txt",),
        "text files, folders, patterns such as 'texts/*.txt', or - for stdin",
        repeated="FILE",
    )
    validation: tuple[str, ...] = setting(
        (),
        "text to validate on, in place of a part of the training text; may be given again",
        repeated="FILE",
    )
    validation_fraction: float = setting(0.1, "share of the text set aside to validate on")
    split: Literal["documents", "end"] = setting(
        "documents",
        "what is set aside: whole documents, spread over the text (of one document its end); or "
        "the end of the text, wherever that cuts it",
    )
    weights: tuple[float, ...] = setting(
        (),
        "how much to draw from a file; given once for each, in their order; by size if unset",
        repeated="X",
    )
    text_field: str = setting("text", "the field of .jsonl files that holds the text")
    tokenizer: str = setting(
        "bpe", "bpe (learned from the text), char, or one of tiktoken's, such as gpt2"
    )
    vocab_size: int | None = setting(None, "tokens in a bpe vocabulary")
    embedding_init: Literal["text", "random"] = setting(
        "text",
        "what the token embedding starts from: each token's neighbours in the text, or chance",
    )
    init: str | None = setting(
        None,
        "a run, or a model such as hf:gpt2, to train further, with its weights and tokenizer, at "
        "a tenth of the learning rate",
    )

    def _check(self) -> None:
        _require(self, "files", len(self.files) > 0, "at least one file")
        fraction = self.validation_fraction
        _require(self, "validation_fraction", 0.0 < fraction < 1.0, "between 0 and 1")
        size = self.vocab_size
        _require(self, "vocab_size", size is None or size >= 257, "at least 257")
        weights, count = self.weights, len(self.files)
        _require(self, "weights", len(weights) in (0, count), f"as many as files ({count})")
        positive = all(0.0 < weight < 1e6 for weight in weights)
        _require(self, "weights", positive, "above 0 and below 1e6")


@dataclass(frozen=True)
class GPTConfig(_Checked):
    """The shape of a model. The two architectures share one class:

    - ``modern``: RMSNorm, rotary positions, query/key norm, SwiGLU, no biases (as Qwen3);
    - ``gpt2``: LayerNorm, learned positions, GELU, biases (as GPT-2).

    Raises:
        UserError: naming the field, its value and what it may be.
    """

    vocab_size: int = setting(MISSING, "number of different tokens")
    architecture: Literal["qwen3", "gpt2"] = setting("qwen3", "architecture of the model")
    context_length: int = setting(256, "how many tokens back the model can look")
    emb_dim: int = setting(128, "width: size of the vector that stands for a token")
    num_layers: int = setting(4, "number of transformer blocks")
    num_heads: int = setting(4, "attention heads in each block")
    num_kv_heads: int | None = setting(
        None, "key/value heads in each block (grouped-query attention); as many as heads if unset"
    )
    head_dim: int | None = setting(
        None, "size of an attention head (modern); emb_dim / num_heads if unset"
    )
    hidden_dim: int | None = setting(
        None, "width inside the feed-forward; 4 (gpt2) or about 8/3 (modern) times emb_dim if unset"
    )
    dropout: float = setting(0.0, "probability of dropping an activation while training")
    attention_dropout: float = setting(
        0.0, "probability of dropping an attention weight while training"
    )
    tie_embeddings: bool = setting(True, "use the token embedding as the output layer too")
    rotary_base: float = setting(10_000.0, "base of the rotary positions' wavelengths (modern)")
    norm_eps: float = setting(1e-6, "epsilon of the normalisation layers")

    def _check(self) -> None:
        for name in ("vocab_size", "context_length", "emb_dim", "num_layers", "num_heads"):
            _require(self, name, 1 <= getattr(self, name) <= _LARGEST, "between 1 and 262,144")
        for name in ("num_kv_heads", "head_dim", "hidden_dim"):
            value = getattr(self, name)
            _require(self, name, value is None or 1 <= value <= _LARGEST, "between 1 and 262,144")
        for name in ("dropout", "attention_dropout"):
            _require(self, name, 0.0 <= getattr(self, name) < 1.0, "at least 0 and below 1")
        _require(self, "rotary_base", 1.0 < self.rotary_base < 1e12, "above 1 and below 1e12")
        _require(self, "norm_eps", 0.0 < self.norm_eps < 1.0, "between 0 and 1")
        modern, heads = self.architecture == "qwen3", self.num_heads
        if self.head_dim is None:
            divides = self.emb_dim % heads == 0
            _require(self, "emb_dim", divides, f"a multiple of num_heads ({heads})")
            even = not modern or self.head_size % 2 == 0
            _require(self, "emb_dim", even, f"an even multiple of num_heads ({heads})")
        else:
            _require(self, "head_dim", modern, "unset in the gpt2 architecture")
            _require(self, "head_dim", self.head_dim % 2 == 0, "even")
        if self.num_kv_heads is not None:
            divides = heads % self.num_kv_heads == 0
            _require(self, "num_kv_heads", divides, f"a divisor of num_heads ({heads})")
        longest = _LARGEST_TABLE // self.head_size  # of the tables of rotary positions
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
        if self.architecture == "gpt2":
            return 4 * self.emb_dim
        return -(-8 * self.emb_dim // 3 // 32) * 32  # two thirds of 4x, rounded up to 32


def weight_shapes(config: GPTConfig) -> dict[str, tuple[int, ...]]:
    """The shape of each parameter of a model by its name, in which # is the number of a block. A
    tied head is the token embedding."""
    c = config
    q_dim, kv_dim = c.num_heads * c.head_size, c.kv_heads * c.head_size
    modules: dict[str, tuple[int, ...]] = {
        "blocks.#.attention_norm": (c.emb_dim,),
        "blocks.#.attention.W_query": (q_dim, c.emb_dim),
        "blocks.#.attention.W_key": (kv_dim, c.emb_dim),
        "blocks.#.attention.W_value": (kv_dim, c.emb_dim),
        "blocks.#.attention.out_proj": (c.emb_dim, q_dim),
        "blocks.#.feed_forward_norm": (c.emb_dim,),
        "blocks.#.feed_forward.W_in": (c.ff_dim, c.emb_dim),
        "blocks.#.feed_forward.out_proj": (c.emb_dim, c.ff_dim),
        "final_norm": (c.emb_dim,),
    }
    biases = {f"{name}.bias": shape[:1] for name, shape in modules.items()}
    modules["token_embedding"] = (c.vocab_size, c.emb_dim)
    if not c.tie_embeddings:
        modules["head"] = (c.vocab_size, c.emb_dim)
    if c.architecture == "gpt2":
        modules["position_embedding"] = (c.context_length, c.emb_dim)
    else:
        biases = {}
        modules["blocks.#.attention.query_norm"] = (c.head_size,)
        modules["blocks.#.attention.key_norm"] = (c.head_size,)
        modules["blocks.#.feed_forward.W_gate"] = (c.ff_dim, c.emb_dim)
    return {f"{name}.weight": shape for name, shape in modules.items()} | biases


@dataclass(frozen=True)
class TrainConfig(_Checked):
    """How a model is trained.

    Raises:
        UserError: naming the field, its value and what it may be.
    """

    minutes: float = setting(5.0, "how long the whole command may take")
    steps: int | None = setting(None, "train this many steps instead, however long they take")
    max_epochs: float | None = setting(
        None, "end after reading the text this often, even if time is left"
    )
    token_split_prob: float = setting(
        0.0, "share of the tokens read as two shorter ones, others each time, until near the end"
    )
    warmup_context: int | None = setting(
        None, "look back on this many tokens at most until near the end; on all if unset"
    )
    batch_size: int = setting(8, "sequences in a training step")
    micro_batch_size: int | None = setting(
        None, "sequences that a process computes at once, to save memory; all of its own if unset"
    )
    shard: bool = setting(
        False, "under torchrun: split model, gradients and optimizer state among the processes"
    )
    optimizer: Literal["adamw", "muon"] = setting(
        "muon", "muon: Muon for the matrices, AdamW for the rest"
    )
    learning_rate: float = setting(4e-3, "peak learning rate")
    min_lr_ratio: float = setting(0.02, "learning rate of the last step, as a share of the peak")
    warmup_ratio: float = setting(0.02, "share of the training in which the learning rate rises")
    weight_decay: float = setting(0.1, "decoupled weight decay of the matrices")
    momentum: float = setting(0.9, "how long Muon remembers the gradients of matrices")
    beta1: float = setting(0.9, "how long AdamW remembers gradients")
    beta2: float = setting(0.99, "how long AdamW remembers squared gradients")
    grad_clip: float = setting(1.0, "largest norm of the gradient")
    num_evals: int = setting(10, "how many times to evaluate, the last one included")
    checkpoint_seconds: float = setting(
        30.0, "save the state about this often (more rarely where saving takes long)"
    )
    log: Literal["none", "tensorboard", "wandb"] = setting(
        "none", "send the figures of each evaluation there as well"
    )
    eval_tokens: int = setting(131_072, "evaluate on at most this many validation tokens")
    seed: int = setting(0, "the same seed draws the same batches and initial weights")
    device: str = setting("auto", "auto, cpu, cuda, cuda:1 or mps")
    precision: Literal["auto", "float32", "bfloat16"] = setting(
        "auto", "type of the matrix products; auto: bfloat16 where the machine is faster with it"
    )
    compile: Literal["auto", "on", "off"] = setting(
        "auto", "torch.compile; auto: where the time to compile is won back"
    )

    def _check(self) -> None:
        _require(self, "minutes", 0.0 < self.minutes < 1e6, "above 0 and below 1e6")
        _require(self, "steps", self.steps is None or self.steps >= 1, "at least 1")
        epochs = self.max_epochs
        _require(self, "max_epochs", epochs is None or 0.0 < epochs < 1e6, "above 0 and below 1e6")
        for name in ("batch_size", "num_evals", "eval_tokens"):
            _require(self, name, getattr(self, name) >= 1, "at least 1")
        early = self.warmup_context
        _require(self, "warmup_context", early is None or early >= 1, "at least 1")
        at_once = self.micro_batch_size
        _require(self, "micro_batch_size", at_once is None or at_once >= 1, "at least 1")
        for name in ("learning_rate", "grad_clip", "checkpoint_seconds"):
            _require(self, name, 0.0 < getattr(self, name) < 1e6, "above 0 and below 1e6")
        for name in ("token_split_prob", "min_lr_ratio", "warmup_ratio", "weight_decay"):
            _require(self, name, 0.0 <= getattr(self, name) <= 1.0, "between 0 and 1")
        for name in ("momentum", "beta1", "beta2"):
            _require(self, name, 0.0 <= getattr(self, name) < 1.0, "at least 0 and below 1")
        _require(self, "seed", 0 <= self.seed < 2**63, "between 0 and 2^63 - 1")


@dataclass(frozen=True)
class SampleConfig(_Checked):
    """How a text is generated.

    Raises:
        UserError: naming the field, its value and what it may be.
    """

    max_new_tokens: int = setting(300, "how many tokens to write at most")
    temperature: float = setting(
        0.8, "below 1 safer, above 1 bolder; 0 always takes the likeliest token"
    )
    top_k: int | None = setting(None, "choose among this many likeliest tokens only")
    top_p: float | None = setting(
        None, "choose among the fewest tokens that are together this probable"
    )
    min_p: float | None = setting(
        None, "leave out tokens less than this times as probable as the likeliest"
    )
    repetition_penalty: float = setting(
        1.0, "above 1 avoids every token of the text so far, prompt included; about 1.1 is plenty"
    )
    presence_penalty: float = setting(0.0, "taken off the logit of a token once it was written")
    frequency_penalty: float = setting(
        0.0, "taken off the logit of a token each time that it was written"
    )
    logit_bias: Mapping[str, float] | None = setting(
        None, "added to the logit of the token TEXT; may be given again", repeated="TEXT=X"
    )
    stop: tuple[str, ...] = setting(
        (), r"end before this text (\n is a new line); may be given again", repeated="TEXT"
    )
    banned: tuple[str, ...] = setting(
        (), "never write this text; may be given again", repeated="TEXT"
    )
    samples: int = setting(1, "how many continuations to write, side by side")
    seed: int | None = setting(None, "the same seed writes the same text; random if unset")

    def _check(self) -> None:
        _require(self, "max_new_tokens", self.max_new_tokens >= 0, "at least 0")
        _require(self, "temperature", 0.0 <= self.temperature < 1e3, "at least 0 and below 1e3")
        _require(self, "top_k", self.top_k is None or self.top_k >= 1, "at least 1")
        top_p, min_p = self.top_p, self.min_p
        _require(self, "top_p", top_p is None or 0.0 < top_p <= 1.0, "above 0 and at most 1")
        _require(self, "min_p", min_p is None or 0.0 <= min_p <= 1.0, "between 0 and 1")
        penalty = self.repetition_penalty
        _require(self, "repetition_penalty", 0.0 < penalty < 1e3, "above 0 and below 1e3")
        for name in ("presence_penalty", "frequency_penalty"):
            _require(self, name, -1e3 < getattr(self, name) < 1e3, "above -1e3 and below 1e3")
        biases = (self.logit_bias or {}).values()
        _require(self, "logit_bias", all(-1e3 < b < 1e3 for b in biases), "between -1e3 and 1e3")
        for name in ("stop", "banned"):
            whole = all(text and _is_unicode(text) for text in getattr(self, name))
            _require(self, name, whole, "texts that are not empty")
        unbroken = all("\ufffd" not in text for text in self.banned)
        _require(
            self, "banned", unbroken, "without U+FFFD, which stands for bytes that are no text"
        )
        _require(self, "samples", 1 <= self.samples <= 4096, "between 1 and 4,096")
        seed = self.seed
        _require(self, "seed", seed is None or 0 <= seed < 2**63, "between 0 and 2^63 - 1")


@dataclass(frozen=True)
class InferenceConfig(_Checked):
    """How a trained model is run.

    Raises:
        UserError: naming the field, its value and what it may be.
    """

    device: str = setting("auto", "auto, cpu, cuda, cuda:1 or mps")
    precision: Literal["float32", "bfloat16"] = setting(
        "float32", "type of the weights; bfloat16 makes a large model faster on a GPU"
    )


@dataclass(frozen=True)
class OutputConfig(_Checked):
    """How a generated text is put before its reader.

    Raises:
        UserError: naming fields that exclude each other.
    """

    interactive: bool = setting(False, "a session: a text for each line you type, and commands")
    show: bool = setting(False, "each token's probability, and what it could have been")
    json: bool = setting(False, "one JSON record on a line for each sample, and nothing else")
    logprobs: bool = setting(False, "each token with its log-probability, in nats (with --json)")

    def _check(self) -> None:
        for other in ("interactive", "show"):
            if self.json and getattr(self, other):
                raise UserError(f"json and {other} exclude each other; leave one of them out")
        if self.logprobs and not self.json:
            raise UserError("logprobs are written in records only; add --json")


@dataclass(frozen=True)
class EvaluationConfig(_Checked):
    """How well a model predicts a text is measured so.

    Raises:
        UserError: naming the field, its value and what it may be.
    """

    stride: int | None = setting(
        None,
        "tokens from one window to the next, each of the context length: with fewer than that, "
        "every token sees at least context length - stride before it; side by side if unset",
    )
    batch_size: int = setting(16, "windows at a time")
    text_field: str = setting("text", "the field of .jsonl files that holds the text")
    device: str = setting("auto", "auto, cpu, cuda, cuda:1 or mps")

    def _check(self) -> None:
        _require(self, "stride", self.stride is None or self.stride >= 1, "at least 1")
        _require(self, "batch_size", self.batch_size >= 1, "at least 1")


@dataclass(frozen=True)
class ExportConfig(_Checked):
    """How a model is written for other programs.

    Raises:
        UserError: naming the field, its value and what it may be.
    """

    to: Literal["hf", "gguf"] = setting(
        "hf", "hf: a folder for transformers and what reads its layout; gguf: for llama.cpp"
    )
    out: str | None = setting(None, "the new folder; exports/RUN-hf or exports/RUN-gguf if unset")
    dtype: Literal["float32", "float16", "q8_0"] = setting("float32", "of the matrices in gguf")

    def _check(self) -> None:
        fits = self.to == "gguf" or self.dtype == "float32"
        _require(self, "dtype", fits, "float32 with --to hf")


@dataclass(frozen=True)
class AttentionConfig(_Checked):
    """What is drawn of a model's attention, and where to.

    Raises:
        UserError: naming the field, its value and what it may be.
    """

    layer: int | None = setting(None, "this layer only, counted from 0")
    head: int | None = setting(None, "this head only, counted from 0")
    out: str | None = setting(
        None, "the picture: .png, .svg or .pdf; attention.png, -2, -3, ... if unset"
    )

    def _check(self) -> None:
        for name in ("layer", "head"):
            number = getattr(self, name)
            _require(self, name, number is None or number >= 0, "at least 0")
        fits = self.out is None or self.out.endswith((".png", ".svg", ".pdf"))
        _require(self, "out", fits, "a name that ends in .png, .svg or .pdf")


def to_dict(config: Any) -> dict[str, Any]:
    """The fields of a config as JSON values."""
    return dataclasses.asdict(config)


def from_dict(cls: type[Config], data: Any) -> Config:
    """A config from JSON values.

    Raises:
        UserError: naming the field that is unknown, missing, of another type or out of range.
    """
    name = cls.__name__
    if not isinstance(data, dict):
        raise UserError(f"{name}: expected an object, got {type(data).__name__}")
    hints = get_type_hints(cls)
    for key, value in data.items():
        if key not in hints:
            raise UserError(f"{name}: unknown field {key!r}")
        if not _is_a(value, hints[key]):
            raise UserError(f"{name}: {key} must be {_described(hints[key])}, got {value!r}")
    for field_ in dataclasses.fields(cls):  # type: ignore[arg-type]
        if field_.default is MISSING and field_.name not in data:
            raise UserError(f"{name}: {field_.name} is missing")
    return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in data.items()})


def _is_a(value: Any, hint: Any) -> bool:
    if get_origin(hint) in (Union, types.UnionType):
        return any(_is_a(value, option) for option in get_args(hint))
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_origin(hint) is tuple:  # tuple[str, ...], a list in JSON
        return isinstance(value, list | tuple) and all(_is_a(v, get_args(hint)[0]) for v in value)
    if get_origin(hint) is Mapping:  # Mapping[str, float]
        key, item = get_args(hint)
        return isinstance(value, Mapping) and all(
            _is_a(k, key) and _is_a(v, item) for k, v in value.items()
        )
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _described(hint: Any) -> str:
    """A type in the words of someone who sets it."""
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(_described(option) for option in get_args(hint))
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(map(str, get_args(hint)))
    if get_origin(hint) is Mapping:
        return "numbers by text"
    if get_origin(hint) is tuple:
        return "a list of texts" if get_args(hint)[0] is str else "a list of numbers"
    words = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
    return "nothing" if hint is type(None) else words[hint]


def _is_unicode(text: str) -> bool:
    """Whether it can be encoded: half a surrogate pair, from bytes that are no UTF-8, cannot."""
    return not any("\ud800" <= c <= "\udfff" for c in text)


def _require(config: Any, name: str, holds: bool, expected: str) -> None:
    if not holds:
        raise UserError(f"{name} must be {expected}, got {getattr(config, name)}")


def cache_folder() -> Path:
    """Where token files are kept: $MINIGPT_CACHE, or minigpt in the user's cache folder."""
    if chosen := os.environ.get("MINIGPT_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "minigpt"
