"""The weights that a training keeps at single steps: which steps these are, that they are the
evaluated ones, and that neither an interruption nor a full disk changes the others.
"""

import contextlib
import random
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file

import minigpt
from minigpt import UserError
from minigpt.config import TrainConfig
from minigpt.runs.folder import KEPT, WEIGHTS, kept_file, kept_steps
from minigpt.runs.weights import read_best, save_weights
from minigpt.training.checkpoint import TrainingState
from minigpt.training.folder import RunFolder
from minigpt.training.kept import KeptWeights, next_step
from tests.conftest import train_tiny
from tests.hostile import NO_ROOM
from tests.training.runs import contents, interrupted, resume


def assert_same_weights(one: Path, other: Path) -> None:
    weights, others = load_file(one), load_file(other)
    assert weights.keys() == others.keys()
    for name, array in weights.items():
        assert (array == others[name]).all(), name


# Which steps


def steps_to_keep(keep: int, steps: int) -> list[int]:
    """All that a training of so many steps keeps."""
    kept = [0]
    while (step := next_step(kept, keep, steps)) is not None and step < steps:
        kept.append(step)
    return [*kept, steps]


@given(st.integers(2, 60), st.integers(1, 10_000))
def test_they_go_from_step_0_to_the_last_each_once_and_as_many_as_were_asked_for(
    keep: int, steps: int
) -> None:
    found = steps_to_keep(keep, steps)
    assert (found[0], found[-1]) == (0, steps)
    assert found == sorted(set(found))
    assert len(found) == min(keep, steps + 1)


def test_twelve_of_600_steps_are_even_on_a_logarithmic_scale() -> None:
    found = steps_to_keep(12, 600)
    assert found == [0, 1, 3, 6, 11, 20, 36, 64, 112, 196, 343, 600]
    ratios = [(b + 1) / (a + 1) for a, b in pairwise(found[5:])]
    assert max(ratios) < 1.05 * min(ratios)


@pytest.mark.parametrize("really", [450, 600, 900])
def test_a_training_by_time_keeps_as_many_though_its_speed_changes(
    really: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The share of the training that is done says how many steps there may be."""
    monkeypatch.setattr("minigpt.training.kept.save_weights", lambda *_, **__: None)
    model = minigpt.GPT(minigpt.GPTConfig(vocab_size=5, emb_dim=8, num_layers=1, num_heads=1))
    trainer: Any = SimpleNamespace(
        model=model,
        folder=RunFolder(tmp_path),
        config=TrainConfig(minutes=1),
        state=TrainingState(),
        averaged=contextlib.nullcontext,
    )
    kept = KeptWeights(12)
    kept.on_start(trainer, {"done": 0.0})
    draw = random.Random(0)
    for step in range(1, really):
        estimated = 600 + (really - 600) * step / really  # at first the machine was as planned
        done = step / (estimated * draw.uniform(0.95, 1.05))
        trainer.state.step = step
        kept.on_step(trainer, {"done": min(done, 0.99)})
    assert len(kept.steps) == 11  # and the last one comes
    assert kept.steps == sorted(set(kept.steps))
    assert kept.steps[:2] == [0, 1]
    assert really / 3 < kept.steps[-1] < really


# Which weights


@pytest.mark.long
def test_they_are_the_evaluated_ones_and_to_keep_them_changes_nothing(workplace: Path) -> None:
    plain, keeping = train_tiny(out="plain"), train_tiny(out="keeping", keep=50)
    assert kept_steps(keeping) == list(range(9))
    assert_same_weights(plain / WEIGHTS, keeping / WEIGHTS)

    best = read_best(keeping / WEIGHTS)
    assert best is not None
    assert_same_weights(keeping / WEIGHTS, kept_file(keeping, int(best["step"])))


@pytest.mark.long
def test_step_0_is_the_model_that_the_training_began_with(workplace: Path) -> None:
    train_tiny(out="first", steps=2, num_evals=1, keep=2)
    common = {"steps": 2, "num_evals": 1, "device": "cpu", "batch_size": 4}
    more = minigpt.train("my.txt", out="more", init="first@2", keep=2, **common)
    assert_same_weights(Path("first/kept/2.safetensors"), kept_file(more, 0))


# Interruptions and faults


def test_a_training_that_goes_on_forgets_the_steps_that_it_takes_again(tmp_path: Path) -> None:
    for step in (0, 2, 5, 7):
        kept_file(tmp_path, step).parent.mkdir(exist_ok=True)
        kept_file(tmp_path, step).write_bytes(b"weights")
    trainer: Any = SimpleNamespace(folder=RunFolder(tmp_path), state=TrainingState(step=5))
    kept = KeptWeights(6)
    kept.on_start(trainer, {"done": 0.5})
    assert kept.steps == kept_steps(tmp_path) == [0, 2, 5]


@pytest.mark.long
def test_an_interrupted_run_has_kept_the_same_files_as_the_uninterrupted_one(
    workplace: Path,
) -> None:
    whole, parts = train_tiny(keep=6), Path("runs/parts")
    interrupted(parts, 3, keep=6)
    begun = contents(parts / KEPT)
    assert begun.keys() < contents(whole / KEPT).keys()

    # Killed after its last checkpoint, it may have kept later ones, of steps it takes again.
    (parts / KEPT / "5.safetensors").write_bytes(b"half")
    (parts / KEPT / "7.safetensors").write_bytes(b"of another time")
    resume(parts)
    assert contents(parts / KEPT) == contents(whole / KEPT)


@pytest.mark.long
def test_a_run_that_is_continued_for_longer_keeps_its_new_end_too(workplace: Path) -> None:
    run = train_tiny(keep=3, steps=4, num_evals=1)
    before = kept_steps(run)
    resume(run, steps=8)
    assert kept_steps(run) == [*before, 8]
    resume(run, steps=16, keep=6)  # two more than there are
    assert len(kept_steps(run)) == 6


@pytest.mark.long
def test_a_full_disk_is_said_once_and_the_training_goes_on(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def save(model: Any, path: Path, step: int) -> None:
        if step == 2:
            raise NO_ROOM
        save_weights(model, path, step=step)

    monkeypatch.setattr("minigpt.training.kept.save_weights", save)
    run = train_tiny(keep=50)
    assert kept_steps(run) == [0, 1, 3, 4, 5, 6, 7, 8]
    said = "could not write the weights of step 2 to runs/my: No space left on device; training"
    assert capsys.readouterr().err.count(said) == 1


def test_weights_cannot_be_kept_without_a_folder(workplace: Path) -> None:
    dataset = minigpt.prepare("my.txt", tokenizer="char")
    vocab_size = dataset.tokenizer.vocab_size
    model = minigpt.GPT(minigpt.GPTConfig(vocab_size, emb_dim=8, num_layers=1, num_heads=1))
    with pytest.raises(UserError, match=r"give out="):
        minigpt.Trainer(model, dataset, TrainConfig(keep=3))
