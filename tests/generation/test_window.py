"""What a model is given to read: each token once, and without end; the cache changes nothing."""

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from minigpt.config import GPTConfig
from minigpt.generation.torch_gpt import TorchGPT
from minigpt.generation.window import Array, Engine, Window
from minigpt.model import GPT

VOCAB = 13
both_architectures = pytest.mark.parametrize("architecture", ["qwen3", "gpt2"])


@cache
def gpt(architecture: str, context_length: int) -> Engine:
    """In float64, where no two logits are so close that rounding could change their order."""
    torch.manual_seed(0)
    shape: dict[str, Any] = {"emb_dim": 8, "num_layers": 2, "num_heads": 2}
    model = GPT(GPTConfig(VOCAB, architecture, context_length, **shape)).double()
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    return TorchGPT(model)


def some_prompt(length: int) -> list[int]:
    return np.random.default_rng(length).integers(VOCAB, size=length).tolist()


def written(engine: Engine, prompt: list[int], count: int, ranks: tuple[int, ...] = (0,)) -> Array:
    """Tokens ``(samples, count)`` that continue `prompt`; sample i takes the token that is the
    ranks[i]-th likeliest."""
    window, tokens = Window(engine, prompt, len(ranks)), []
    for _ in range(count):
        order = np.argsort(-window.next_logits(), axis=-1)  # (samples, vocab_size)
        tokens.append(order[np.arange(len(ranks)), ranks])
        window.append(tokens[-1])
    return np.stack(tokens, axis=1)


def without_a_cache(engine: Engine, prompt: list[int], count: int) -> list[int]:
    """Reads all that the model sees at every step; a full window is cut to its later half."""
    context_length = engine.context_length
    seen, tokens = prompt[-context_length:], []
    for _ in range(count):
        tokens.append(int(engine(np.array([seen]))[0, -1].argmax()))
        is_full = len(seen) == context_length
        seen = [*seen, tokens[-1]]
        if is_full:
            seen = seen[-(context_length - context_length // 2) :]
    return tokens


@both_architectures
@pytest.mark.parametrize(
    ("context_length", "prompt_length"),
    [(1, 1), (1, 9), (2, 1), (2, 2), (2, 9), (7, 2), (7, 7), (7, 20), (8, 1), (8, 8), (8, 20)],
)
def test_the_cache_changes_nothing(
    architecture: str, context_length: int, prompt_length: int
) -> None:
    """Prompts shorter than, as long as and longer than the context; texts far beyond it."""
    engine, prompt = gpt(architecture, context_length), some_prompt(prompt_length)
    count = 2 * context_length + 3
    assert written(engine, prompt, count)[0].tolist() == without_a_cache(engine, prompt, count)


@both_architectures
@pytest.mark.parametrize("prompt_length", [1, 8, 12])
def test_texts_side_by_side_are_those_written_one_by_one(
    architecture: str, prompt_length: int
) -> None:
    engine, prompt, ranks = gpt(architecture, 8), some_prompt(prompt_length), (0, VOCAB - 1, 0, 3)
    together = written(engine, prompt, 12, ranks)
    for rank, text in zip(ranks, together, strict=True):
        assert np.array_equal(written(engine, prompt, 12, (rank,))[0], text)


class Listening(TorchGPT):
    """Notes the shapes of what it is given to read."""

    shapes: list[tuple[int, ...]]

    def next_logits(self, token_ids: Array, cache: Any) -> Array:
        self.shapes.append(token_ids.shape)
        return super().next_logits(token_ids, cache)


@pytest.mark.parametrize(
    ("prompt_length", "samples", "read"),
    [
        (3, 1, [3, 1, 1, 1, 1, 1, 4, 1, 1, 1, 1, 4]),
        (8, 1, [8, 4, 1, 1, 1, 1, 4, 1, 1, 1, 1, 4]),
        (30, 1, [8, 4, 1, 1, 1, 1, 4, 1, 1, 1, 1, 4]),
        (3, 5, [3, 1, 1, 1, 1, 1, 4]),
    ],
)
def test_a_token_is_read_once_and_half_of_a_full_window_again(
    prompt_length: int, samples: int, read: list[int]
) -> None:
    """How many tokens the model reads before each that is written, with a context of 8; the prompt
    once for all texts."""
    engine = Listening(gpt("qwen3", 8).model)  # type: ignore[attr-defined]
    engine.shapes = []
    written(engine, some_prompt(prompt_length), len(read), (0,) * samples)
    rows = [1] + [samples] * (len(read) - 1)
    assert engine.shapes == list(zip(rows, read, strict=True))
