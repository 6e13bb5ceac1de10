"""Figures handed to TensorBoard and Weights & Biases: to stand-ins, which note what they get, and
to the programs themselves."""

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import minigpt
from minigpt import UserError
from minigpt.cli import main
from tests.conftest import train_tiny
from tests.training.runs import after_step, interrupted, resume


class Noted:
    """What a logger did: opened with these settings, logged so, was closed."""

    def __init__(self) -> None:
        self.opened: list[dict[str, Any]] = []
        self.logged: list[tuple[int, str, float]] = []
        self.closed = 0


@pytest.fixture
def wandb(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Noted:
    noted, module = Noted(), ModuleType("wandb")
    module.__spec__ = ModuleSpec("wandb", None)

    class Run:
        def log(self, values: dict[str, float], step: int) -> None:
            noted.logged += [(step, name, value) for name, value in values.items()]

        def finish(self) -> None:
            noted.closed += 1

    def init(**settings: Any) -> Run:
        noted.opened.append(settings)
        return Run()

    module.init = init  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", module)
    return noted


@pytest.fixture
def tensorboard(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Noted:
    noted = Noted()
    package, module = ModuleType("tensorboard"), ModuleType("torch.utils.tensorboard")
    package.__spec__ = ModuleSpec("tensorboard", None)

    class SummaryWriter:
        def __init__(self, folder: str, purge_step: int):
            noted.opened.append({"folder": folder, "purge_step": purge_step})

        def add_scalar(self, name: str, value: float, step: int) -> None:
            noted.logged.append((step, name, value))

        def close(self) -> None:
            noted.closed += 1

    module.SummaryWriter = SummaryWriter  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tensorboard", package)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    return noted


def steps(noted: Noted, name: str) -> list[int]:
    return [step for step, logged, _ in noted.logged if logged == name]


def test_tensorboard_gets_every_step_and_evaluation_once_also_of_a_resumed_run(
    tensorboard: Noted,
) -> None:
    interrupted("run", 6, log="tensorboard")
    resume(Path("run"))
    assert tensorboard.opened == [
        {"folder": "run", "purge_step": 1},
        {"folder": "run", "purge_step": 7},
    ]
    assert steps(tensorboard, "loss") == list(range(1, 9))
    assert steps(tensorboard, "val_bits_per_byte") == [4, 8]
    assert tensorboard.closed == 2


def test_wandb_gets_them_with_the_settings_of_the_run(wandb: Noted) -> None:
    train_tiny(out="run", log="wandb")
    (settings,) = wandb.opened
    assert (settings["project"], settings["name"]) == ("minigpt", "run")
    assert settings["config"]["steps"] == 8 and settings["config"]["emb_dim"] == 16
    assert steps(wandb, "learning_rate") == list(range(1, 9))
    assert wandb.closed == 1


def test_nothing_is_begun_for_a_training_that_learns_nothing(
    tensorboard: Noted, monkeypatch: pytest.MonkeyPatch
) -> None:
    after_step(monkeypatch, lambda step: step == 1, lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        train_tiny(out="run", log="tensorboard")
    assert not tensorboard.opened and not Path("run").exists()


def test_a_missing_package_is_named_before_the_text_is_read(
    workplace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["train", "nowhere.txt", "--log", "wandb"]) == 2
    assert capsys.readouterr().err == (
        'error: --log wandb needs a package: pip install "minigpt-text[wandb]"\n'
    )
    with pytest.raises(UserError, match="--log tensorboard needs a package"):
        minigpt.train("my.txt", log="tensorboard")


@pytest.mark.loggers
def test_offline_the_figures_of_weights_and_biases_stay_in_the_run_and_go_with_it(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    run = train_tiny(out="runs/my", log="wandb")
    (written,) = run.glob("wandb/offline-run-*/run-*.wandb")
    content = written.read_bytes()
    for name in (b"val_bits_per_byte", b"learning_rate", b"emb_dim"):
        assert name in content
    assert main(["runs", "--delete", "my", "--yes"]) == 0
    assert not run.exists()


@pytest.mark.loggers
def test_tensorboard_reads_what_was_logged(workplace: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = train_tiny(log="tensorboard")
    events = EventAccumulator(str(run))
    events.Reload()
    assert [event.step for event in events.Scalars("loss")] == list(range(1, 9))
    assert [event.step for event in events.Scalars("val_bits_per_byte")] == [4, 8]
