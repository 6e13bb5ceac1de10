"""Layers and inputs for the tests of this folder."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor, nn

from minigpt.attention import KeyValueCache, MultiHeadAttention

few = settings(max_examples=15, deadline=None)

D_IN, D_OUT, HEADS, HEAD_DIM, CONTEXT = 6, 8, 4, 2, 10
EXTRAS: dict[str, dict[str, Any]] = {
    "plain": {},
    "grouped": {"num_kv_heads": 2},
    "rotary": {"rotary_base": 100.0},
    "qk_norm": {"qk_norm": True},
    "head_dim": {"head_dim": 6},
    "all": {"num_kv_heads": 1, "rotary_base": 100.0, "qk_norm": True, "qkv_bias": True},
}
extras = st.sampled_from(list(EXTRAS))
lengths = st.integers(1, CONTEXT)
every_extra = pytest.mark.parametrize("extra", EXTRAS)

Forward = Callable[..., Tensor]  # of a layer, its input and perhaps a cache
both_forwards = pytest.mark.parametrize(
    "forward",
    [
        MultiHeadAttention.forward,
        lambda layer, x, cache=None: layer.forward_with_weights(x, cache)[0],
    ],
    ids=["forward", "forward_with_weights"],
)


def attention(
    d_in: int = D_IN, d_out: int = D_OUT, *, heads: int = HEADS, dropout: float = 0.0, **extra: Any
) -> MultiHeadAttention:
    """A float64 layer with reproducible random parameters, norms included, in evaluation mode."""
    torch.manual_seed(123)
    layer = MultiHeadAttention(d_in, d_out, CONTEXT, dropout, heads, **extra).double().eval()
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    return layer


def cache_of(layer: MultiHeadAttention, context_length: int = CONTEXT) -> KeyValueCache:
    """An empty cache for two sequences."""
    dtype = layer.W_key.weight.dtype
    return KeyValueCache(2, layer.num_kv_heads, context_length, layer.head_dim, dtype=dtype)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def turned_as_complex_numbers(x: Tensor, base: float, start: int = 0) -> Tensor:
    """Pair i of x is a complex number, multiplied by exp(i t θ) at position t."""
    half = x.shape[-1] // 2
    angles = torch.tensor(
        [[t * base ** (-i / half) for i in range(half)] for t in range(start, start + x.shape[-2])],
        dtype=torch.float64,
    )
    turned = torch.complex(x[..., :half], x[..., half:]) * torch.exp(1j * angles)
    return torch.cat((turned.real, turned.imag), dim=-1)
