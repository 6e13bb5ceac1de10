"""torch.compile: used where asked for, it changes nothing, and what is in its way is said."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from minigpt import UserError
from minigpt.config import GPTConfig, TrainConfig
from minigpt.data.batches import Batch
from minigpt.model import GPT
from minigpt.training import compilation
from minigpt.training.compilation import compile_for_training, compile_loss
from minigpt.training.loss import Loss
from tests.conftest import train_tiny

pytestmark = pytest.mark.long


def test_on_a_cpu_nothing_is_compiled_unless_asked_for(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "compile", None)
    train_tiny(steps=1, num_evals=1, compile="auto")


def test_a_compiled_loss_has_the_same_value_and_gradients() -> None:
    torch.manual_seed(0)
    model = GPT(GPTConfig(11, context_length=8, emb_dim=16, num_layers=1, num_heads=2))
    inputs, targets = torch.randint(11, (2, 3, 8))

    def gradients(loss: Any) -> list[torch.Tensor]:
        model.zero_grad()
        loss(inputs, targets)[0].backward()
        return [p.grad.clone() for p in model.parameters() if p.grad is not None]

    plain, compiled = Loss(model), Loss(model)
    compile_loss(compiled, lambda: gradients(compiled) and None)
    torch.testing.assert_close(compiled(inputs, targets), plain(inputs, targets))
    for ours, theirs in zip(gradients(compiled), gradients(plain), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_without_a_compiler_one_line_says_what_to_do() -> None:
    class Square(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x * x).sum()

    loss, x = Square(), torch.arange(3.0)
    missing = {"cpp.cxx": ("no-such-compiler",), "force_disable_caches": True}
    with torch._inductor.config.patch(missing):
        problem = compile_loss(loss, lambda: loss(x) and None)
    assert problem is not None and re.fullmatch(".*no-such-compiler.*", problem)
    assert loss(x) == 5.0  # as it is


LONG = TrainConfig(minutes=20)
REFUSED = "no-such-compiler: not found"


@pytest.fixture
def loss_and_parts(monkeypatch: pytest.MonkeyPatch) -> tuple[Loss, list[Batch]]:
    """A small model's loss, on what counts as a GPU that compiled code cannot be made for."""
    monkeypatch.setattr(compilation, "why_not_compiled", lambda device: None)
    monkeypatch.setattr(compilation, "compile_loss", lambda loss, try_out: REFUSED)
    model = GPT(GPTConfig(11, context_length=8, emb_dim=16, num_layers=1, num_heads=2))
    inputs, targets = torch.zeros(2, 1, 8, dtype=torch.int64)
    return Loss(model), [(inputs, targets)]


def try_to_compile(loss_and_parts: Any, config: TrainConfig) -> None:
    loss, parts = loss_and_parts
    compile_for_training(loss, loss, parts, config)


def test_a_training_goes_on_if_compiling_was_not_asked_for_and_fails(
    loss_and_parts: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    try_to_compile(loss_and_parts, LONG)
    assert f"steps take longer: {REFUSED}\n" in capsys.readouterr().err


def test_it_does_not_if_it_was_asked_for(loss_and_parts: Any) -> None:
    with pytest.raises(UserError, match=f"{REFUSED}; use --compile off"):
        try_to_compile(loss_and_parts, replace(LONG, compile="on"))


def test_what_is_missing_is_said_and_not_tried(
    loss_and_parts: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compilation, "why_not_compiled", lambda device: "Triton is not installed")
    monkeypatch.setattr(compilation, "compile_loss", None)
    try_to_compile(loss_and_parts, LONG)
    assert "steps take longer: Triton is not installed\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("extent", "is_long"),
    [
        ({"minutes": 4}, False),
        ({"minutes": 5}, True),
        ({"steps": 5000}, False),
        ({"steps": 20_000}, True),
    ],
)
def test_auto_compiles_for_a_long_training_on_a_gpu(
    extent: Any, is_long: bool, loss_and_parts: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    try_to_compile(loss_and_parts, TrainConfig(**extent))
    assert ("compiling the model" in capsys.readouterr().err) == is_long


def test_off_compiles_nothing(loss_and_parts: Any, capsys: pytest.CaptureFixture[str]) -> None:
    try_to_compile(loss_and_parts, replace(LONG, compile="off"))
    assert capsys.readouterr().err == ""
