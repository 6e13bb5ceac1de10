"""The counting model: the probabilities of the paper, whatever is counted, in the time there is."""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt.data import counting
from minigpt.data.batches import IGNORED, Window
from minigpt.data.counting import CountingModel, fit_in_time

few = settings(max_examples=60, deadline=None)


@st.composite
def counted_texts(draw: Any) -> tuple[list[int], int]:
    """A text of at most 60 tokens, perhaps none, and a vocabulary that may have more than it."""
    used = draw(st.integers(1, 6))
    tokens = draw(st.lists(st.integers(0, used - 1), max_size=60))
    unused = draw(st.integers(0, 3))
    return tokens, used + unused


def model_of(tokens: list[int], vocab_size: int, order: int = 5) -> CountingModel:
    return CountingModel(np.array(tokens, np.uint16), vocab_size, order)


def window(tokens: Sequence[int] | np.ndarray) -> Window:
    ids = np.array(tokens, np.int64)
    return ids[:-1], ids[1:].copy()


def next_probabilities(model: CountingModel, context: list[int]) -> np.ndarray:
    """Of each id after a context: (vocab_size,)."""
    rows = np.array([[*context, token] for token in range(model.vocab_size)], np.uint16)
    return np.exp(model.log_probabilities(rows)[:, -1])


@few
@given(text=counted_texts(), order=st.integers(1, 6), data=st.data())
def test_probabilities_sum_to_one_after_any_context(
    text: tuple[list[int], int], order: int, data: Any
) -> None:
    """Also after one that was never seen, and for ids that are never used."""
    tokens, vocab_size = text
    model = model_of(tokens, vocab_size, order)
    contexts = [
        data.draw(st.lists(st.integers(0, vocab_size - 1), max_size=7), label="any"),
        tokens[-4:],  # which may be followed by nothing
        tokens[:4],
        [],
    ]
    for context in contexts:
        p = next_probabilities(model, context)
        assert p.min() > 0.0
        assert p.sum() == pytest.approx(1.0, abs=1e-9)


def test_large_ids_do_not_collide() -> None:
    draw = np.random.default_rng(0)
    tokens = draw.choice([0, 1, 65_536, 69_998, 69_999], 3000)
    model = CountingModel(tokens, 70_000)
    for context in ([69_999, 0, 69_999, 65_536], [7, 7, 7, 7]):
        rows = np.array([[*context, token] for token in range(70_000)])
        p = np.exp(model.log_probabilities(rows)[:, -1])
        assert p.sum() == pytest.approx(1.0, abs=1e-9)


def by_the_book(tokens: list[int], vocab_size: int, order: int) -> Any:
    """Chen and Goodman's equations with dictionaries: p(token, context)."""
    counts: list[Counter[tuple[int, ...]]] = [Counter() for _ in range(order + 1)]
    for n in range(1, order + 1):
        before: dict[tuple[int, ...], set[int]] = defaultdict(set)
        for i in range(len(tokens) - n + 1):
            gram = tuple(tokens[i : i + n])
            counts[n][gram] += 1
            before[gram].add(tokens[i - 1] if i else -1)
        if n < order:
            counts[n] = Counter({gram: len(those) for gram, those in before.items()})

    seen_times = [Counter(of_length.values()) for of_length in counts]

    def discount(n: int, count: int) -> float:
        seen = seen_times[n]
        y = seen[1] / (seen[1] + 2 * seen[2])
        k = min(count, 3)
        return k - (k + 1) * y * seen[k + 1] / seen[k]

    def p(token: int, context: tuple[int, ...]) -> float:
        n = len(context) + 1
        shorter = p(token, context[1:]) if context else 1 / vocab_size
        after = {gram[-1]: c for gram, c in counts[n].items() if gram[:-1] == context}
        if not after:
            return shorter
        total = sum(after.values())
        rest = sum(discount(n, c) for c in after.values()) / total
        own = after[token] - discount(n, after[token]) if token in after else 0.0
        return own / total + rest * shorter

    return p


@pytest.mark.parametrize("order", [2, 3])
def test_probabilities_are_those_of_the_paper(order: int) -> None:
    draw, size = random.Random(0), 60
    # Rare ids and frequent ones, so that some n-grams are seen once, twice, three and four times.
    tokens = [int(size * draw.random() ** 4) for _ in range(800)]
    model, p = model_of(tokens, size, order), by_the_book(tokens, size, order)
    for _ in range(10):
        start = draw.randrange(700)
        seen, any_other = tokens[start : start + order - 1], draw.choices(range(size), k=order - 1)
        for context in (seen, any_other):
            expected = [p(token, tuple(context)) for token in range(size)]
            np.testing.assert_allclose(next_probabilities(model, context), expected, rtol=1e-9)


def test_a_row_is_read_from_its_own_beginning() -> None:
    tokens = random.Random(1).choices(range(8), k=300)
    model = model_of(tokens, 8)
    rows = np.array(tokens[:60], np.uint16).reshape(3, 2, 10)
    together = model.log_probabilities(rows)
    assert together.shape == rows.shape
    for i in range(3):
        for j in range(2):
            np.testing.assert_array_equal(model.log_probabilities(rows[i, j]), together[i, j])


def test_a_regular_text_costs_little_and_noise_what_it_must() -> None:
    draw, lengths = random.Random(2), [1] * 16
    regular, noise = [3, 1, 4, 1, 5, 9, 2, 6] * 500, draw.choices(range(16), k=4000)
    assert model_of(regular, 16).bits_per_byte([window(regular)], lengths) < 0.01
    other = window(draw.choices(range(16), k=4000))
    assert 4.0 < model_of(noise, 16).bits_per_byte([other], lengths) < 4.5


def test_bits_are_those_of_all_tokens_of_a_window_but_the_first() -> None:
    """As in the evaluation of a GPT: an end of text has to be predicted, and stands for no byte."""
    tokens = random.Random(3).choices(range(5), k=200)
    model, lengths, end_of_text = model_of(tokens, 5), [1, 2, 3, 1, 0], 4
    texts = [np.array([2, 0, end_of_text, 1]), np.array([end_of_text, 3])]
    nats = -sum(model.log_probabilities(text)[1:].sum() for text in texts)
    size = 1 + 0 + 2 + 1
    bits = model.bits_per_byte(map(window, texts), lengths)
    assert bits == pytest.approx(nats / math.log(2) / size)


def test_targets_that_do_not_count_are_left_out_of_the_bits() -> None:
    tokens = random.Random(4).choices(range(5), k=200)
    model, lengths = model_of(tokens, 5), [1, 2, 3, 1, 0]
    inputs, targets = window([2, 0, 4, 1, 3])
    targets[[0, 3]] = IGNORED
    found = model.log_probabilities(np.array([2, 0, 4, 1]))
    bits = model.bits_per_byte([(inputs, targets)], lengths)
    assert bits == pytest.approx(-found[[2, 3]].sum() / math.log(2) / (0 + 2))


# In the time there is


class Machine:
    """Where counting a token takes so many seconds, and nothing else takes any."""

    def __init__(self, seconds: float, monkeypatch: pytest.MonkeyPatch):
        self.now, self.seconds = 0.0, seconds
        self.counted: list[np.ndarray] = []
        monkeypatch.setattr(counting, "CountingModel", self.count)

    def count(self, tokens: np.ndarray, vocab_size: int) -> CountingModel:
        self.now += self.seconds * len(tokens)
        self.counted.append(tokens)
        return CountingModel(tokens[:10], vocab_size)


@pytest.mark.parametrize("each", [1e-7, 1e-6, 1e-5, 1e-4])
def test_the_time_is_kept_on_a_slow_machine_too(
    each: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, tokens = Machine(each, monkeypatch), np.arange(2_000_000)
    fit_in_time(tokens, 2_000_000, 1.0, clock=lambda: machine.now)
    trial = 32_768 * each  # the least that can be counted
    assert machine.now <= max(1.0, trial)
    last = machine.counted[-1]
    assert len(last) >= min(0.1 / each, 32_768)
    assert last[0] < 10 and last[-1] > 1_800_000  # from all over the text
    assert (len(last) == len(tokens)) == (each == 1e-7)


def test_with_time_all_of_a_text_is_counted_and_millions_of_a_longer_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for size in (0, 1, 20, 40_000, 100_000, 5_000_000):
        machine = Machine(1e-9, monkeypatch)
        fit_in_time(np.arange(size), max(size, 1), 1.0, clock=lambda: machine.now)  # noqa: B023
        found = [len(tokens) for tokens in machine.counted]
        assert found[-1] == min(size, 3_000_000) and len(found) <= 2
