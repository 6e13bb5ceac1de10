"""`train --resume`: which run is meant, what it can be given, and which options act."""

import dataclasses
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

import minigpt
from minigpt.config import TrainConfig
from minigpt.runs.folder import CHECKPOINT, LAST, METRICS, WEIGHTS, read_config, read_metrics
from minigpt.training.checkpoint import read_state
from tests.conftest import TINY, move_into, some_text, train_tiny
from tests.training.runs import after_step, contents, interrupted, resume

from .conftest import Type, assert_refused


def is_finished(run: Path) -> bool:
    return bool(minigpt.Run(run).about()["finished"])


@pytest.mark.long
def test_the_run_that_was_trained_last_goes_on_though_another_has_newer_weights(
    tiny_run: Path, workplace: Path, type_: Type
) -> None:
    shutil.copytree(tiny_run, "runs/other")
    interrupted("runs/last", 3)
    os.utime(Path("runs/last", WEIGHTS), (1000, 1000))
    status, _, err = type_("train --resume")
    assert status == 0 and "continuing runs/last after 3 steps" in err


@pytest.mark.long
def test_a_run_is_known_by_its_text_however_the_name_is_typed(workplace: Path, type_: Type) -> None:
    Path("letters").mkdir()
    Path("letters/one.txt").write_text(some_text())
    interrupted("runs/letters", texts=("letters/",))
    names = ["letters", "letters --out runs/letters", f"{workplace}/letters", "./letters/"]
    for steps, name in enumerate(names, start=3):
        status, _, err = type_(f"train {name} --resume --steps {steps + 1}")
        assert status == 0 and f"continuing runs/letters after {steps} steps" in err, err
    assert_refused(type_("train my.txt --resume"), "no run in runs/ was trained on my.txt")
    refused = type_("train my.txt --resume --out runs/letters")
    assert_refused(refused, "runs/letters learned from letters/")


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The place of a run that has ended because it has read its text once, long before its time
    was over."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        place = move_into(tmp_path_factory.mktemp("ended"), monkeypatch)
        settings = {name: value for name, value in TINY.items() if name != "steps"}
        run = minigpt.train("my.txt", minutes=5, max_epochs=1, **settings)
        assert read_state(run).step == 11
        return place


@pytest.fixture
def read_once(ended: Path, workplace: Path) -> Path:
    """A copy of that run, with what is prepared of its text."""
    for name in ("runs", "cache"):
        shutil.copytree(ended / name, name)
    return Path("runs/my")


def test_a_run_that_its_epochs_ended_goes_on_with_more_of_them(
    read_once: Path, type_: Type
) -> None:
    status, _, err = type_("train --resume --max-epochs 2")
    assert status == 0, err
    assert read_state(read_once).step == 22 and is_finished(read_once)


def test_what_gives_a_finished_run_no_more_is_refused_with_what_does(
    read_once: Path, type_: Type
) -> None:
    before = contents(read_once)
    said = "runs/my is finished (11 steps in 00:00); give it more with a larger "
    refused = {
        "": "--minutes or --max-epochs or --steps",
        "--minutes 9": "--max-epochs than 1",
        "--minutes 4 --max-epochs 0.5": "--minutes or --max-epochs or --steps",
        "--steps 11": "--minutes or --max-epochs or --steps",
    }
    for options, remedy in refused.items():
        outcome = type_("train", "--resume", *options.split())
        assert_refused(outcome, said.split("00:00", maxsplit=1)[0], said.split("00:00")[1] + remedy)
    after = contents(read_once)
    assert all(after[name] == before[name] for name in before if "journal" not in name)


def test_a_finished_run_that_goes_on_is_unfinished_until_it_ends_again(
    tiny_run: Path, workplace: Path, type_: Type
) -> None:
    """Also if it is killed before anything else is saved."""
    run = Path("runs/my")
    for copy in (run, Path("runs/killed")):
        shutil.copytree(tiny_run, copy)
    assert is_finished(run)
    with pytest.MonkeyPatch.context() as patch:
        after_step(patch, lambda step: step == 31, lambda: signal.raise_signal(signal.SIGINT))
        assert type_("train --resume --out runs/my --steps 32")[0] == 130
    assert not is_finished(run)
    assert "not finished" in type_("runs")[1].splitlines()[0]
    assert type_("train --resume --out runs/my")[0] == 0 and is_finished(run)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("minigpt.training.trainer.Trainer._train", lambda self: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            resume(Path("runs/killed"), minutes=9.0)
    assert not is_finished(Path("runs/killed"))


@pytest.mark.parametrize("option", ["--eval-tokens 20 --steps 40", "--lesson --minutes 9"])
def test_what_a_run_depends_on_from_its_beginning_is_refused(
    tiny_run: Path, workplace: Path, type_: Type, option: str
) -> None:
    run = Path("runs/my")
    shutil.copytree(tiny_run, run)
    refused = type_(f"train --resume {option}")
    assert_refused(refused, f"{option.split(maxsplit=1)[0]} is for a new run; a run keeps its own")
    assert read_state(run).step == 30


@pytest.mark.long
def test_every_option_beside_resume_acts_or_is_refused(workplace: Path) -> None:
    """Each is told by the trained weights, but for some of which another test tells."""
    acts: dict[str, Any] = {
        "steps": 9,
        "token_split_prob": 0.5,
        "warmup_context": 4,
        "batch_size": 2,
        "learning_rate": 0.1,
        "min_lr_ratio": 0.9,
        "warmup_ratio": 0.9,
        "weight_decay": 0.9,
        "momentum": 0.1,
        "beta1": 0.1,
        "beta2": 0.1,
        "grad_clip": 1e-4,
        "seed": 9,
        "precision": "bfloat16",
    }
    told_elsewhere = {
        "minutes", "max_epochs", "micro_batch_size", "num_workers", "num_evals", "interpolate",
        "checkpoint_seconds", "keep", "sample_prompt", "device", "compile", "log",
    }  # fmt: skip
    refused = {"lesson", "eval_tokens", "optimizer"}
    fields = {field.name for field in dataclasses.fields(TrainConfig)}
    assert fields == acts.keys() | told_elsewhere | refused

    interrupted("runs/cut", 2)
    usual = _ended("usual", {})
    for name, value in acts.items():
        ended = _ended(name, {name: value})
        assert any((ended[key] != tensor).any() for key, tensor in usual.items()), name

    shutil.copytree("runs/cut", "runs/more")
    resume(Path("runs/more"), num_evals=8, keep=3)
    assert len(read_metrics(Path("runs/more", METRICS))) == 7
    assert minigpt.Run("runs/more").kept()[-1] == 8
    assert read_config(Path("runs/more")).training.keep == 3


def _ended(name: str, changes: dict[str, Any]) -> dict[str, Any]:
    """The last weights of the run once it has gone on with some changes."""
    run = Path("runs", name)
    shutil.copytree("runs/cut", run)
    resume(run, **changes)
    last: dict[str, Any] = load_file(run / CHECKPOINT / LAST)
    return {key: tensor for key, tensor in last.items() if key.startswith("model.")}


def test_the_clock_of_a_run_counts_its_evaluations(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of its last step, too, so that it goes on where it was."""
    import time

    from minigpt.training import trainer

    ahead = [0.0]
    monotonic = time.monotonic
    best = trainer.best_candidate

    def slow(*arguments: Any) -> Any:
        ahead[0] += 1000.0
        return best(*arguments)

    monkeypatch.setattr("minigpt.training.pace.now", lambda: monotonic() + ahead[0])
    monkeypatch.setattr(trainer, "best_candidate", slow)
    run = train_tiny()
    assert read_state(run).seconds == pytest.approx(2000.0, abs=100.0)
    assert (run / WEIGHTS).is_file()
