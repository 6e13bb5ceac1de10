"""From logits to a token: which tokens may be drawn, how often, and that a seed repeats it."""

from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from minigpt.generation.sampling import (
    apply_temperature,
    exponentials,
    keep_min_p,
    keep_top_k,
    keep_top_p,
    penalise_counts,
    penalise_repetition,
    sample,
)

few = settings(max_examples=25, deadline=None)

some_logits = st.lists(st.floats(-20, 20, width=32), min_size=1, max_size=12).map(
    lambda row: torch.tensor([row])
)
different_logits = st.lists(
    st.integers(-100, 100).map(float), min_size=1, max_size=12, unique=True
).map(lambda row: torch.tensor([row]))
temperatures = st.floats(0.01, 100)


def drawn(logits: Tensor, seed: int = 0, **filters: Any) -> Tensor:
    """A token for each row of logits ``(b, vocab_size)``."""
    return sample(logits, exponentials(seed, *logits.shape), **filters)


# Temperature


@given(logits=some_logits, top_k=st.none() | st.integers(1, 15))
@few
def test_temperature_zero_takes_the_largest_logit(logits: Tensor, top_k: int | None) -> None:
    assert logits[0, drawn(logits, temperature=0.0, top_k=top_k)] == logits.max()


@pytest.mark.parametrize("temperature", [1e-3, 1e-20, 1e-39, 1e-300])
@pytest.mark.parametrize("row", [[1.0, 3.0, 2.0], [-3.0, 0.0, -1.0]], ids=str)
def test_a_temperature_near_zero_does_too(temperature: float, row: list[float]) -> None:
    assert drawn(torch.tensor([row]), temperature=temperature).item() == 1


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
    noise = exponentials(0, 1000, 5)
    draws = [sample(part, noise, temperature=temperature, top_k=top_k) for part in rows.split(1000)]
    counts = torch.cat(draws).bincount(minlength=5)
    assert draws[0].shape == (1000,) and draws[0].dtype == torch.int64
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
    tokens = drawn(logits.expand(100, -1), temperature=temperature, top_k=k)
    assert set(tokens.tolist()) <= set(logits[0].argsort(descending=True)[:k].tolist())


# Top p


@given(logits=some_logits, p=st.floats(1e-6, 1))
@few
def test_top_p_keeps_the_fewest_tokens_that_reach_p(logits: Tensor, p: float) -> None:
    probabilities = logits[0].double().softmax(-1)
    kept = keep_top_p(logits, p)[0].isfinite()
    assert probabilities[kept].sum() >= p - 1e-5
    if kept.sum() > 1:
        assert probabilities[kept].sum() - probabilities[kept].min() < p + 1e-5
    if not kept.all():
        assert probabilities[kept].min() >= probabilities[~kept].max()


def test_top_p_keeps_a_token_whose_like_is_not_needed() -> None:
    """Of four alike, two reach a half; those that come first."""
    assert keep_top_p(torch.zeros(1, 4), 0.5).tolist() == [[0.0, 0.0, -torch.inf, -torch.inf]]


def test_top_p_of_one_keeps_every_token() -> None:
    """Also those behind the point where the sum, rounded, has reached 1."""
    logits = 5 * torch.randn(20, 5000, generator=torch.Generator().manual_seed(0))
    assert torch.equal(keep_top_p(logits, 1.0), logits)


# Min p


@given(logits=some_logits, p=st.floats(0, 1))
@few
def test_min_p_is_measured_by_the_likeliest_token(logits: Tensor, p: float) -> None:
    shares = (logits[0].double() - logits[0].double().max()).exp()  # of the likeliest's probability
    kept = keep_min_p(logits, p)[0].isfinite()
    assert (shares[kept] >= p * (1 - 1e-5)).all()
    assert (shares[~kept] <= p * (1 + 1e-5)).all()


# All of them

FILTERS: list[Callable[[Tensor, float], Tensor]] = [
    lambda logits, p: keep_top_k(logits, max(int(10 * p), 1)),
    lambda logits, p: keep_top_p(logits, max(p, 1e-9)),
    keep_min_p,
]


@pytest.mark.parametrize("keep", FILTERS, ids=["top k", "top p", "min p"])
@given(
    logits=st.lists(
        st.sampled_from([-torch.inf, 0.0]) | st.floats(-(2**20), 2**20, width=32), min_size=1
    ),
    p=st.floats(0, 1),
)
@few
def test_the_likeliest_token_is_always_kept_and_no_logit_is_changed(
    keep: Callable[[Tensor, float], Tensor], logits: list[float], p: float
) -> None:
    row = torch.tensor([logits])
    if row.isfinite().any():
        kept = keep(row, p)
        assert kept[0, row.argmax()] == row.max()
        assert torch.equal(kept, torch.where(kept.isfinite(), row, -torch.inf))


@pytest.mark.parametrize("keep", FILTERS, ids=["top k", "top p", "min p"])
@pytest.mark.parametrize("p", [0.3, 0.9])
def test_any_number_of_dimensions_is_filtered_row_by_row(
    keep: Callable[[Tensor, float], Tensor], p: float
) -> None:
    logits = torch.randn(2, 3, 12, generator=torch.Generator().manual_seed(0))
    rows = [keep(row[None], p) for row in logits.flatten(0, 1)]
    assert torch.equal(keep(logits, p), torch.cat(rows).unflatten(0, (2, 3)))


# Penalties


def test_a_repetition_penalty_makes_seen_tokens_less_likely_whatever_their_sign() -> None:
    logits, seen = torch.tensor([3.0, -3.0, 3.0, -3.0]), torch.tensor([True, True, False, False])
    assert penalise_repetition(logits, seen, 1.5).tolist() == [2.0, -4.5, 3.0, -3.0]


def test_presence_counts_once_and_frequency_every_time() -> None:
    logits, counts = torch.zeros(3), torch.tensor([0.0, 1.0, 4.0])
    assert penalise_counts(logits, counts, 10.0, 1.0).tolist() == [0.0, -11.0, -14.0]
    assert penalise_counts(logits, counts, -1.0, -0.5).tolist() == [0.0, 1.5, 3.0]


# Parity


@pytest.mark.parametrize("seed", range(5))
def test_each_filter_does_what_transformers_does(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(4, 200, generator=generator)
    ids = torch.randint(200, (4, 30), generator=generator)
    seen = torch.zeros(4, 200, dtype=torch.bool).scatter(1, ids, True)
    for k, p, scale in [(1, 0.01, 0.5), (7, 0.3, 0.9), (50, 0.9, 1.3), (500, 0.999, 2.0)]:
        pairs = [
            (apply_temperature(logits, scale), transformers.TemperatureLogitsWarper(scale)),
            (keep_top_k(logits, k), transformers.TopKLogitsWarper(k)),
            (keep_top_p(logits, p), transformers.TopPLogitsWarper(p)),
            (keep_min_p(logits, p), transformers.MinPLogitsWarper(p)),
            (
                penalise_repetition(logits, seen, scale),
                transformers.RepetitionPenaltyLogitsProcessor(scale),
            ),
        ]
        for ours, theirs in pairs:
            torch.testing.assert_close(ours, theirs(ids, logits.clone()))


# Randomness


def test_the_same_seed_draws_the_same_tokens_and_another_others() -> None:
    logits = torch.zeros(100, 50)
    one, same, other = (drawn(logits, seed) for seed in (1, 1, 2))
    assert torch.equal(one, same) and not torch.equal(one, other)


def test_the_logits_are_left_as_they_were() -> None:
    logits = torch.tensor([[1.0, 2.0, 3.0]])
    drawn(logits, temperature=0.5, top_k=1, top_p=0.5, min_p=0.5)
    assert logits.tolist() == [[1.0, 2.0, 3.0]]


def first(count: int, seed: int, rows: int, columns: int) -> Tensor:
    """Random numbers ``(count, rows, columns)``."""
    return torch.stack([x.clone() for x in islice(exponentials(seed, rows, columns), count)])


def test_the_numbers_of_a_row_do_not_depend_on_how_many_rows_there_are() -> None:
    eight, three = first(20, 7, 8, 30), first(20, 7, 3, 30)
    assert torch.equal(eight[:, :3], three)
    assert eight.dtype == torch.float64 and eight.min() > 0
    assert len(eight.unique()) == eight.numel()


def test_the_numbers_are_exponentially_distributed() -> None:
    """Largest distance to the distribution function, Kolmogorov's: below 1.63 / sqrt(n) in 99%."""
    numbers = first(10, 7, 4, 250).flatten().sort().values
    n = len(numbers)
    distance = (1 - (-numbers).exp() - (torch.arange(n) + 0.5) / n).abs().max()
    assert distance < 1.63 / n**0.5


def test_seeds_and_rows_have_numbers_of_their_own() -> None:
    """Also where a seed and a row have the digits of another seed: [1, 2] and 1 + 2 * 2^32."""
    found = [first(1, seed, 3, 50)[0] for seed in (0, 1, 2, 1 + 2**32, 1 + 2 * 2**32, 2**63 - 1)]
    assert len(torch.stack(found).unique()) == 6 * 3 * 50


def test_a_token_without_probability_is_never_drawn() -> None:
    """Not even if its number is the smallest that there is, nor if all others have little."""
    logits = torch.tensor([[-torch.inf, 0.0, -torch.inf, -200.0]])
    for numbers in ([5e-324, 1e300, 1.0, 1.0], [1.0, 1e300, 1e-300, 5e-324]):
        assert sample(logits, iter([torch.tensor([numbers], dtype=torch.float64)])).item() == 1


def test_a_small_change_of_the_logits_rarely_changes_what_is_drawn() -> None:
    """So that a text is the same alone and in a batch. A change of one in 65,536 changes a few of
    100,000 draws, however many tokens there are.
    """
    logits = torch.randn(5000, 1000, generator=torch.Generator().manual_seed(0))
    assert (drawn(logits) != drawn(logits * (1 + 2**-16))).sum() <= 1
