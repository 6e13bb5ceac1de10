"""Networks of any parts: what hypothesis draws for the tests of every engine."""

from typing import Any

from hypothesis import strategies as st

from minigpt.config import GPTConfig

# Any part may stand beside any other; those that are left out come from the architecture.
parts = st.fixed_dictionaries(
    {},
    optional={
        "architecture": st.sampled_from(["qwen3", "llama", "gpt2"]),
        "norm": st.sampled_from(["rms", "layer"]),
        "positions": st.sampled_from(["rotary", "learned"]),
        "qk_norm": st.booleans(),
        "feed_forward": st.sampled_from(["swiglu", "gelu"]),
        "bias": st.booleans(),
        "tie_embeddings": st.booleans(),
        "rotary_base": st.sampled_from([100.0, 10_000.0]),
        "norm_eps": st.sampled_from([1e-6, 1e-3]),
    },
)


@st.composite
def configs(draw: st.DrawFn, vocab_size: int | None = None) -> GPTConfig:
    """Any small shape of any parts: grouped heads, with or without head_dim and hidden_dim."""
    kv_heads = draw(st.integers(1, 3))
    heads = kv_heads * draw(st.integers(1, 3))
    size = draw(st.integers(1, 4)) * 2
    shape: dict[str, Any] = {
        "vocab_size": vocab_size or draw(st.integers(1, 50)),
        "context_length": draw(st.integers(1, 14)),
        "num_layers": draw(st.integers(1, 3)),
        "num_heads": heads,
        "num_kv_heads": kv_heads if kv_heads < heads else draw(st.none() | st.just(kv_heads)),
        "hidden_dim": draw(st.none() | st.integers(1, 40)),
    }
    if draw(st.booleans()):
        shape |= {"emb_dim": size * heads}
    else:
        shape |= {"emb_dim": draw(st.integers(1, 30)), "head_dim": size}
    return GPTConfig(**shape, **draw(parts))
