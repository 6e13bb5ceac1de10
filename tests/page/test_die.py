"""How the page draws a token: filters as in the package, then the die, in node."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from minigpt.config import SampleConfig
from minigpt.generation import sampler
from minigpt.generation.repetition import Boundaries
from minigpt.page.build import page_boundaries

from .in_node import Worker

DRAWN = """(logits, settings, numbers) =>
  numbers.map((number) => drawn(Float32Array.from(logits), settings, [], number))"""
FILTERED = "(logits, ...rest) => filtered(Float32Array.from(logits), ...rest)"
FILTERED_WITHIN = """(logits, settings, seen, lists) =>
  filtered(Float32Array.from(logits), settings, seen, { boundaries: boundariesOf(lists) })"""
NUMBERS = """(count, place, ids) =>
  Array.from({length: count}, (_, seed) => dieNumber(seed, place, ids))"""
THROWN = "(throws) => throws.map((one) => dieNumber(...one))"
few = settings(max_examples=50, deadline=None)
logit_lists = st.lists(st.floats(-9, 9, width=32), min_size=1, max_size=12)
ties = st.lists(st.sampled_from([-1.0, 0.0, 2.0]), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    worker = Worker(tmp_path_factory.mktemp("node"))
    yield worker
    worker.close()


def drawn(worker: Worker, logits: Any, *numbers: float, **options: Any) -> list[int]:
    """The tokens that these numbers draw."""
    settings = {"temperature": 1, "repetitionPenalty": 1} | options
    tokens: list[int] = worker.call(DRAWN, np.asarray(logits).tolist(), settings, numbers)
    return tokens


@given(
    logits=logit_lists | ties,
    temperature=st.sampled_from([0.5, 1.0, 2.0]),
    top_k=st.none() | st.integers(1, 12),
    top_p=st.none() | st.sampled_from([0.1, 0.5, 0.9, 1.0]),
    min_p=st.none() | st.sampled_from([0.05, 0.3, 1.0]),
    penalty=st.sampled_from([0.8, 1.0, 1.5]),
    data=st.data(),
)
@few
def test_the_filters_are_those_of_the_package(
    worker: Worker, logits: list[float], penalty: float, data: st.DataObject, **options: Any
) -> None:
    seen = data.draw(st.lists(st.integers(0, len(logits) - 1), max_size=3))
    forbidden = data.draw(st.sets(st.integers(1, 12).filter(lambda i: i < len(logits)), max_size=1))
    is_seen = np.isin(np.arange(len(logits)), seen)
    bias = np.where(np.isin(np.arange(len(logits)), [*forbidden]), -np.inf, np.float32(0))
    penalised = sampler.penalise_repetition(np.array(logits, np.float32) + bias, is_seen, penalty)
    expected = sampler.filtered(penalised, **options)

    names = {"temperature": "temperature", "top_k": "topK", "top_p": "topP", "min_p": "minP"}
    given_settings = {names[name]: value for name, value in options.items()}
    given_settings["repetitionPenalty"] = penalty
    filtered = worker.call(FILTERED, logits, given_settings, seen, {"forbidden": [*forbidden]})
    kept = [logit is not None for logit in filtered]  # JSON has no minus infinity
    assert kept == np.isfinite(expected).tolist()
    np.testing.assert_allclose(
        [logit for logit in filtered if logit is not None], expected[kept], rtol=1e-5
    )


@given(
    text=st.lists(st.integers(0, 4), max_size=30),
    multiplier=st.sampled_from([0.0, 0.5, 2.0]),
    allowed_length=st.integers(1, 4),
)
@example(text=[2, 1, 0, 2, 1], multiplier=2.0, allowed_length=1)  # the word would be written again
@few
def test_a_repeated_passage_is_penalised_as_in_the_package(
    worker: Worker, text: list[int], multiplier: float, allowed_length: int
) -> None:
    """The last token is a separator; the first goes on with a word that the second may end."""
    config = SampleConfig(
        samples=1,
        dry_multiplier=multiplier,
        dry_base=1.5,
        dry_allowed_length=allowed_length,
    )
    zeros = np.zeros((1, 5), np.float32)
    ids = np.arange(5)
    boundaries = Boundaries(ids == 4, ids == 0, ids == 1)
    draws = sampler.TokenSampler(config, zeros[0], text, boundaries=boundaries)
    page_settings = {
        "temperature": 1,
        "dryMultiplier": multiplier,
        "dryBase": 1.5,
        "dryAllowedLength": allowed_length,
    }
    lists = page_boundaries(boundaries)
    filtered = worker.call(FILTERED_WITHIN, [0.0] * 5, page_settings, text, lists)
    np.testing.assert_allclose(filtered, draws.adjusted(zeros)[0], rtol=1e-6)


def test_ten_tokens_as_likely_as_each_other_are_cut_as_in_the_package(worker: Worker) -> None:
    """Nine of them reach 0.9, whatever the rounding. Of two, the first has not quite a half if
    there is a third, however unlikely that is."""
    for logits, p in (([0.0] * 10, 0.9), ([0.0, 0.0, -16.0], 0.5)):
        filtered = worker.call(FILTERED, logits, {"temperature": 1, "topP": p}, [])
        expected = sampler.filtered(np.array(logits, np.float32), top_p=p)
        assert [logit is not None for logit in filtered] == np.isfinite(expected).tolist()


@given(logits=logit_lists | ties, number=st.floats(0, 1, exclude_max=True))
@few
def test_the_token_is_the_one_on_which_the_number_falls(
    worker: Worker, logits: list[float], number: float
) -> None:
    """The likeliest lies first; of equals the one with the smallest id."""
    order = np.argsort(-np.array(logits), kind="stable")
    weights = np.exp(np.array(logits)[order])
    ends = np.cumsum(weights) / weights.sum()
    if np.abs(ends - number).min() < 1e-9:
        return  # on a border, which rounding may move
    assert drawn(worker, logits, number) == [order[np.searchsorted(ends, number, side="right")]]


def test_at_temperature_0_the_die_does_not_matter(worker: Worker) -> None:
    assert drawn(worker, [1, 3, 3], 0.0, 0.5, 0.999, temperature=0) == [1, 1, 1]


def test_no_number_draws_a_token_that_is_left_out(worker: Worker) -> None:
    assert {*drawn(worker, [1, 5, 3, 4], 0.0, 0.5, 1 - 2**-32, topK=2)} == {1, 3}


def test_over_many_seeds_tokens_are_drawn_as_often_as_they_are_likely(worker: Worker) -> None:
    """By a chi-square test of 4,000 draws; its statistic has a mean of 7 here."""
    probabilities = np.array([0.3, 0.25, 0.2, 0.1, 0.08, 0.04, 0.02, 0.01])
    logits = np.log(probabilities)
    ids = [3, 1, 4, 1, 5]
    numbers = worker.call(NUMBERS, 4000, len(ids), ids)
    assert all(0 < number < 1 for number in numbers)
    counts = np.bincount(drawn(worker, logits, *numbers), minlength=8)
    expected = probabilities * len(numbers)
    assert ((counts - expected) ** 2 / expected).sum() < 24.3  # 1 in 1,000 is larger


@pytest.mark.parametrize("changed", ["a token", "the order", "the seed", "the place"])
def test_another_text_place_or_seed_throws_the_die_anew(worker: Worker, changed: str) -> None:
    """The numbers of 500 pairs that differ in one thing only are as good as independent."""
    random = np.random.default_rng(0)
    throws, others = [], []
    for _ in range(500):
        ids = random.integers(300, size=6)
        ids[0] = (ids[1] + 1) % 300
        other = ids.copy()
        if changed == "a token":
            other[random.integers(6)] += 1
        if changed == "the order":
            other[[0, 1]] = other[[1, 0]]
        seed = int(random.integers(2**32))
        place = 5 if changed == "the place" else 6
        other_seed = seed + (changed == "the seed")
        throws.append((seed, 6, ids.tolist()))
        others.append((other_seed, place, other.tolist()))
    one, two, again = np.array([worker.call(THROWN, some) for some in (throws, others, throws)])
    assert (one == again).all()
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.15
    assert 0.2 < np.abs(one - two).mean() < 0.47  # 1/3 if they are independent


def test_of_the_largest_that_are_kept_those_count_that_reach_p_together(worker: Worker) -> None:
    """What is left out by the first filter is not counted by the next."""
    logits = np.log([0.4, 0.3, 0.2, 0.1]).tolist()
    for chosen, kept in (({"topK": 2, "topP": 0.5}, [0]), ({"topP": 0.5}, [0, 1])):
        given_settings = {"temperature": 1, "repetitionPenalty": 1, **chosen}
        found = worker.call(FILTERED, logits, given_settings, [])
        assert [place for place, logit in enumerate(found) if logit is not None] == kept
