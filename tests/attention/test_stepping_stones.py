"""The classes that lead up to MultiHeadAttention: their laws and errors. How each follows from the
one before is worked out in test_seeds.py.
"""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from minigpt.attention import (
    CausalAttention,
    MultiHeadAttentionWrapper,
    SelfAttentionV1,
    SelfAttentionV2,
)

from .examples import few, normal

D_IN, D_OUT, CONTEXT = 6, 4, 8
PROJECTIONS = "W_query", "W_key", "W_value"
lengths = st.integers(1, CONTEXT)


def causal_attention(dropout: float = 0.0, qkv_bias: bool = False) -> CausalAttention:
    torch.manual_seed(123)
    return CausalAttention(D_IN, D_OUT, CONTEXT, dropout, qkv_bias).double()


@given(T=lengths, bias=st.booleans())
@few
def test_an_output_of_causal_attention_is_self_attention_to_the_words_so_far(
    T: int, bias: bool
) -> None:
    causal, unmasked = causal_attention(qkv_bias=bias), SelfAttentionV2(D_IN, D_OUT, bias).double()
    unmasked.load_state_dict(causal.state_dict())
    x = normal(2, T, D_IN)
    so_far = [unmasked(x[:, : t + 1])[:, -1] for t in range(T)]
    torch.testing.assert_close(causal(x), torch.stack(so_far, dim=1))


def test_the_parameters_are_those_of_the_projections() -> None:
    """The mask is not saved."""
    weights, biases = ([f"{name}.{kind}" for name in PROJECTIONS] for kind in ("weight", "bias"))
    assert list(causal_attention().state_dict()) == weights
    wrapper = MultiHeadAttentionWrapper(D_IN, D_OUT, CONTEXT, 0.0, 2, qkv_bias=True)
    assert set(wrapper.heads[1].state_dict()) == {*weights, *biases}


@pytest.mark.parametrize("size", [0, -1])
@pytest.mark.parametrize(
    ("layer", "sizes"),
    [
        (SelfAttentionV1, {"d_in": 4, "d_out": 4}),
        (SelfAttentionV2, {"d_in": 4, "d_out": 4}),
        (CausalAttention, {"d_in": 4, "d_out": 4, "context_length": 4}),
        (
            MultiHeadAttentionWrapper,
            {"d_in": 4, "d_out": 4, "context_length": 4, "num_heads": 2},
        ),
    ],
)
def test_a_size_below_one_is_refused(layer: Any, sizes: dict[str, int], size: int) -> None:
    other = {"dropout": 0.0} if "context_length" in sizes else {}
    for name in sizes:
        with pytest.raises(ValueError, match=f"{name} must be at least 1, got {size}"):
            layer(**(sizes | other | {name: size}))
