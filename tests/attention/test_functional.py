"""The equations of attention: laws that hold for any sizes, torch's own function as reference,
and the errors. Numbers of the seed notebooks are in test_seeds.py.
"""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from minigpt.attention import (
    attention_scores,
    attention_weights,
    causal_average,
    causal_mask,
    scaled_dot_product_attention,
    simple_self_attention,
)

from .examples import few, normal

sizes = st.integers(1, 6)
seeds = st.integers(0, 1000)


def mask_of(*shape: int, seed: int = 0) -> Tensor:
    """About half of the pairs forbidden, but each query keeps its first key."""
    forbidden = normal(*shape, seed=seed) > 0
    forbidden[..., 0] = False
    return forbidden


# Attention


@given(T_q=sizes, T_k=sizes, d_k=sizes, d_v=sizes, masked=st.booleans(), seed=seeds)
@few
def test_equal_to_torchs_attention_of_one_sequence_to_another(
    T_q: int, T_k: int, d_k: int, d_v: int, masked: bool, seed: int
) -> None:
    q, k, v = normal(2, T_q, d_k, seed=seed), normal(2, T_k, d_k), normal(2, T_k, d_v)
    mask = mask_of(2, T_q, T_k, seed=seed) if masked else None
    expected = F.scaled_dot_product_attention(q, k, v, None if mask is None else ~mask)
    assert expected.shape == (2, T_q, d_v)
    torch.testing.assert_close(scaled_dot_product_attention(q, k, v, mask=mask), expected)


@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (2, 1, 3)], ids=str)
@pytest.mark.parametrize("masked", [True, False])
def test_leading_dimensions_are_batches(lead: tuple[int, ...], masked: bool) -> None:
    """The same as a loop over them; one mask serves all."""
    q, k, v = normal(*lead, 4, 6), normal(*lead, 5, 6, seed=1), normal(*lead, 5, 3, seed=2)
    mask = mask_of(4, 5) if masked else None
    together = scaled_dot_product_attention(q, k, v, mask=mask)
    weights, averages = attention_weights(q, k, mask=mask), causal_average(v)
    own, scores = simple_self_attention(v), attention_scores(q, k)
    assert together.shape == (*lead, 4, 3)
    for i in itertools.product(*map(range, lead)):
        alone = scaled_dot_product_attention(q[i], k[i], v[i], mask=mask)
        torch.testing.assert_close(together[i], alone)
        torch.testing.assert_close(weights[i], attention_weights(q[i], k[i], mask=mask))
        torch.testing.assert_close(scores[i], attention_scores(q[i], k[i]))
        torch.testing.assert_close(own[i], simple_self_attention(v[i]))
        torch.testing.assert_close(averages[i], causal_average(v[i]))


@pytest.mark.parametrize("shape", [(5,), (1, 5), (4, 5), (2, 1, 5), (3, 1, 4, 5)], ids=str)
def test_a_mask_may_be_shared_by_queries_and_sequences_or_not(shape: tuple[int, ...]) -> None:
    """From one mask for all queries, as for padding, to one for each sequence."""
    q, k, v = normal(3, 2, 4, 6), normal(3, 2, 5, 6, seed=1), normal(3, 2, 5, 6, seed=2)
    mask = mask_of(*shape)
    expected = F.scaled_dot_product_attention(q, k, v, ~mask.expand(3, 2, 4, 5))
    torch.testing.assert_close(scaled_dot_product_attention(q, k, v, mask=mask), expected)


@given(T_q=sizes, T_k=sizes, d=sizes, masked=st.booleans(), seed=seeds)
@few
def test_weights_are_rows_that_sum_to_one_and_respect_the_mask(
    T_q: int, T_k: int, d: int, masked: bool, seed: int
) -> None:
    mask = mask_of(T_q, T_k, seed=seed) if masked else torch.zeros(T_q, T_k, dtype=torch.bool)
    weights = attention_weights(normal(T_q, d, seed=seed), normal(T_k, d), mask=mask)
    assert torch.equal(weights == 0, mask)
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(T_q, dtype=torch.float64))


@given(T=sizes, d=sizes)
@few
def test_simple_self_attention_is_attention_without_scaling(T: int, d: int) -> None:
    x = normal(T, d)
    expected = scaled_dot_product_attention(math.sqrt(d) * x, x, x)
    torch.testing.assert_close(simple_self_attention(x), expected)


def test_huge_scores_give_one_hot_weights() -> None:
    q, k = torch.full((1, 1), 1e30), torch.tensor([[1.0], [2.0], [-3.0]])
    assert torch.equal(attention_weights(q, k), torch.tensor([[0.0, 1.0, 0.0]]))


# The causal mask and the causal average


@given(T=st.integers(0, 12))
@few
def test_the_causal_mask_forbids_exactly_the_later_keys(T: int) -> None:
    mask = causal_mask(T)
    assert mask.dtype == torch.bool
    assert mask.tolist() == [[j > i for j in range(T)] for i in range(T)]


@given(T=sizes, d=sizes, seed=seeds)
@few
def test_the_causal_average_is_causal_attention_with_equal_scores(
    T: int, d: int, seed: int
) -> None:
    x = normal(2, T, d, seed=seed)
    equal_scores = scaled_dot_product_attention(torch.zeros_like(x), x, x, mask=causal_mask(T))
    torch.testing.assert_close(causal_average(x), equal_scores)


# Errors


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8], ids=str)
def test_a_mask_of_another_type_than_bool_is_refused(dtype: torch.dtype) -> None:
    x, mask = normal(3, 2), causal_mask(3).to(dtype)
    with pytest.raises(ValueError, match=rf"boolean .* got {dtype}"):
        attention_weights(x, x, mask=mask)
    with pytest.raises(ValueError, match=rf"boolean .* got {dtype}"):
        scaled_dot_product_attention(x, x, x, mask=mask)


@pytest.mark.parametrize("shape", [(4, 4), (3,), (3, 5), (3, 4, 5), (1, 1, 4, 5)], ids=str)
def test_a_mask_that_does_not_fit_the_scores_is_refused(shape: tuple[int, ...]) -> None:
    q, k = normal(2, 4, 6), normal(2, 5, 6)
    with pytest.raises(ValueError, match="does not fit") as error:
        attention_weights(q, k, mask=torch.zeros(shape, dtype=torch.bool))
    assert f"mask {shape}" in str(error.value)
    assert "scores (2, 4, 5)" in str(error.value)


def test_queries_and_keys_of_different_sizes_are_refused() -> None:
    for refused in (attention_scores, attention_weights):
        with pytest.raises(ValueError, match=r"last dimension, got \(4, 6\) and \(5, 3\)"):
            refused(normal(4, 6), normal(5, 3))


@pytest.mark.parametrize("values", [1, 4, 6])
def test_there_is_one_value_for_each_key(values: int) -> None:
    message = rf"keys \(5, 6\) and values \({values}, 3\)"
    with pytest.raises(ValueError, match=message):
        scaled_dot_product_attention(normal(4, 6), normal(5, 6), normal(values, 3))
