"""The shape of a network and the parts that it is made of; the one table of its weights."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass
from typing import Any, Literal

from .. import UserError
from .checked import Base, Checked, Fraction, Probability, Size, require, setting
from .parts import NormName, PositionsName

_LARGEST_TABLE = 1 << 24  # numbers in a table of rotary positions

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
        "qwen3", "preset of the parts: norm, positions, qk-norm, feed-forward and bias"
    )
    context_length: Size = setting(256, "how many tokens back the model can look")
    emb_dim: Size = setting(128, "width: size of the vector of each token")
    num_layers: Size = setting(4, "number of transformer blocks")
    num_heads: Size = setting(4, "attention heads in each block")
    num_kv_heads: Size | None = setting(None, "key/value heads in each block; num_heads if unset")
    head_dim: Size | None = setting(None, "size of a head; emb_dim / num_heads if unset")
    hidden_dim: Size | None = setting(
        None, "feed-forward width; 4 (gelu) or 8/3 (swiglu) times emb_dim if unset"
    )
    norm: NormName = setting(None, "RMSNorm or LayerNorm")
    positions: PositionsName = setting(
        None, "rotary: rotate queries and keys; learned: add a vector to each token's"
    )
    qk_norm: bool = setting(None, "RMSNorm of the queries and keys in each head")
    feed_forward: Literal["swiglu", "gelu"] = setting(
        None, "swiglu: W_out (silu(W_gate x) * W_in x); gelu: W_out gelu(W_in x)"
    )
    bias: bool = setting(None, "biases in the blocks' matrices and in LayerNorm")
    dropout: Probability = setting(0.0, "probability that training drops an activation")
    attention_dropout: Probability = setting(
        0.0, "probability that training drops an attention weight"
    )
    tie_embeddings: bool = setting(True, "use the token embedding as the output layer, too")
    rotary_base: Base = setting(10_000.0, "base of the rotary positions' wavelengths")
    norm_eps: Fraction = setting(1e-6, "epsilon of the normalisation layers")

    def __post_init__(self) -> None:
        # An unknown architecture is refused when the fields are checked.
        for part, usual in PRESETS.get(str(self.architecture), {}).items():
            if getattr(self, part) is None:
                object.__setattr__(self, part, usual)

        super().__post_init__()

    def _check(self) -> None:
        from .parts.positions import POSITIONS  # with numpy, which takes a tenth of a second

        heads = self.num_heads
        must_be_even = POSITIONS[self.positions].turns_pairs
        if self.head_dim is None:
            divides = self.emb_dim % heads == 0
            require(self, "emb_dim", divides, f"a multiple of num_heads ({heads})")
            fits = not must_be_even or self.head_size % 2 == 0
            require(self, "emb_dim", fits, f"an even multiple of num_heads ({heads})")
        else:
            fits = not must_be_even or self.head_dim % 2 == 0
            require(self, "head_dim", fits, "even")

        divides = heads % self.kv_heads == 0
        require(self, "num_kv_heads", divides, f"a divisor of num_heads ({heads})")

        longest = _LARGEST_TABLE // self.head_size
        fits = self.context_length <= longest
        require(self, "context_length", fits, f"at most {longest:,} for heads this wide")

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


GPT_NAME = "GPT"  # the name of a network that is exactly the `GPT` of model.py


def weight_shapes(config: GPTConfig) -> dict[str, tuple[int, ...]]:
    """The shape of each weight of a model by its name, in which # is the number of a block.

    This is the only table of weights: the torch model has these parameters, runs and pages hold
    these tensors, and the number of parameters and the cost of a model follow from it. A tied head
    is the token embedding.
    """
    from .parts.norms import NORMS
    from .parts.positions import POSITIONS

    c = config
    q_dim = c.num_heads * c.head_size
    kv_dim = c.kv_heads * c.head_size

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

    shapes: dict[str, tuple[int, ...]] = {"token_embedding.weight": (c.vocab_size, c.emb_dim)}
    shapes |= POSITIONS[c.positions].shapes(c)
    if not c.tie_embeddings:
        shapes["head.weight"] = (c.vocab_size, c.emb_dim)

    for name, shape in matrices.items():
        shapes[f"{name}.weight"] = shape
        if c.bias:
            shapes[f"{name}.bias"] = shape[:1]

    norm = NORMS[c.norm].shapes(c.emb_dim, c.bias)
    for name in ("blocks.#.attention_norm", "blocks.#.feed_forward_norm", "final_norm"):
        shapes |= {f"{name}.{parameter}": shape for parameter, shape in norm.items()}
    if c.qk_norm:
        shapes["blocks.#.attention.query_norm.weight"] = (c.head_size,)
        shapes["blocks.#.attention.key_norm.weight"] = (c.head_size,)
    return shapes


def named_shapes(config: GPTConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The name and the shape of every weight, those of a block once for each block."""
    for pattern, shape in weight_shapes(config).items():
        for i in range(config.num_layers if "#" in pattern else 1):
            yield pattern.replace("#", str(i)), shape


def check_shapes(config: GPTConfig, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse weights of these names and shapes if they do not fit the config. Names are generated
    one by one, and the first that is missing ends the check: a damaged config with a huge
    `num_layers` costs nothing."""
    expected = 0
    for name, shape in named_shapes(config):
        expected += 1
        if name not in shapes:
            raise UserError(f"tensor {name} is missing; by the config its shape is {shape}")
        if shapes[name] != shape:
            raise UserError(f"tensor {name} has shape {shapes[name]}; by the config it is {shape}")

    if len(shapes) > expected:
        raise UserError(f"{len(shapes)} tensors, but the model has {expected}")


def count_parameters(config: GPTConfig) -> int:
    """How many parameters a model has."""
    return sum(
        math.prod(shape) * (config.num_layers if "#" in name else 1)
        for name, shape in weight_shapes(config).items()
    )
