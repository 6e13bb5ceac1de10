"""The classes that lead up to MultiHeadAttention, each equal to the one before it where the new
idea is switched off: V1 -> V2 -> CausalAttention -> wrapper -> MultiHeadAttention.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from minigpt.attention import (
    CausalAttention,
    MultiHeadAttention,
    MultiHeadAttentionWrapper,
    SelfAttentionV1,
    SelfAttentionV2,
    causal_mask,
)

few = settings(max_examples=25, deadline=None)

D_IN, D_OUT, CONTEXT = 6, 4, 8
PROJECTIONS = "W_query", "W_key", "W_value"
sizes = st.integers(1, 6)
lengths = st.integers(1, CONTEXT)
with_dropout = pytest.mark.parametrize("heads", [None, 1, 3], ids=str)


def normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def dropping(heads: int | None) -> nn.Module:
    """A CausalAttention, or a wrapper of several, in training mode."""
    torch.manual_seed(123)
    if heads is None:
        return CausalAttention(D_IN, D_OUT, CONTEXT, 0.5)
    return MultiHeadAttentionWrapper(D_IN, D_OUT, CONTEXT, 0.5, heads)


def causal_attention(dropout: float = 0.0, qkv_bias: bool = False) -> CausalAttention:
    torch.manual_seed(123)
    return CausalAttention(D_IN, D_OUT, CONTEXT, dropout, qkv_bias)


@given(d_in=sizes, d_out=sizes, T=sizes)
@few
def test_v1_equals_v2_with_transposed_weights(d_in: int, d_out: int, T: int) -> None:
    torch.manual_seed(123)
    v1, v2 = SelfAttentionV1(d_in, d_out), SelfAttentionV2(d_in, d_out)
    for name in PROJECTIONS:
        getattr(v1, name).data = getattr(v2, name).weight.data.T
    x = normal(2, T, d_in)
    torch.testing.assert_close(v1(x), v2(x))
    torch.testing.assert_close(v1(x)[0], v1(x[0]))


def test_v1_starts_with_uniform_numbers() -> None:
    torch.manual_seed(123)
    layer = SelfAttentionV1(40, 50)
    for name in PROJECTIONS:
        weight = getattr(layer, name)
        assert weight.shape == (40, 50)
        assert 0 <= weight.min() < 0.01 < 0.99 < weight.max() < 1


@given(T=lengths, bias=st.booleans())
@few
def test_an_output_of_causal_attention_is_self_attention_to_the_words_so_far(
    T: int, bias: bool
) -> None:
    causal, unmasked = causal_attention(qkv_bias=bias), SelfAttentionV2(D_IN, D_OUT, bias)
    unmasked.load_state_dict(causal.state_dict())
    x = normal(2, T, D_IN)
    so_far = [unmasked(x[:, : t + 1])[:, -1] for t in range(T)]
    torch.testing.assert_close(causal(x), torch.stack(so_far, dim=1))


def test_no_output_of_causal_attention_depends_on_a_later_input() -> None:
    layer, T = causal_attention(), CONTEXT
    jacobian = torch.autograd.functional.jacobian(lambda x: layer(x[None])[0], normal(T, D_IN))
    independent = (jacobian == 0).all(dim=3).all(dim=1)  # (T, T)
    assert torch.equal(independent, causal_mask(T))


@given(heads=st.integers(1, 4), T=lengths, bias=st.booleans())
@few
def test_the_wrapper_lays_its_heads_side_by_side(heads: int, T: int, bias: bool) -> None:
    torch.manual_seed(123)
    wrapper = MultiHeadAttentionWrapper(D_IN, D_OUT, CONTEXT, 0.0, heads, bias)
    x = normal(2, T, D_IN)
    for h, part in enumerate(wrapper(x).split(D_OUT, dim=-1)):
        head = CausalAttention(D_IN, D_OUT, CONTEXT, 0.0, bias)
        weights = wrapper.state_dict().items()
        prefix = f"heads.{h}."
        head.load_state_dict(
            {name.removeprefix(prefix): w for name, w in weights if name.startswith(prefix)}
        )
        torch.testing.assert_close(part, head(x))
    assert wrapper(x).shape == (2, T, heads * D_OUT)


@given(heads=st.integers(1, 4), T=lengths, bias=st.booleans())
@few
def test_multi_head_attention_equals_the_wrapper_with_stacked_weights(
    heads: int, T: int, bias: bool
) -> None:
    torch.manual_seed(123)
    wrapper = MultiHeadAttentionWrapper(D_IN, D_OUT, CONTEXT, 0.0, heads, bias)
    layer = MultiHeadAttention(D_IN, heads * D_OUT, CONTEXT, 0.0, heads, bias, out_bias=False)
    weights = {"out_proj.weight": torch.eye(heads * D_OUT)}
    for name in (name for name in layer.state_dict() if name.startswith("W_")):
        weights[name] = torch.cat([head.state_dict()[name] for head in wrapper.heads])
    layer.load_state_dict(weights)
    x = normal(2, T, D_IN)
    torch.testing.assert_close(layer(x), wrapper(x))


@with_dropout
def test_dropout_acts_in_training_only(heads: int | None) -> None:
    layer, x = dropping(heads), normal(2, CONTEXT, D_IN)
    expected = layer.eval()(x)
    assert torch.equal(layer(x), expected)
    first, second = layer.train()(x), layer(x)
    assert not torch.allclose(first, expected)
    assert not torch.allclose(first, second)
    assert torch.equal(layer.eval()(x), expected)


@with_dropout
def test_dropout_keeps_the_mean(heads: int | None) -> None:
    """Of N draws, within 5 standard errors."""
    layer, N, x = dropping(heads), 4000, normal(1, 4, D_IN)
    outputs = layer(x.expand(N, -1, -1))
    standard_error = outputs.std(dim=0) / N**0.5
    assert ((outputs.mean(dim=0) - layer.eval()(x)[0]).abs() < 5 * standard_error).all()


def test_the_mask_is_not_saved() -> None:
    assert list(causal_attention().state_dict()) == [f"{name}.weight" for name in PROJECTIONS]


@with_dropout
def test_a_sequence_longer_than_context_length_is_refused(heads: int | None) -> None:
    layer = dropping(heads)
    layer(normal(1, CONTEXT, D_IN))
    with pytest.raises(ValueError, match=r"sequence of 9 tokens .* context_length 8"):
        layer(normal(1, CONTEXT + 1, D_IN))


@pytest.mark.parametrize("dropout", [-0.1, 1.0, 1.5, float("nan")])
def test_dropout_that_is_no_probability_below_one_is_refused(dropout: float) -> None:
    with pytest.raises(ValueError, match=rf"dropout .* got {dropout}"):
        causal_attention(dropout)
    with pytest.raises(ValueError, match=rf"dropout .* got {dropout}"):
        MultiHeadAttentionWrapper(D_IN, D_OUT, CONTEXT, dropout, 2)
