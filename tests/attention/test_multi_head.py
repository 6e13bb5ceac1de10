"""The laws of MultiHeadAttention: what may depend on what, parity with torch, types, gradients
and errors. Positions are tested in test_rotary.py, decoding in test_cache.py, what it shares with
other layers in test_dropout_and_length.py.
"""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from minigpt.attention import (
    MultiHeadAttention,
    RotaryPositions,
    causal_mask,
)

from .examples import (
    CONTEXT,
    D_IN,
    D_OUT,
    EXTRAS,
    HEADS,
    Forward,
    attention,
    both_forwards,
    cache_of,
    every_extra,
    extras,
    few,
    lengths,
    normal,
    turned_as_complex_numbers,
)

# What depends on what


@both_forwards
@every_extra
@pytest.mark.parametrize("causal", [True, False])
def test_no_output_depends_on_a_later_input(forward: Forward, extra: str, causal: bool) -> None:
    """d out_i / d x_j is exactly zero for j after i and only there; without the mask, nowhere."""
    layer, T = attention(causal=causal, **EXTRAS[extra]), 5
    jacobian = torch.autograd.functional.jacobian(
        lambda x: forward(layer, x[None])[0], normal(T, D_IN)
    )  # (T, d_out, T, d_in)
    independent = (jacobian == 0).all(dim=3).all(dim=1)
    assert torch.equal(independent, causal_mask(T) & causal)


@given(order=lengths.flatmap(lambda T: st.permutations(range(T))))
@few
def test_without_the_mask_permuting_the_input_permutes_the_output(order: list[int]) -> None:
    layer, x = attention(causal=False), normal(2, len(order), D_IN)
    torch.testing.assert_close(layer(x[:, order]), layer(x)[:, order])


@given(
    d_in=st.integers(1, 9),
    d_out=st.integers(1, 9),
    heads=st.integers(1, 4),
    head_dim=st.integers(1, 5),
    T=lengths,
)
@few
def test_any_sizes_and_any_length_up_to_context_length_fit(
    d_in: int, d_out: int, heads: int, head_dim: int, T: int
) -> None:
    """Heads of a chosen size need not divide the output."""
    for layer, out in (
        (attention(d_in, heads * head_dim, heads=heads), heads * head_dim),
        (attention(d_in, d_out, heads=heads, head_dim=head_dim), d_out),
    ):
        assert layer.W_query.weight.shape == (heads * head_dim, d_in)
        output, weights = layer.forward_with_weights(normal(3, T, d_in))
        assert output.shape == (3, T, out)
        assert weights.shape == (3, heads, T, T)


# Parity with torch


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_equal_to_multihead_attention_of_torch(causal: bool, bias: bool) -> None:
    layer = attention(D_OUT, D_OUT, qkv_bias=bias, out_bias=bias, causal=causal)
    torchs = nn.MultiheadAttention(D_OUT, HEADS, bias=bias, batch_first=True).double()
    projections = layer.W_query, layer.W_key, layer.W_value
    weights = {
        "in_proj_weight": torch.cat([linear.weight for linear in projections]),
        "out_proj.weight": layer.out_proj.weight,
    }
    if bias:
        weights["in_proj_bias"] = torch.cat([linear.bias for linear in projections])
        weights["out_proj.bias"] = layer.out_proj.bias
    torchs.load_state_dict(weights)

    x = normal(2, 7, D_OUT)
    mask = causal_mask(7) if causal else None
    expected = torchs(x, x, x, attn_mask=mask, average_attn_weights=False)
    torch.testing.assert_close(layer(x), expected[0])
    torch.testing.assert_close(layer.forward_with_weights(x), expected)


@given(extra=extras, causal=st.booleans(), start=st.integers(0, 5), T=st.integers(1, 5))
@few
def test_forward_with_weights_equals_forward(extra: str, causal: bool, start: int, T: int) -> None:
    layer = attention(causal=causal, **EXTRAS[extra])
    x, caches = normal(2, start + T, D_IN), [cache_of(layer), cache_of(layer)]
    for cache in caches:
        if start:
            layer(x[:, :start], cache)
    output, weights = layer.forward_with_weights(x[:, start:], caches[0])
    torch.testing.assert_close(output, layer(x[:, start:], caches[1]))
    assert weights.shape == (2, HEADS, T, start + T)


@pytest.mark.parametrize("rotary_base", [None, 100.0])
@pytest.mark.parametrize("qk_norm", [True, False])
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
@pytest.mark.parametrize(("causal", "head_dim"), [(True, 2), (False, 6)])
def test_equal_to_torchs_attention_of_each_head_normed_and_turned(
    causal: bool, head_dim: int, kv_heads: int, qk_norm: bool, rotary_base: float | None
) -> None:
    """Query heads 0 and 1 share the first of two key/value heads; values are not turned."""
    layer = attention(
        qkv_bias=True,
        num_kv_heads=kv_heads,
        rotary_base=rotary_base,
        qk_norm=qk_norm,
        causal=causal,
        head_dim=head_dim,
    )
    x = normal(2, 9, D_IN)
    queries, keys, values = (
        linear(x).split(head_dim, dim=-1) for linear in (layer.W_query, layer.W_key, layer.W_value)
    )
    heads = []
    for h in range(HEADS):
        q, k, v = queries[h], keys[h * kv_heads // HEADS], values[h * kv_heads // HEADS]
        if qk_norm:
            q = q / (q.square().mean(-1, True) + 1e-6).sqrt() * layer.query_norm.weight
            k = k / (k.square().mean(-1, True) + 1e-6).sqrt() * layer.key_norm.weight
        if rotary_base:
            q, k = (turned_as_complex_numbers(part, rotary_base) for part in (q, k))
        heads.append(F.scaled_dot_product_attention(q, k, v, is_causal=causal))
    expected = layer.out_proj(torch.cat(heads, dim=-1))
    torch.testing.assert_close(layer(x), expected, atol=2e-5, rtol=1e-5)


# Types and gradients


@both_forwards
@every_extra
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float64, 0.0), (torch.float32, 1e-5), (torch.bfloat16, 0.03)],
    ids=str,
)
def test_types_are_kept_and_agree(
    forward: Forward, extra: str, dtype: torch.dtype, tolerance: float
) -> None:
    """Relative to the largest output; bfloat16 keeps 8 bits (0.004) in each of about five steps."""
    layer, x = attention(**EXTRAS[extra]), normal(2, 7, D_IN)
    expected = layer(x)
    output = forward(layer.to(dtype), x.to(dtype))
    assert output.dtype == dtype
    error = (output.double() - expected).abs().max() / expected.abs().max()
    assert error <= max(tolerance, 1e-14)


@both_forwards
@every_extra
@pytest.mark.filterwarnings("ignore:Mismatch dtype between input and weight")
def test_a_float32_layer_runs_under_autocast(forward: Forward, extra: str) -> None:
    layer, x = attention(**EXTRAS[extra]).float(), normal(2, 7, D_IN).float()
    expected = layer(x)
    with torch.autocast("cpu", torch.bfloat16):
        output = forward(layer, x)
    assert output.dtype == torch.bfloat16
    assert (output - expected).abs().max() / expected.abs().max() < 0.03


@every_extra
def test_gradients_agree_with_finite_differences(extra: str) -> None:
    """Of the input and of every parameter; gradcheck changes the parameters in place."""
    layer, x = attention(3, 8, **EXTRAS[extra]), normal(1, 3, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, *_: layer(x), (x, *layer.parameters()))


def test_gradients_of_outputs_and_weights_agree_with_finite_differences() -> None:
    """Those of forward_with_weights."""
    layer = attention(4, 4, heads=2, num_kv_heads=1, rotary_base=100.0, qk_norm=True)
    x = normal(1, 3, 4).requires_grad_()
    inputs = (x, *layer.parameters())
    assert torch.autograd.gradcheck(lambda x, *_: layer.forward_with_weights(x), inputs)


# Parameters and errors


def test_a_plain_layer_is_four_matrices_and_a_bias() -> None:
    """The tables of rotary positions are not saved."""
    for layer in (attention(), attention(rotary_base=100.0)):
        shapes = {name: tuple(weight.shape) for name, weight in layer.state_dict().items()}
        assert list(shapes.items()) == [
            ("W_query.weight", (D_OUT, D_IN)),
            ("W_key.weight", (D_OUT, D_IN)),
            ("W_value.weight", (D_OUT, D_IN)),
            ("out_proj.weight", (D_OUT, D_OUT)),
            ("out_proj.bias", (D_OUT,)),
        ]


@both_forwards
@pytest.mark.parametrize("shape", [(7, D_IN), (2, 7, D_IN + 1), (1, 2, 7, D_IN)], ids=str)
def test_an_input_of_another_shape_is_refused(forward: Forward, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=f"d_in={D_IN}") as error:
        forward(attention(), normal(*shape))
    assert str(shape) in str(error.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"d_out": 9}, r"d_out \(9\) .* num_heads \(4\)"),
        ({"num_kv_heads": 3}, r"num_heads \(4\) .* num_kv_heads \(3\)"),
        ({"num_kv_heads": 8}, r"num_heads \(4\) .* num_kv_heads \(8\)"),
        ({"d_out": 12, "rotary_base": 100.0}, "even head_dim, got 3"),
        ({"head_dim": 3, "rotary_base": 100.0}, "even head_dim, got 3"),
        ({"rotary_base": 100.0, "rotary": nn.Identity()}, "rotary_base or rotary, not both"),
        ({"head_dim": 0}, "head_dim .* got 0"),
        ({"d_in": 0}, "d_in .* got 0"),
        ({"d_out": 0}, "d_out .* got 0"),
        ({"d_out": -4}, "d_out .* got -4"),
        ({"context_length": 0}, "context_length .* got 0"),
        ({"num_heads": 0}, "num_heads .* got 0"),
        ({"num_kv_heads": 0}, "num_kv_heads .* got 0"),
    ],
    ids=str,
)
def test_sizes_that_do_not_fit_are_refused(changed: dict[str, Any], message: str) -> None:
    sizes = {"d_in": D_IN, "d_out": D_OUT, "context_length": CONTEXT, "num_heads": HEADS}
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(dropout=0.0, **(sizes | changed))


# Positions of one's own


def test_a_module_in_the_place_of_rotary_positions_is_given_the_place_of_a_token() -> None:
    """Here it is what would be there anyway; with a cache, too."""
    usual = attention(rotary_base=100.0)
    own = attention(rotary=RotaryPositions(usual.head_dim, CONTEXT, 100.0))
    x = normal(2, CONTEXT, D_IN)
    torch.testing.assert_close(own(x), usual(x))
    cache = cache_of(own, CONTEXT)
    pieces = [own(piece, cache) for piece in x.split(3, dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), usual(x))


class Shift(nn.Module):
    """Adds a learned vector for each position."""

    def __init__(self) -> None:
        super().__init__()
        self.vectors = nn.Parameter(torch.ones(CONTEXT, 4, dtype=torch.float64))

    def forward(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        vectors = self.vectors[: queries.shape[-2]]
        return queries + vectors, keys + vectors


@both_forwards
@pytest.mark.parametrize("qk_norm", [False, True])
def test_process_heads_that_turns_by_position_is_rotary_positions(
    forward: Forward, qk_norm: bool
) -> None:
    """Queries and keys are given to it in each head, after their norm."""
    turn = RotaryPositions(6, CONTEXT, 100.0)
    shape = {"head_dim": 6, "num_kv_heads": 2, "qk_norm": qk_norm}
    seen = []

    def turned(queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        seen.append((queries.shape, keys.shape))
        return turn(queries), turn(keys)

    x = normal(2, 5, D_IN)
    found = forward(attention(**shape, process_heads=turned), x)
    assert seen == [((2, HEADS, 5, 6), (2, 2, 5, 6))]
    torch.testing.assert_close(found, forward(attention(**shape, rotary_base=100.0), x))


def test_a_module_that_processes_heads_is_learned_and_saved_with_the_layer() -> None:
    layer = attention(head_dim=4, process_heads=Shift())
    layer(normal(2, 5, D_IN)).sum().backward()
    vectors = dict(layer.named_parameters())["process_heads.vectors"]
    assert vectors.grad is not None and vectors.grad[:5].abs().min() > 0
    assert "process_heads.vectors" in layer.state_dict()


@both_forwards
def test_what_process_heads_returns_in_another_shape_is_refused(forward: Forward) -> None:
    layer = attention(head_dim=4, process_heads=lambda queries, keys: (queries, keys[:, :, 1:]))
    with pytest.raises(
        ValueError, match=r"must return shapes \[\(2, 4, 5, 4\), \(2, 4, 5, 4\)\], got"
    ):
        forward(layer, normal(2, 5, D_IN))


@both_forwards
def test_a_layer_with_process_heads_takes_no_cache(forward: Forward) -> None:
    layer = attention(process_heads=lambda queries, keys: (queries, keys))
    cache = cache_of(layer)
    with pytest.raises(ValueError, match="a layer with process_heads takes no cache"):
        forward(layer, normal(2, 5, D_IN), cache)
    assert cache.length == 0
