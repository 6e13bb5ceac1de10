"""From logits to a token: which tokens may be drawn, how often, and that a seed repeats it."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from minigpt.generation.sampling import apply_temperature, keep_top_k, sample, uniforms

few = settings(max_examples=25, deadline=None)

some_logits = st.lists(st.floats(-20, 20, width=32), min_size=1, max_size=12).map(
    lambda row: torch.tensor([row])
)
different_logits = st.lists(
    st.integers(-100, 100).map(float), min_size=1, max_size=12, unique=True
).map(lambda row: torch.tensor([row]))
temperatures = st.floats(0.01, 100)


def numbers(count: int = 1, seed: int = 0) -> Tensor:
    """Random numbers in [0, 1), one for each row."""
    return next(uniforms(seed, count))


# Temperature


@given(logits=some_logits, top_k=st.none() | st.integers(1, 15))
@few
def test_temperature_zero_takes_the_largest_logit(logits: Tensor, top_k: int | None) -> None:
    assert logits[0, sample(logits, numbers(), temperature=0.0, top_k=top_k)] == logits.max()


@pytest.mark.parametrize("temperature", [1e-3, 1e-20, 1e-39, 1e-300])
@pytest.mark.parametrize("row", [[1.0, 3.0, 2.0], [-3.0, 0.0, -1.0]], ids=str)
def test_a_temperature_near_zero_does_too(temperature: float, row: list[float]) -> None:
    assert sample(torch.tensor([row]), numbers(), temperature=temperature).item() == 1


@given(logits=different_logits, temperature=temperatures)
@few
def test_temperature_divides_the_logits(logits: Tensor, temperature: float) -> None:
    torch.testing.assert_close(apply_temperature(logits, temperature), logits / temperature)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("top_k", [None, 3])
def test_tokens_are_drawn_as_often_as_the_softmax_says(
    temperature: float, top_k: int | None
) -> None:
    """Within five standard deviations of 50,000 draws, n p ± 5 sqrt(n p (1 - p))."""
    logits, n = torch.tensor([2.0, -1.0, 0.5, 1.0, 0.0]), 50_000
    kept = logits if top_k is None else logits.masked_fill(logits < 0.5, -torch.inf)
    p = (kept.double() / temperature).softmax(-1)
    rows = logits.expand(n, -1)
    drawn = sample(rows, numbers(n), temperature=temperature, top_k=top_k)
    counts = drawn.bincount(minlength=5)
    assert drawn.shape == (n,) and drawn.dtype == torch.int64
    assert ((counts - n * p).abs() <= 5 * (n * p * (1 - p)).sqrt()).all()


# Top k


@given(logits=different_logits, k=st.integers(1, 15))
@few
def test_top_k_keeps_the_k_largest_as_they_are(logits: Tensor, k: int) -> None:
    kept = keep_top_k(logits, k)
    largest = sorted(logits[0].tolist(), reverse=True)[:k]
    assert sorted(kept[kept.isfinite()].tolist(), reverse=True) == largest
    assert torch.equal(kept, torch.where(kept.isfinite(), logits, -torch.inf))


@given(logits=some_logits, k=st.integers(1, 15))
@few
def test_top_k_always_leaves_a_candidate(logits: Tensor, k: int) -> None:
    assert keep_top_k(logits, k).isfinite().sum() >= min(k, logits.shape[-1])


def test_ties_at_the_edge_stay() -> None:
    kept = keep_top_k(torch.tensor([[1.0, 3.0, 1.0, 0.0]]), 2)
    assert kept.tolist() == [[1.0, 3.0, 1.0, -torch.inf]]


def test_each_row_keeps_its_own() -> None:
    kept = keep_top_k(torch.tensor([[1.0, 2.0], [20.0, 10.0]]), 1)
    assert kept.tolist() == [[-torch.inf, 2.0], [20.0, -torch.inf]]


@given(logits=different_logits, k=st.integers(1, 15), temperature=temperatures)
@few
def test_what_is_drawn_is_among_the_k_largest(logits: Tensor, k: int, temperature: float) -> None:
    drawn = sample(logits.expand(100, -1), numbers(100), temperature=temperature, top_k=k)
    assert set(drawn.tolist()) <= set(logits[0].argsort(descending=True)[:k].tolist())


# Randomness


def test_the_same_seed_draws_the_same_tokens_and_another_others() -> None:
    logits = torch.zeros(100, 50)
    one, same, other = (sample(logits, numbers(100, seed)) for seed in (1, 1, 2))
    assert torch.equal(one, same) and not torch.equal(one, other)


def test_the_logits_are_left_as_they_were() -> None:
    logits = torch.tensor([[1.0, 2.0, 3.0]])
    sample(logits, numbers(), temperature=0.5, top_k=1)
    assert logits.tolist() == [[1.0, 2.0, 3.0]]
