"""Running out of memory is one line that says what to make smaller, whatever ran out of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import minigpt
from minigpt import UserError
from minigpt.cli import main
from minigpt.devices.memory import enough_memory
from minigpt.generation.numpy_gpt import NumpyGPT
from minigpt.model import GPT
from tests.conftest import train_tiny

EXBIBYTE = 1 << 60
MPS = "MPS backend out of memory (MPS allocated: 9.03 GB, max allowed: 9.07 GB). Tried ..."


def on_mps() -> None:
    raise RuntimeError(MPS)


def on_cuda() -> None:
    raise torch.OutOfMemoryError


@pytest.mark.parametrize(
    "ask_for_too_much",
    [
        lambda: bytes(EXBIBYTE),
        lambda: np.ones(EXBIBYTE, np.uint8),
        lambda: torch.ones(EXBIBYTE, dtype=torch.uint8),
        on_mps,
        on_cuda,
    ],
    ids=["Python", "numpy", "torch on a CPU", "torch on MPS", "torch on CUDA"],
)
def test_it_is_told_in_one_line(ask_for_too_much: Callable[[], Any]) -> None:
    with pytest.raises(UserError, match=r"^out of memory; try fewer layers$"):  # noqa: SIM117
        with enough_memory("fewer layers"):
            ask_for_too_much()


@pytest.mark.parametrize("error", [RuntimeError("shapes differ"), ValueError("out of memory?")])
def test_other_errors_stay_as_they_are(error: Exception) -> None:
    with pytest.raises(type(error), match=str(error)[:5]) as raised, enough_memory("it"):
        raise error
    assert raised.value is error


def test_a_model_too_large_to_be_made_is_refused_and_leaves_no_run(workplace: Path) -> None:
    with pytest.raises(UserError, match="out of memory; try a smaller --micro-batch-size"):
        train_tiny(head_dim=1 << 18, num_heads=1 << 18)
    assert not Path("runs").exists()


def test_an_evaluation_advises_a_smaller_batch(
    tiny_run: Path, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GPT, "token_losses", lambda *_: torch.ones(EXBIBYTE))
    with pytest.raises(UserError, match="out of memory; try a smaller --batch-size"):
        minigpt.evaluate(tiny_run, "my.txt")


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        ("generate Once --run", "fewer --samples, or a smaller model"),
        ("page", "a smaller model, or "),
    ],
)
def test_a_command_advises_what_to_make_smaller(
    command: str,
    advice: str,
    tiny_run: Path,
    workplace: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def too_large(*_: Any) -> None:
        np.ones(EXBIBYTE, np.uint8)

    monkeypatch.setattr(NumpyGPT, "__init__", too_large)
    assert main([*command.split(), str(tiny_run)]) == 2
    said = capsys.readouterr().err
    assert f"error: out of memory; try {advice}" in said and "Traceback" not in said
