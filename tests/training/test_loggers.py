"""The figures of an evaluation go where --log says, or it is refused before anything is written."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from minigpt import UserError
from minigpt.training.loggers import check_logger, make_logger
from tests.conftest import train_tiny

FIGURES = {"step": 4, "val_loss": 2.5}


def test_none_is_always_there(tmp_path: Path) -> None:
    check_logger("none")
    make_logger("none", tmp_path)(FIGURES)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["tensorboard", "wandb"])
def test_a_logger_that_is_not_installed_is_refused_before_training(
    name: str, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minigpt.training.loggers.find_spec", lambda name: None)
    with pytest.raises(UserError, match=f"--log {name} .* pip install {name}"):
        train_tiny(log=name)
    assert not Path("runs").exists()


def test_wandb_is_handed_every_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through a stand-in with the two calls of wandb that are made."""
    calls: list[Any] = []

    class Run:
        def log(self, figures: dict[str, Any], step: int) -> None:
            calls.append((figures, step))

    stand_in = ModuleType("wandb")
    stand_in.init = lambda **settings: calls.append(settings) or Run()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", stand_in)
    make_logger("wandb", tmp_path / "my")(FIGURES)
    assert calls[0]["name"] == "my" and calls[1] == (FIGURES, 4)


def test_tensorboard_writes_an_event_file(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    make_logger("tensorboard", tmp_path)(FIGURES)
    assert list((tmp_path / "tensorboard").glob("events.out.tfevents.*"))
