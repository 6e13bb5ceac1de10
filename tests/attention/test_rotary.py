"""Rotary positions: a vector is turned by its position, so that scores depend on distance only.
Compared with complex numbers here, inside a layer in test_multi_head.py, and with transformers in
test_model.py.
"""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from minigpt.attention import MultiHeadAttention, RotaryPositions

from .examples import few, normal, turned_as_complex_numbers

CONTEXT = 64
ROUNDED_TABLES = 2e-6  # sines are kept to 24 bits, vectors are a few long

even_sizes = st.integers(1, 8).map(lambda pairs: 2 * pairs)
bases = st.sampled_from([10.0, 10_000.0, 1e6])
positions = st.integers(0, CONTEXT // 2 - 1)


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
    turn = RotaryPositions(size, CONTEXT, base)
    q, k = normal(1, size), normal(1, size, seed=1)
    shifted = turn(q, m + shift) @ turn(k, n + shift).T
    torch.testing.assert_close(shifted, turn(q, m) @ turn(k, n).T, atol=1e-5, rtol=0.0)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 2**-8)], ids=str
)
def test_types_are_kept(dtype: torch.dtype, tolerance: float) -> None:
    """The tables stay float32: only the result is rounded (bfloat16 to 8 bits)."""
    turn, x = RotaryPositions(8, CONTEXT), normal(CONTEXT, 8).to(dtype)
    turned = turn(x)
    assert turned.dtype == dtype
    torch.testing.assert_close(turned.double(), turn(x.double()), atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize(("T", "start"), [(CONTEXT + 1, 0), (2, CONTEXT - 1)])
def test_a_position_that_is_not_tabulated_is_refused(T: int, start: int) -> None:
    turn = RotaryPositions(8, CONTEXT)
    with pytest.raises(ValueError, match=f"position {CONTEXT} is beyond context_length {CONTEXT}"):
        turn(normal(T, 8), start)
    assert turn(normal(T - 1, 8), start).shape == (T - 1, 8)


def test_a_layer_made_for_reading_leaves_nothing_to_one_that_trains() -> None:
    with torch.inference_mode():
        RotaryPositions(8, 11, base=77.0)
    x = normal(11, 8).requires_grad_()
    RotaryPositions(8, 11, base=77.0)(x).sum().backward()
    assert x.grad is not None


def test_a_table_that_is_changed_changes_no_other_layer() -> None:
    changed, other = (RotaryPositions(8, 11, base=77.0) for _ in range(2))
    expected = other.cos.clone()
    changed.cos.mul_(2)
    assert torch.equal(other.cos, expected)
    assert torch.equal(RotaryPositions(8, 11, base=77.0).cos, expected)


def test_the_tables_are_on_the_device_that_the_layer_is_made_on() -> None:
    with torch.device("meta"):
        layer = MultiHeadAttention(8, 8, 11, 0.0, num_heads=2, rotary_base=1e4)
        assert layer(torch.empty(1, 3, 8)).shape == (1, 3, 8)


def test_a_layer_made_without_memory_gets_its_tables_as_one_of_torch_gets_its_weights() -> None:
    with torch.device("meta"):
        turn = RotaryPositions(8, 11)
    turn.to_empty(device="cpu").reset_parameters()
    assert torch.equal(turn(normal(11, 8)), RotaryPositions(8, 11)(normal(11, 8)))


@pytest.mark.parametrize(("size", "length"), [(0, 4), (-2, 4), (4, 0), (4, -1)])
def test_a_size_below_one_is_refused(size: int, length: int) -> None:
    with pytest.raises(ValueError, match="must be at least 1, got"):
        RotaryPositions(size, length)
