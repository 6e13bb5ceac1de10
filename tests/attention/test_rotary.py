"""Rotary positions: a vector is turned by its position, so that scores depend on distance only.
Compared with complex numbers, with transformers, and inside a MultiHeadAttention.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from minigpt.attention import MultiHeadAttention, RotaryPositions

few = settings(max_examples=25, deadline=None)

CONTEXT = 64
ROUNDED_TABLES = 2e-6  # sines are kept to 24 bits, vectors are a few long

even_sizes = st.integers(1, 8).map(lambda pairs: 2 * pairs)
bases = st.sampled_from([10.0, 10_000.0, 1e6])
positions = st.integers(0, CONTEXT // 2 - 1)


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


@given(size=even_sizes, base=bases, start=positions, T=st.integers(1, CONTEXT // 2))
@few
def test_turning_is_multiplication_by_complex_numbers(
    size: int, base: float, start: int, T: int
) -> None:
    x = normal(2, 3, T, size)
    expected = turned_as_complex_numbers(x, base, start)
    torch.testing.assert_close(
        RotaryPositions(size, CONTEXT, base)(x, start), expected, atol=ROUNDED_TABLES, rtol=0
    )


@given(size=even_sizes, base=bases, m=positions, n=positions, shift=positions)
@few
def test_scores_depend_on_the_distance_only(
    size: int, base: float, m: int, n: int, shift: int
) -> None:
    turn, q, k = (
        RotaryPositions(size, CONTEXT, base).double(),
        normal(1, size),
        normal(1, size, seed=1),
    )
    score = turn(q, m) @ turn(k, n).T
    torch.testing.assert_close(
        turn(q, m + shift) @ turn(k, n + shift).T, score, atol=1e-5, rtol=0.0
    )


def test_scores_depend_on_the_distance() -> None:
    turn, x = RotaryPositions(8, CONTEXT), normal(1, 8)
    scores = torch.stack([turn(x, m) @ x.T for m in range(8)])
    assert scores.unique().numel() == 8


@given(size=even_sizes, base=bases, start=positions)
@few
def test_turning_keeps_norms(size: int, base: float, start: int) -> None:
    x = normal(5, size)
    turned = RotaryPositions(size, CONTEXT, base)(x, start)
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1), atol=ROUNDED_TABLES, rtol=0)


def test_position_zero_is_not_turned() -> None:
    x = normal(3, 1, 8)
    assert torch.equal(RotaryPositions(8, CONTEXT)(x), x)


@given(start=positions, T=st.integers(1, CONTEXT // 2))
@few
def test_starting_later_equals_the_end_of_a_longer_sequence(start: int, T: int) -> None:
    turn, x = RotaryPositions(8, CONTEXT), normal(2, start + T, 8)
    assert torch.equal(turn(x[:, start:], start), turn(x)[:, start:])


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 2**-8)], ids=str
)
def test_types_are_kept(dtype: torch.dtype, tolerance: float) -> None:
    """The tables stay float32: only the result is rounded (bfloat16 to 8 bits)."""
    turn, x = RotaryPositions(8, CONTEXT), normal(CONTEXT, 8).to(dtype)
    turned = turn(x)
    assert turned.dtype == dtype
    torch.testing.assert_close(turned.double(), turn(x.double()), atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("architecture", ["llama", "qwen3"])
@pytest.mark.parametrize("base", [10_000.0, 1e6])
def test_equal_to_transformers(architecture: str, base: float) -> None:
    models = pytest.importorskip(f"transformers.models.{architecture}.modeling_{architecture}")
    size, T = 8, CONTEXT
    q, k = normal(2, 4, T, size).float(), normal(2, 2, T, size, seed=1).float()
    frequencies = 1.0 / base ** (torch.arange(0, size, 2).double() / size)
    angles = torch.outer(torch.arange(T).double(), frequencies).repeat(1, 2)[None]
    expected = models.apply_rotary_pos_emb(q, k, angles.cos().float(), angles.sin().float())
    turn = RotaryPositions(size, CONTEXT, base)
    torch.testing.assert_close((turn(q), turn(k)), expected)


def test_the_tables_are_not_saved() -> None:
    assert RotaryPositions(8, CONTEXT).state_dict() == {}


@pytest.mark.parametrize("size", [1, 7])
def test_an_odd_head_dim_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"even head_dim, got {size}"):
        RotaryPositions(size, CONTEXT)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("qk_norm", [True, False])
def test_a_layer_normalises_then_turns_queries_and_keys_but_not_values(
    qk_norm: bool, causal: bool
) -> None:
    torch.manual_seed(123)
    layer = MultiHeadAttention(
        6, 16, CONTEXT, 0.0, 4, num_kv_heads=2, rotary_base=100.0, qk_norm=qk_norm, causal=causal
    ).double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter)

    x = normal(2, 9, 6)
    q, k, v = (linear(x) for linear in (layer.W_query, layer.W_key, layer.W_value))
    heads = []
    for h in range(4):
        kv = h // 2
        q_h, k_h, v_h = (part[..., 4 * i : 4 * i + 4] for part, i in ((q, h), (k, kv), (v, kv)))
        if qk_norm:
            q_h = q_h / (q_h.square().mean(-1, True) + 1e-6).sqrt() * layer.query_norm.weight
            k_h = k_h / (k_h.square().mean(-1, True) + 1e-6).sqrt() * layer.key_norm.weight
        q_h, k_h = (turned_as_complex_numbers(part, 100.0) for part in (q_h, k_h))
        heads.append(F.scaled_dot_product_attention(q_h, k_h, v_h, is_causal=causal))
    expected = layer.out_proj(torch.cat(heads, dim=-1))
    torch.testing.assert_close(layer(x), expected, atol=1e-5, rtol=1e-5)
