"""Muon: its updates are orthogonal, it equals torch's own, and with AdamW all is covered."""

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import nn

from minigpt.config import GPTConfig, TrainConfig
from minigpt.model import GPT
from minigpt.training.optimizer import Muon, make_optimizers, orthogonalized
from minigpt.training.weights import WeightAverage

SHAPES = [(6, 6), (12, 4), (4, 12)]


@given(
    n=st.integers(1, 3), rows=st.integers(1, 12), columns=st.integers(1, 12), seed=st.integers(0, 9)
)
@example(n=2, rows=8, columns=5, seed=1)
@settings(max_examples=40, deadline=None)
def test_all_singular_values_come_near_one(n: int, rows: int, columns: int, seed: int) -> None:
    """Between 0.73 and 1.27 if none was below 0.01 of the norm.

    What bfloat16 rounds to above 1 grows: to 1.75 at most over all that can be drawn here.
    """
    torch.manual_seed(seed)
    u, _, v = torch.linalg.svd(torch.randn(n, rows, columns), full_matrices=False)
    sizes = torch.logspace(-1.5, 0.0, min(rows, columns))
    for dtype, low, high in ((torch.float32, 0.72, 1.28), (torch.bfloat16, 0.6, 1.9)):
        found = torch.linalg.svdvals(orthogonalized(u @ torch.diag(sizes) @ v, dtype).float())
        assert found.min() > low and found.max() < high


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_matrix_of_one_direction_or_none_does_not_grow(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    one = torch.outer(torch.randn(9), torch.randn(7))
    assert orthogonalized(torch.stack([one, 1e6 * one]), dtype).norm(dim=(1, 2)).max() < 1.4
    assert not orthogonalized(torch.zeros(1, 3, 4), dtype).any()


def test_it_equals_torch_s_muon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three steps, on matrices of every shape, torch's polynomial five times, bfloat16."""
    five = ((3.4445, -4.7750, 2.0315),) * 5
    monkeypatch.setattr("minigpt.training.optimizer._POLYNOMIALS", five)
    monkeypatch.setattr("minigpt.training.optimizer._MARGIN", 1.0)
    torch.manual_seed(0)
    ours = [nn.Parameter(torch.randn(shape)) for shape in SHAPES for _ in range(2)]
    theirs = [nn.Parameter(p.detach().clone()) for p in ours]
    optimizers = [
        Muon(ours, lr=0.05, momentum=0.9, weight_decay=0.1, dtype=torch.bfloat16),
        torch.optim.Muon(
            theirs, lr=0.05, momentum=0.9, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"
        ),
    ]
    for _ in range(3):
        for p, q in zip(ours, theirs, strict=True):
            p.grad = torch.randn(p.shape)
            q.grad = p.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    for p, q in zip(ours, theirs, strict=True):
        torch.testing.assert_close(p, q, atol=5e-3, rtol=0)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("architecture", ["gpt2", "qwen3"])
def test_every_parameter_is_updated_once(architecture: str, optimizer: str) -> None:
    torch.manual_seed(0)
    model = GPT(GPTConfig(7, architecture, context_length=4, emb_dim=8, num_layers=2, num_heads=2))
    optimizers = make_optimizers(model, TrainConfig(optimizer=optimizer))  # type: ignore[arg-type]
    held = [p for each in optimizers for group in each.param_groups for p in group["params"]]
    assert len(held) == len(set(map(id, held))) == len(list(model.parameters()))
    before = [p.detach().clone() for p in model.parameters()]
    for p in model.parameters():
        p.grad = torch.randn(p.shape)
    for each in optimizers:
        each.step()
    assert all(not torch.equal(p, b) for p, b in zip(model.parameters(), before, strict=True))


def test_the_average_of_the_weights_is_that_of_the_last_tenth_of_the_steps() -> None:
    """Of weights that grow with the steps t, ten elevenths of the last, as with weights of t^9; the
    weights themselves come back."""
    model = GPT(GPTConfig(7, context_length=4, emb_dim=8, num_layers=1, num_heads=2))
    average, steps = WeightAverage(model), 400
    for step in range(steps):
        for p in model.parameters():
            p.data.fill_(step + 1)
        average.update(step)
    with average.in_place(model):
        for p in model.parameters():
            torch.testing.assert_close(p, torch.full_like(p, steps * 10 / 11), rtol=3e-3, atol=0)
    assert all(torch.equal(p, torch.full_like(p, steps)) for p in model.parameters())
