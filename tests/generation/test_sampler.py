"""From logits to tokens: which may be drawn, how often, that a seed repeats it; and all that a
SampleConfig asks for, in the order of transformers, whose `generate` is the reference.
"""

from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt.config import SampleConfig
from minigpt.generation.sampler import (
    TokenSampler,
    draw,
    exponentials,
    filtered,
    keep_min_p,
    keep_top_k,
    keep_top_p,
    penalise_repetition,
)
from minigpt.generation.window import Array
from minigpt.tokenizer import CharacterTokenizer

from ..lazy import Lazy

transformers = Lazy("transformers")

few = settings(max_examples=25, deadline=None)

LETTERS = CharacterTokenizer("abcdefghijklmnopqrstuvwxyz .,!?'-\n0123456789")
V = LETTERS.vocab_size

some_logits = st.lists(st.floats(-20, 20, width=32), min_size=1, max_size=12).map(
    lambda row: np.array([row], np.float32)
)


def drawn(logits: Array, seed: int = 0, **filters: Any) -> Array:
    """A token for each row of logits ``(b, vocab_size)``."""
    return draw(logits, exponentials(seed, *logits.shape), **filters)


def softmax(logits: Array) -> Array:
    weights = np.exp(logits.astype(float) - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def assert_as_often(tokens: Array, p: Array) -> None:
    """Within five standard deviations of n draws, n p ± 5 sqrt(n p (1 - p))."""
    counts, n = np.bincount(tokens, minlength=len(p)), len(tokens)
    assert (np.abs(counts - n * p) <= 5 * np.sqrt(n * p * (1 - p))).all()


# Temperature and filters


@pytest.mark.parametrize("temperature", [0.0, 1e-300, 1e-20, 1e-3])
def test_a_temperature_of_zero_or_next_to_it_takes_the_largest_logit(temperature: float) -> None:
    rows = np.array([[1.0, 3.0, 2.0], [-3.0, 0.0, -1.0]], np.float32)
    assert drawn(rows, temperature=temperature, top_k=3).tolist() == [1, 1]


@given(logits=some_logits, k=st.integers(1, 15))
@few
def test_top_k_keeps_the_k_largest_and_their_equals(logits: Array, k: int) -> None:
    kept = keep_top_k(logits, k)
    smallest = sorted(logits[0], reverse=True)[min(k, logits.size) - 1]
    np.testing.assert_array_equal(kept, np.where(logits >= smallest, logits, -np.inf))


@given(logits=some_logits, p=st.floats(1e-6, 1))
@few
def test_top_p_keeps_the_fewest_tokens_that_reach_p(logits: Array, p: float) -> None:
    probabilities = softmax(logits)[0]
    kept = np.isfinite(keep_top_p(logits, p)[0])
    assert probabilities[kept].sum() >= p - 1e-5
    if kept.sum() > 1:
        assert probabilities[kept].sum() - probabilities[kept].min() < p + 1e-5
    if not kept.all():
        assert probabilities[kept].min() >= probabilities[~kept].max()


def test_top_p_keeps_the_first_of_equals_that_are_not_all_needed() -> None:
    logits = np.array([[0, 1, 0, 1, 1, 0], [0, 0, 0, 0, 0, -9]], np.float32)
    kept = keep_top_p(logits, 0.45)
    assert np.isfinite(kept).astype(int).tolist() == [[0, 1, 0, 1, 0, 0], [1, 1, 1, 0, 0, 0]]
    assert np.array_equal(keep_top_p(logits, 1.0), logits)


@pytest.mark.parametrize(
    ("weights", "p", "count"),
    [
        ([1, 1, 1, 1], 0.5, 2),
        ([1, 1, 1, 1], 0.75, 3),
        ([2, 1, 1], 0.5, 1),
        ([4, 2, 1, 1], 0.75, 2),
        ([1, 1, 2], 0.75, 2),
        ([1, 1], 1.0, 2),
    ],
)
def test_top_p_keeps_no_token_more_when_the_likeliest_reach_p_exactly(
    weights: list[int], p: float, count: int
) -> None:
    """Here probabilities and their sums are exact."""
    logits = np.log2(np.array([weights], np.float32)) * np.float32(np.log(2))
    assert np.isfinite(keep_top_p(logits, p)).sum() == count


# Randomness


def test_a_seed_draws_the_tokens_that_it_always_drew() -> None:
    """As found with an earlier version, which computed with torch."""
    logits = np.tile(3 * np.sin(np.arange(40, dtype=np.float32) * 7), (3, 1))
    noise = exponentials(11, 3, 40)
    tokens = [draw(logits, noise, temperature=0.8, top_k=20, top_p=0.9).tolist() for _ in range(5)]
    assert tokens == [[28, 28, 28], [38, 19, 1], [2, 19, 3], [12, 11, 11], [37, 20, 37]]


def first(count: int, seed: int, rows: int, columns: int) -> Array:
    """Random numbers ``(count, rows, columns)``."""
    return np.stack([x.copy() for x in islice(exponentials(seed, rows, columns), count)])


def test_seeds_and_rows_have_numbers_of_their_own_however_many_rows_there_are() -> None:
    """Also where a seed and a row have the digits of another seed: [1, 2] and 1 + 2 * 2^32."""
    found = [first(2, seed, 3, 50) for seed in (0, 1, 2, 1 + 2**32, 1 + 2 * 2**32, 2**63 - 1)]
    assert len(np.unique(found)) == 6 * 2 * 3 * 50 and np.min(found) > 0
    assert np.array_equal(first(2, 1, 8, 50)[:, :3], found[1])


def test_rows_may_be_counted_from_any_number() -> None:
    """Row 3 is the same whether rows 0 to 2 are there or not: a server writes a text alone that
    generate writes beside others."""
    for start in (1, 3):
        together = first(3, 7, 5, 20)[:, start:]
        alone = islice(exponentials(7, 5 - start, 20, start), 3)
        assert np.array_equal(together, np.stack([numbers.copy() for numbers in alone]))


def test_a_sampler_that_counts_from_another_sample_draws_what_that_sample_draws() -> None:
    config = SampleConfig(samples=4, seed=3, temperature=2.0)
    logits = np.random.default_rng(0).normal(size=(4, V)).astype(np.float32)
    bias = np.zeros(V, np.float32)
    together = TokenSampler(config, bias, [])(logits)
    one = SampleConfig(samples=1, seed=3, temperature=2.0)
    alone = [TokenSampler(one, bias, [], first=i)(logits[i : i + 1])[0] for i in range(4)]
    assert together.tolist() == alone


def test_a_token_without_probability_is_never_drawn() -> None:
    """Not even if its number is the smallest that there is, nor if all others have little."""
    logits = np.array([[-np.inf, 0.0, -np.inf, -200.0]], np.float32)
    for numbers in ([5e-324, 1e300, 1.0, 1.0], [1.0, 1e300, 1e-300, 5e-324]):
        assert draw(logits, iter([np.array([numbers])])) == [1]


def test_a_number_that_is_zero_becomes_the_smallest_above_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One in 2^53 is; a token without probability divided by it would be no number."""

    class Zeros:
        def __init__(self, _: Any):
            pass

        def standard_exponential(self, out: Array) -> None:
            out[:] = 0.0

    monkeypatch.setattr(np.random, "Generator", Zeros)
    assert (next(exponentials(0, 2, 3)) > 0).all()


def test_a_small_change_of_the_logits_rarely_changes_what_is_drawn() -> None:
    """So that a text is the same alone and in a batch. A change of one in 65,536 changes a few of
    100,000 draws, however many tokens there are.
    """
    logits = np.random.default_rng(0).normal(size=(1000, 1000)).astype(np.float32)
    assert (drawn(logits) != drawn(logits * (1 + 2**-16))).sum() <= 1


# A SampleConfig


def ids(text: str) -> list[int]:
    return LETTERS.encode(text)


def sampler(
    prompt: list[int] | None = None, samples: int = 1, bias: Any = None, **settings: Any
) -> TokenSampler:
    config = SampleConfig(samples=samples, **{"temperature": 1.0, "seed": 0} | settings)
    biases = np.zeros(V, np.float32)
    for letter, value in (bias or {}).items():
        biases[ids(letter)] = value
    return TokenSampler(config, biases, prompt or [])


def logits_of(values: dict[str, float], others: float = -9.0) -> Array:
    """Logits ``(1, V)``."""
    logits = np.full((1, V), others, np.float32)
    logits[0, ids("".join(values))] = list(values.values())
    return logits


SETTINGS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"temperature": 0.6}, {}),
    ({"temperature": 1.0, "repetition_penalty": 1.7}, {}),
    ({"temperature": 1.0, "repetition_penalty": 0.6}, {}),
    ({"temperature": 0.7, "top_k": 9, "top_p": 0.8, "min_p": 0.02}, {}),
    ({"temperature": 2.5, "top_p": 0.7}, {}),
    ({"temperature": 2.5, "min_p": 0.2}, {}),
    (
        {"temperature": 0.9, "repetition_penalty": 2.0, "top_k": 12, "top_p": 0.9},
        {"bias": {"e": 2.5, "t": -1.5, "\n": 4.0}},
    ),
]


@pytest.fixture(scope="module")
def gpt2() -> Any:
    torch.manual_seed(0)
    shape: dict[str, Any] = {"n_positions": 64, "n_embd": 8, "n_layer": 1, "n_head": 1}
    config = transformers.GPT2Config(vocab_size=V, eos_token_id=None, bos_token_id=None, **shape)
    model = transformers.GPT2LMHeadModel(config).eval()
    torch.nn.init.normal_(model.transformer.wte.weight, std=0.6)
    return model


@pytest.mark.parametrize(("shared", "ours"), SETTINGS)
def test_tokens_are_as_probable_as_with_transformers(
    gpt2: Any, shared: dict[str, Any], ours: dict[str, Any]
) -> None:
    """At each step of a text that it generates: from its logits its scores after all filters. And
    they are drawn that often."""
    theirs: dict[str, Any] = {"top_k": 0} | shared
    if "bias" in ours:
        biases = ours["bias"].items()
        theirs["sequence_bias"] = [[ids(text), float(bias)] for text, bias in biases]
    text = torch.tensor([ids("the fox, the x")])
    out = gpt2.generate(
        text,
        do_sample=True,
        max_new_tokens=12,
        pad_token_id=0,
        output_scores=True,
        output_logits=True,
        return_dict_in_generate=True,
        **theirs,
    )
    for i, (logits, scores) in enumerate(zip(out.logits, out.scores, strict=True)):
        before = out.sequences[0, : text.shape[1] + i].tolist()
        adjusted = sampler(before, **shared, **ours).adjusted(logits.numpy())
        filters = {name: value for name, value in shared.items() if "penalty" not in name}
        np.testing.assert_allclose(filtered(adjusted, **filters), scores, rtol=1e-5, atol=1e-6)
    choose = sampler(before, samples=2000, **shared, **ours)
    assert_as_often(choose(np.tile(logits, (2000, 1))), softmax(scores[0].numpy()))


def test_the_repetition_penalty_counts_each_token_once_also_those_written() -> None:
    choose = sampler(ids("c"), temperature=0.0, repetition_penalty=2.0)
    logits = logits_of({"a": 3.0, "b": 2.0, "c": 3.5})  # at first 3, 2 and 1.75
    assert [int(choose(logits)[0]) for _ in range(4)] == ids("abcc")


def test_presence_and_frequency_are_for_what_was_written_not_for_the_prompt() -> None:
    """By OpenAI's formula, logit - frequency * count - presence * [count > 0]."""
    choose = sampler(ids("aaabbb"), temperature=0.0, presence_penalty=1.0, frequency_penalty=0.25)
    logits = logits_of({"a": 3.0, "b": 2.0, "c": 1.0})
    # a, b and c in turn are at: 3 2 1 | 1.75 2 1 | 1.75 .75 1 | 1.5 .75 1 | 1.25 .75 1 | 1 .75 1 |
    # .75 .75 1
    assert [int(choose(logits)[0]) for _ in range(7)] == ids("abaaaac")


def test_samples_are_penalised_each_for_its_own_tokens() -> None:
    choose = sampler(samples=2, temperature=0.0, presence_penalty=5.0)
    rows = [logits_of({"a": 4.0, "b": 3.0}), logits_of({"b": 4.0, "c": 3.0})]
    assert choose(np.concatenate(rows)).tolist() == ids("ab")
    assert choose(np.concatenate(rows)).tolist() == ids("bc")


def test_the_logits_of_the_model_are_left_as_they_were() -> None:
    logits = np.random.default_rng(0).normal(size=(1, V)).astype(np.float32)
    before = logits.copy()
    everything = {"repetition_penalty": 2.0, "presence_penalty": 1.0}
    sampler(ids("b"), bias={"d": 1.0}, top_k=3, top_p=0.9, min_p=0.1, **everything)(logits)
    assert np.array_equal(logits, before)


@pytest.mark.parametrize("seed", range(5))
def test_each_filter_does_what_transformers_does(seed: int) -> None:
    random = np.random.default_rng(seed)
    logits = random.normal(scale=3, size=(4, 200)).astype(np.float32)
    ids = random.integers(200, size=(4, 30))
    seen = np.zeros((4, 200), bool)
    np.put_along_axis(seen, ids, True, axis=1)
    for k, p, scale in [(1, 0.01, 0.5), (7, 0.3, 0.9), (50, 0.9, 1.3), (500, 0.999, 2.0)]:
        penalty = transformers.RepetitionPenaltyLogitsProcessor(scale)
        for ours, theirs in [
            (filtered(logits, scale), transformers.TemperatureLogitsWarper(scale)),
            (keep_top_k(logits, k), transformers.TopKLogitsWarper(k)),
            (keep_top_p(logits, p), transformers.TopPLogitsWarper(p)),
            (keep_min_p(logits, p), transformers.MinPLogitsWarper(p)),
            (penalise_repetition(logits, seen, scale), penalty),
        ]:
            expected = theirs(torch.from_numpy(ids), torch.tensor(logits))
            np.testing.assert_allclose(ours, expected, rtol=1e-6)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
@pytest.mark.parametrize("top_k", [None, 3])
def test_tokens_are_drawn_as_often_as_the_softmax_says(
    temperature: float, top_k: int | None
) -> None:
    logits = np.array([2.0, -1.0, 0.5, 1.0, 0.0], np.float32)
    kept = logits if top_k is None else np.where(logits < 0.5, -np.inf, logits)
    noise, rows = exponentials(0, 1000, 5), np.tile(logits, (1000, 1))
    tokens = [draw(rows, noise, temperature=temperature, top_k=top_k) for _ in range(20)]
    assert_as_often(np.concatenate(tokens), softmax(kept / temperature))
