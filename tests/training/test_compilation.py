"""torch.compile: used where asked for, it changes nothing, and training goes on without it."""

from pathlib import Path
from typing import Any

import pytest
import torch

from minigpt.config import GPTConfig
from minigpt.model import GPT
from minigpt.runs import read_config
from minigpt.training.compilation import Loss, compile_loss, not_compiled
from tests.conftest import train_tiny

CPU = torch.device("cpu")


def test_on_a_cpu_nothing_is_compiled_unless_asked_for(workplace: Path) -> None:
    assert read_config(train_tiny(steps=1, num_evals=1, compile="auto")).training.compile == "off"


def test_a_compiled_loss_has_the_same_value_and_gradients() -> None:
    torch.manual_seed(0)
    model = GPT(GPTConfig(11, context_length=8, emb_dim=16, num_layers=1, num_heads=2))
    inputs, targets = torch.randint(11, (2, 3, 8))

    def gradients(loss: Any) -> list[torch.Tensor]:
        model.zero_grad()
        loss(inputs, targets).backward()
        return [p.grad.clone() for p in model.parameters() if p.grad is not None]

    plain, compiled = Loss(model), Loss(model)
    assert compile_loss(compiled, lambda: gradients(compiled) and None) is None
    torch.testing.assert_close(compiled(inputs, targets), plain(inputs, targets))
    for ours, theirs in zip(gradients(compiled), gradients(plain), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_without_a_compiler_a_loss_says_why_and_can_still_be_computed() -> None:
    class Square(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x * x).sum()

    loss, x = Square(), torch.arange(3.0)
    missing = {"cpp.cxx": ("no-such-compiler",), "force_disable_caches": True}
    with torch._inductor.config.patch(missing):
        assert "no-such-compiler" in str(compile_loss(loss, lambda: loss(x) and None))
    not_compiled(loss)
    assert loss(x) == 5.0


def test_without_a_compiler_training_goes_on_and_says_so(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(loss: Loss, try_out: Any) -> str:
        loss.forward = lambda *arguments: 1 // 0  # type: ignore[method-assign]
        return "no compiler"

    monkeypatch.setattr("minigpt.training.trainer.compile_loss", fail)
    folder = train_tiny(compile="on", steps=2)
    assert "not compiled, which costs some speed: no compiler" in capsys.readouterr().err
    assert read_config(folder).training.compile == "on"
