"""Networks of any parts: what hypothesis draws for the tests of every engine."""

from itertools import product
from typing import Any

from hypothesis import strategies as st

from minigpt.config import GPTConfig

CHOICES: dict[str, tuple[Any, ...]] = {
    "norm": ("rms", "layer"),
    "positions": ("rotary", "learned"),
    "qk_norm": (True, False),
    "feed_forward": ("swiglu", "gelu"),
    "bias": (True, False),
}
# Any part may stand beside any other.
COMBINATIONS = [dict(zip(CHOICES, chosen, strict=True)) for chosen in product(*CHOICES.values())]


@st.composite
def shapes(draw: st.DrawFn, vocab_size: int | None = None) -> dict[str, Any]:
    """The fields of any small config but its parts: grouped heads, wide ones, tied or not."""
    kv_heads = draw(st.integers(1, 3))
    heads = kv_heads * draw(st.integers(1, 3))
    shape: dict[str, Any] = {
        "vocab_size": vocab_size or draw(st.integers(1, 50)),
        "context_length": draw(st.integers(1, 14)),
        "num_layers": draw(st.integers(1, 3)),
        "num_heads": heads,
        "num_kv_heads": kv_heads if kv_heads < heads else draw(st.none() | st.just(kv_heads)),
        "hidden_dim": draw(st.none() | st.integers(1, 40)),
        "tie_embeddings": draw(st.booleans()),
        "rotary_base": draw(st.sampled_from([100.0, 10_000.0])),
        "norm_eps": draw(st.sampled_from([1e-6, 1e-3])),
    }

    size = 2 * draw(st.integers(1, 4))
    if draw(st.booleans()):
        return shape | {"emb_dim": heads * size}
    return shape | {"emb_dim": draw(st.integers(1, 30)), "head_dim": size}


@st.composite
def configs(draw: st.DrawFn, vocab_size: int | None = None) -> GPTConfig:
    """Any small shape of any parts, those of a preset where they are left out."""
    given = {name: st.sampled_from(values) for name, values in CHOICES.items()}
    given["architecture"] = st.sampled_from(["qwen3", "llama", "gpt2"])
    parts = draw(st.fixed_dictionaries({}, optional=given))
    return GPTConfig(**draw(shapes(vocab_size)), **parts)
