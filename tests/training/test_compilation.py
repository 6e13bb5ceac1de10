"""torch.compile: used where asked for, it changes nothing, and what is in its way is said."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from minigpt import UserError
from minigpt.config import GPTConfig
from minigpt.model import GPT
from minigpt.runs.folder import read_config
from minigpt.training.compilation import compile_loss
from minigpt.training.loss import Loss
from tests.conftest import train_tiny


def test_on_a_cpu_nothing_is_compiled_unless_asked_for(workplace: Path) -> None:
    assert read_config(train_tiny(steps=1, num_evals=1, compile="auto")).training.compile == "off"


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
    with torch._inductor.config.patch(missing), pytest.raises(UserError) as refused:
        compile_loss(loss, lambda: loss(x) and None)
    assert re.fullmatch(".*no-such-compiler.*; use --compile off", str(refused.value))
