"""torch.compile: used where it pays, it changes nothing, and training goes on without it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from minigpt.config import GPTConfig, TrainConfig
from minigpt.model import GPT
from minigpt.runs import read_config
from minigpt.training.compilation import Loss, compile_loss, not_compiled, should_compile
from tests.conftest import train_tiny

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("settings", "worth"),
    [
        ({"minutes": 1.0}, "off"),
        ({"minutes": 5.0}, "on"),
        ({"steps": 10}, "off"),
        ({"steps": 10**5}, "on"),
        ({"minutes": 1.0, "compile": "on"}, "on"),
        ({"minutes": 5.0, "compile": "off"}, "off"),
    ],
    ids=str,
)
def test_it_is_done_where_the_time_is_won_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], worth: str
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    assert should_compile(TrainConfig(**settings), GPTConfig(300), CPU) == worth


def test_a_short_run_is_compiled_where_that_was_done_before(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run that compiles leaves a marker; for another batch or model there is none."""
    monkeypatch.setattr("minigpt.training.trainer.compile_loss", lambda *arguments: None)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(workplace))  # where nothing is marked yet
    done = read_config(train_tiny(steps=1, num_evals=1, compile="on", dropout=0.0))
    auto = replace(done.training, compile="auto", steps=200)

    def chosen(model: GPTConfig = done.model, **changes: Any) -> str:
        return should_compile(replace(auto, **changes), model, CPU)

    assert chosen() == chosen(steps=None, minutes=1.0) == "on"
    assert chosen(steps=100) == chosen(steps=None, minutes=0.5) == chosen(batch_size=5) == "off"
    assert chosen(replace(done.model, dropout=0.77)) == "off"


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
