"""Weights in fewer bytes: the same model, nearly."""

import copy
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from minigpt.config import GPTConfig
from minigpt.generation.precision import Int8Linear, in_precision
from minigpt.model import GPT


@given(
    st.integers(1, 5).map(lambda n: 32 * n), st.integers(1, 90), st.integers(1, 50), st.booleans()
)
@settings(max_examples=40, deadline=None)
def test_an_int8_layer_computes_nearly_the_same(
    d_in: int, d_out: int, rows: int, bias: bool
) -> None:
    """Of few rows and of many: within the error of weights rounded to 1/127 of the row's largest,
    and of vectors rounded to bfloat16."""
    torch.manual_seed(d_in)
    linear = nn.Linear(d_in, d_out, bias)
    x = torch.randn(rows, d_in)
    with torch.no_grad():
        exact, close = linear(x), Int8Linear(linear)(x)
        sizes = x.abs() @ linear.weight.abs().T  # (rows, d_out)
        largest = linear.weight.abs().amax(1) * x.abs().sum(1, keepdim=True)
    assert close.shape == exact.shape
    assert close.dtype == exact.dtype
    allowed = largest / 254 + sizes / 80 + exact.abs() / 100 + 1e-6
    assert ((close - exact).abs() <= allowed).all()


def test_int8_keeps_a_row_of_zeros_and_the_largest_weight() -> None:
    linear = nn.Linear(32, 2, bias=False)
    linear.weight.data = torch.stack((torch.zeros(32), torch.linspace(-2, 1, 32)))
    layer = Int8Linear(linear)
    assert not layer.weight[0].any()
    assert layer.weight[1, 0] == -127
    assert not layer(torch.eye(32))[:, 0].any()


def test_a_matrix_that_the_kernel_cannot_read_stays_as_it_is() -> None:
    model = GPT(GPTConfig(5, "gpt2", emb_dim=36))
    logits = model(torch.tensor([[1, 2]]))
    assert torch.equal(in_precision(model, "int8")(torch.tensor([[1, 2]])), logits)


@pytest.mark.parametrize("architecture", ["qwen3", "gpt2"])
@pytest.mark.parametrize(("precision", "most"), [("bfloat16", 0.01), ("int8", 0.01)])
def test_the_loss_hardly_changes(architecture: Any, precision: Any, most: float) -> None:
    """Of a model that has learned its batch by heart, so that its logits are far apart."""
    torch.manual_seed(0)
    model = GPT(GPTConfig(40, architecture, 32, emb_dim=64, num_layers=2, num_heads=2))
    ids = torch.randint(40, (8, 33))
    inputs, targets = ids[:, :-1], ids[:, 1:]
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(60):
        model(inputs, targets)[1].backward()
        optimizer.step()
        optimizer.zero_grad()
    before = model.eval()(inputs, targets)[1].item()
    assert before < 2.0
    smaller = in_precision(copy.deepcopy(model), precision)
    with torch.no_grad():
        assert abs(smaller(inputs, targets)[1].item() - before) < most


def test_int8_weights_take_a_byte_each() -> None:
    model = in_precision(GPT(GPTConfig(64, emb_dim=32, tie_embeddings=False)), "int8")
    layers = [m for m in model.modules() if isinstance(m, Int8Linear)]
    assert len(layers) == 4 * 7 + 1
    assert all(layer.weight.nbytes == layer.weight.numel() for layer in layers)
    assert not any(p.dim() == 2 for name, p in model.named_parameters() if "embedding" not in name)
