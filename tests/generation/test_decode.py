"""The decode loop: with its cache it writes what reading the whole window at every step would, for
prompts of any length, without end.
"""

from itertools import islice
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from minigpt.config import GPTConfig
from minigpt.generation.decode import decode
from minigpt.model import GPT

few = settings(max_examples=25, deadline=None)

VOCAB = 13
both_families = pytest.mark.parametrize("architecture", ["qwen3", "gpt2"])


def gpt(architecture: str, context_length: int) -> GPT:
    """In float64, where no two logits are so close that rounding could change their order."""
    torch.manual_seed(0)
    shape: dict[str, Any] = {"emb_dim": 8, "num_layers": 2, "num_heads": 2, "num_kv_heads": 1}
    model = GPT(GPTConfig(VOCAB, architecture, context_length, **shape)).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    return model


def greedy(logits: Tensor) -> Tensor:
    return logits.argmax(dim=-1)


def written(model: GPT, prompt: list[int], count: int) -> list[int]:
    """The first tokens of a single continuation, always the likeliest."""
    return [int(tokens) for tokens in islice(decode(model, prompt, greedy), count)]


def some_prompt(length: int) -> list[int]:
    draw = torch.Generator().manual_seed(length)
    return torch.randint(VOCAB, (length,), generator=draw).tolist()


def without_a_cache(model: GPT, prompt: list[int], count: int) -> list[int]:
    """Reads all of its window at every step; a full window is cut to its later half."""
    context_length = model.config.context_length
    window, written = prompt[-context_length:], []
    for _ in range(count):
        token = int(greedy(model(torch.tensor([window]))[:, -1]))
        written.append(token)
        full = len(window) == context_length
        window = [*window, token]
        if full:
            window = window[-(context_length - context_length // 2) :]
    return written


@both_families
@pytest.mark.parametrize("context_length", [1, 2, 7, 8])
@given(prompt_length=st.integers(1, 20), count=st.integers(1, 40))
@few
def test_the_cache_changes_nothing(
    architecture: str, context_length: int, prompt_length: int, count: int
) -> None:
    """Prompts shorter than, as long as and longer than the context; texts far beyond it."""
    model, prompt = gpt(architecture, context_length), some_prompt(prompt_length)
    assert written(model, prompt, count) == without_a_cache(model, prompt, count)


@both_families
def test_it_never_ends(architecture: str) -> None:
    tokens = written(gpt(architecture, 8), [1], 200)
    assert len(tokens) == 200
    assert all(0 <= token < VOCAB for token in tokens)


@both_families
@given(prompt_length=st.integers(9, 30))
@few
def test_of_a_longer_prompt_only_the_end_is_read(architecture: str, prompt_length: int) -> None:
    model, prompt = gpt(architecture, 8), some_prompt(prompt_length)
    assert written(model, prompt, 12) == written(model, prompt[-8:], 12)


@pytest.mark.parametrize(
    ("prompt_length", "read"),
    [
        (3, [3, 1, 1, 1, 1, 1, 4, 1, 1, 1, 1, 4]),
        (8, [8, 4, 1, 1, 1, 1, 4, 1, 1, 1, 1, 4]),
        (30, [8, 4, 1, 1, 1, 1, 4, 1, 1, 1, 1, 4]),
    ],
)
def test_a_token_costs_one_step_and_a_full_window_half_a_window(
    prompt_length: int, read: list[int]
) -> None:
    """How many tokens the model reads before each that it writes, with a context of 8."""
    model, lengths = gpt("qwen3", 8), []
    model.register_forward_pre_hook(lambda _, inputs: lengths.append(inputs[0].shape[1]))
    written(model, some_prompt(prompt_length), len(read))
    assert lengths == read


def test_what_is_chosen_is_what_is_written_and_read_next() -> None:
    """`choose` is given a row of logits for each continuation."""
    model, seen, choices = gpt("qwen3", 8), [], iter([5, 6, 7])
    model.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].tolist()))

    def choose(logits: Tensor) -> Tensor:
        assert logits.shape == (1, VOCAB)
        return torch.tensor([next(choices)])

    assert [tokens.tolist() for tokens in islice(decode(model, [1, 2], choose), 3)] == [
        [5],
        [6],
        [7],
    ]
    assert seen == [[[1, 2]], [[5]], [[6]]]


def test_nothing_is_computed_before_it_is_asked_for() -> None:
    model, calls = gpt("qwen3", 8), []
    model.register_forward_pre_hook(lambda *_: calls.append(1))
    tokens = decode(model, [1], greedy)
    assert len(calls) == 0
    next(tokens)
    assert len(calls) == 1


def test_the_prompt_is_left_as_it_was() -> None:
    prompt = [1, 2, 3]
    written(gpt("qwen3", 4), prompt, 9)
    assert prompt == [1, 2, 3]


@both_families
@given(prompt_length=st.integers(1, 12), samples=st.integers(1, 4), data=st.data())
@settings(few, max_examples=10)
def test_samples_side_by_side_are_those_written_one_by_one(
    architecture: str, prompt_length: int, samples: int, data: st.DataObject
) -> None:
    """Each takes another of the likeliest tokens, also when the window is full and read again."""
    model, prompt = gpt(architecture, 8), some_prompt(prompt_length)
    ranks = torch.tensor(data.draw(st.lists(st.integers(0, 12), min_size=4, max_size=4)))

    def choose(logits: Tensor, of: slice) -> Tensor:
        return logits.argsort(dim=-1).gather(1, ranks[of, None]).squeeze(1)

    together = decode(model, prompt, lambda x: choose(x, slice(samples)), samples=samples)
    rows = torch.stack(list(islice(together, 12)), dim=1)  # (samples, 12)
    for i in range(samples):
        alone = decode(model, prompt, lambda x, i=i: choose(x, slice(i, i + 1)))
        assert rows[i].tolist() == [int(tokens) for tokens in islice(alone, 12)]


def test_the_prompt_is_read_once_for_all_samples() -> None:
    model, shapes = gpt("qwen3", 8), []
    model.register_forward_pre_hook(lambda _, inputs: shapes.append(tuple(inputs[0].shape)))
    list(islice(decode(model, [1, 2, 3], greedy, samples=5), 7))
    assert shapes == [(1, 3), (5, 1), (5, 1), (5, 1), (5, 1), (5, 1), (5, 4)]
