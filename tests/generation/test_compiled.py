"""The compiled step writes what the plain one does; where it cannot be compiled, so it says."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
import torch
from torch import nn

from minigpt.config import GPTConfig
from minigpt.generation import compiled
from minigpt.generation.compiled import CompiledStep, plain, worth_compiling
from minigpt.generation.decode import decode
from minigpt.generation.precision import in_precision
from minigpt.model import GPT


def gpt(architecture: Any, **shape: int) -> GPT:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"emb_dim": 16, "num_layers": 1, "num_heads": 4} | shape
    config = GPTConfig(17, architecture, 16, **sizes)
    model = GPT(config).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    return model


@pytest.mark.parametrize(
    ("architecture", "precision", "kv_heads", "samples", "tolerance"),
    [("qwen3", "float32", 2, 1, 1e-4), ("gpt2", "int8", 4, 3, 0.03)],  # int8: rounds vectors
)
def test_compiling_changes_nothing(
    architecture: str, precision: Any, kv_heads: int, samples: int, tolerance: float
) -> None:
    """Logits of every step, through full windows; the model keeps its own layers."""
    model = in_precision(gpt(architecture, num_kv_heads=kv_heads, emb_dim=32), precision)
    kinds = [type(module) for module in model.modules()]
    step = CompiledStep(model)
    steps = {name: recorded(model, s, samples) for name, s in both(model, step).items()}
    assert step.problem is None
    torch.testing.assert_close(steps["compiled"], steps["plain"], rtol=tolerance, atol=tolerance)
    assert [type(module) for module in model.modules()] == kinds


def both(model: GPT, step: CompiledStep) -> dict[str, compiled.Predict]:
    return {"compiled": step, "plain": plain(model)}


def recorded(model: GPT, step: compiled.Predict, samples: int) -> torch.Tensor:
    """The logits behind 40 tokens that do not depend on them, ``(40, samples, vocab_size)``."""
    seen = []

    def choose(logits: torch.Tensor) -> torch.Tensor:
        seen.append(logits.clone())
        return (torch.arange(samples) + len(seen)) % model.config.vocab_size

    list(islice(decode(model, [1, 2, 3], choose, samples=samples, predict=step), 40))
    return torch.stack(seen)


@pytest.fixture
def no_compiler() -> Iterator[None]:
    """A machine whose C++ compiler is missing."""
    missing = {"cpp.cxx": ("no-such-compiler",), "force_disable_caches": True}
    torch._dynamo.reset()
    with torch._inductor.config.patch(missing):
        yield
    torch._dynamo.reset()


@pytest.mark.usefixtures("no_compiler")
def test_without_a_compiler_it_writes_the_same_and_says_why() -> None:
    model = gpt("qwen3", emb_dim=8)
    step = CompiledStep(model)
    steps = {name: recorded(model, s, 1) for name, s in both(model, step).items()}
    assert torch.equal(steps["compiled"], steps["plain"])
    assert step.problem
    assert "\n" not in step.problem


def test_a_long_text_of_a_large_model_is_worth_compiling_for() -> None:
    with torch.device("meta"):
        large = GPT(GPTConfig(50257, "gpt2", 64, emb_dim=768, num_layers=12, num_heads=12))
        small = GPT(GPTConfig(65, "gpt2", 64))
    assert not worth_compiling(large, 100_000)  # a GPU computes in another way
    large, small = (GPT(GPTConfig(m.config.vocab_size, num_layers=9)) for m in (large, small))
    assert worth_compiling(large, 100_000)
    assert not worth_compiling(large, 300)
    assert not worth_compiling(small, 300)
