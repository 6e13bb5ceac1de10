"""The last state of a training: all of it comes back exactly, and what cannot be resumed is refused
by name.
"""

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from minigpt import UserError
from minigpt.config import GPTConfig, TrainConfig
from minigpt.data.origin import Origin
from minigpt.model import GPT
from minigpt.runs.folder import CHECKPOINT, WEIGHTS
from minigpt.runs.weights import save_weights
from minigpt.tokenizer import CharacterTokenizer
from minigpt.training import folder as training_folder
from minigpt.training.checkpoint import (
    LAST,
    PREVIOUS,
    Learner,
    TrainingState,
    _checksum,
    load_checkpoint,
    read_state,
    save_checkpoint,
)
from minigpt.training.folder import RunFolder
from minigpt.training.optimizer import make_optimizers

STATE = TrainingState(7, 12.5, 3, 100, 4.5, 1.5, 1.75, 1.25, 0.75, 5, True)


def checkpoint_path(folder: Path) -> Path:
    return folder / CHECKPOINT / LAST


def training(
    seed: int = 0,
    steps: int = 0,
    optimizer: Any = "adamw",
    interpolate: bool = False,
    **changes: Any,
) -> Learner:
    """A model with dropout and its optimizers, after some steps."""
    torch.manual_seed(seed)
    shape = {"context_length": 6, "emb_dim": 8, "num_layers": 2, "num_heads": 2, "dropout": 0.3}
    model = GPT(GPTConfig(5, **(shape | changes)))
    config = TrainConfig(optimizer=optimizer, interpolate=interpolate, weight_decay=0.5)
    learner = Learner.of(model, make_optimizers(model, config), config)
    step(learner, steps)
    return learner


def step(learner: Learner, times: int) -> None:
    for number in range(times):
        torch.manual_seed(0)  # for dropout
        learner.model.loss(torch.tensor([[0, 1, 2, 3]]), torch.tensor([[1, 2, 3, 4]])).backward()
        for optimizer in learner.optimizers:
            optimizer.step()
        learner.model.zero_grad()
        learner.average.update(number)


def everything(learner: Learner) -> list[Tensor]:
    """Weights, their averages, and optimizer state."""
    tensors = list(learner.tensors().values())
    for optimizer in learner.optimizers:
        for values in optimizer.state_dict()["state"].values():
            tensors += values.values()
    return [tensor.detach().clone() for tensor in tensors]


def assert_same(one: list[Tensor], other: list[Tensor]) -> None:
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a checkpoint; hypothesis puts it back when it has spoiled it."""
    folder = tmp_path_factory.mktemp("saved")
    save_checkpoint(folder, training(steps=2), STATE)
    return folder


CHANGES: list[dict[str, Any]] = [
    {},
    {"tie_embeddings": False},
    {"architecture": "gpt2"},
    {"interpolate": True},
]


@pytest.mark.parametrize(
    ("optimizer", "changes", "steps"),
    [
        ("adamw", {}, 0),
        ("muon", {"interpolate": True}, 0),
        *((optimizer, changes, 3) for optimizer in ("adamw", "muon") for changes in CHANGES),
    ],
    ids=str,
)
def test_a_training_comes_back_exactly_and_goes_on_as_if_it_had_never_stopped(
    tmp_path: Path, steps: int, changes: dict[str, Any], optimizer: str
) -> None:
    before = training(steps=steps, optimizer=optimizer, **changes)
    expected, state = everything(before), dataclasses.replace(STATE, step=steps)
    save_checkpoint(tmp_path, before, state)
    assert_same(everything(before), expected)  # saving changes nothing
    for steps_before in (0, 1):
        after = training(1, steps_before, optimizer, **changes)
        assert load_checkpoint(tmp_path, after) == (state, [])
        assert_same(everything(after), expected)
    step(before, times=2)
    step(after, times=2)
    assert_same(everything(after), everything(before))


def test_the_checkpoint_before_the_last_is_kept(tmp_path: Path) -> None:
    for step_count in range(3):
        save_checkpoint(tmp_path, training(), TrainingState(step_count))
    assert {f.name for f in (tmp_path / CHECKPOINT).iterdir()} == {LAST, PREVIOUS}
    assert read_state(tmp_path) == TrainingState(2)
    checkpoint_path(tmp_path).unlink()
    assert read_state(tmp_path) == TrainingState(1)


# What cannot be resumed


def test_a_run_without_a_checkpoint_is_named(tmp_path: Path) -> None:
    for read in (read_state, lambda folder: load_checkpoint(folder, training())):
        with pytest.raises(UserError, match=f"{tmp_path} has no checkpoint"):
            read(tmp_path)


@pytest.mark.parametrize(
    "other",
    [
        {"emb_dim": 16},
        {"num_layers": 3},
        {"tie_embeddings": False},
        {"architecture": "gpt2"},
        {"optimizer": "muon"},
    ],
    ids=str,
)
def test_a_checkpoint_of_another_model_or_optimizer_changes_nothing(
    saved: Path, other: dict[str, Any]
) -> None:
    learner = training(**other)
    before = everything(learner)
    with pytest.raises(UserError, match=r"last.safetensors: it does not fit this run"):
        load_checkpoint(saved, learner)
    assert_same(everything(learner), before)


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_damaged_checkpoint_is_refused_by_name(saved: Path, data: st.DataObject) -> None:
    """Cut off, or a byte flipped, wherever it is; in the header's padding that may be harmless."""
    path = checkpoint_path(saved)
    whole = path.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    place = data.draw(st.integers(0, header - 1) | st.integers(header, len(whole) - 1))
    flipped = bytes([whole[place] ^ data.draw(st.integers(1, 255))])
    is_cut = data.draw(st.booleans())
    try:
        path.write_bytes(whole[:place] + (b"" if is_cut else flipped + whole[place + 1 :]))
        state = read_state(saved)
        assert place < header and not is_cut and state == STATE
    except UserError as error:
        assert "last.safetensors" in str(error)
    finally:
        path.write_bytes(whole)


def test_the_checksum_covers_the_counters(saved: Path, tmp_path: Path) -> None:
    """Another number of steps would go on from here with other batches and rates."""
    content = checkpoint_path(saved).read_bytes()
    old, new = (rb"\"step\": %d," % step for step in (7, 8))
    assert content.count(old) == 1
    checkpoint_path(tmp_path).parent.mkdir()
    checkpoint_path(tmp_path).write_bytes(content.replace(old, new))
    with pytest.raises(UserError, match="its checksum does not match"):
        read_state(tmp_path)


def rewritten(saved: Path, folder: Path, without: str = "", **counters: Any) -> Path:
    """The checkpoint of `saved` with other counters or a part missing, its checksum right."""
    tensors = load_file(checkpoint_path(saved))
    tensors.pop(without, None)
    with safe_open(checkpoint_path(saved), "pt") as file:
        metadata = file.metadata()
    metadata["state"] = json.dumps(dataclasses.asdict(STATE) | counters)
    metadata["sha256"] = _checksum(metadata, tensors)
    checkpoint_path(folder).parent.mkdir()
    save_file(tensors, checkpoint_path(folder), metadata)
    return folder


@pytest.mark.parametrize(
    ("counters", "words"),
    [
        ({"colour": 1}, "unknown field 'colour'"),
        ({"step": "7"}, "step must be a whole number, got '7'"),
        ({"step": -1}, "step must be at least 0, got -1"),
    ],
    ids=str,
)
def test_counters_that_cannot_be_are_refused(
    saved: Path, tmp_path: Path, counters: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError, match=f"last.safetensors.*{words}"):
        read_state(rewritten(saved, tmp_path, **counters))


@pytest.mark.parametrize(
    "name", ["model.final_norm.weight", "average.final_norm.weight", "optimizer.0.0.exp_avg"]
)
def test_a_checkpoint_with_a_part_missing_is_refused(
    saved: Path, tmp_path: Path, name: str
) -> None:
    with pytest.raises(
        UserError, match=f"last.safetensors: it does not fit this run, see .*{name}"
    ):
        load_checkpoint(rewritten(saved, tmp_path, without=name), training())


def test_checkpoints_take_a_twentieth_of_the_time_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After one that takes 3 s there is none for a minute; after a fast one for as long as asked
    for."""
    now = [0.0]

    def write(*_: Any, **__: Any) -> None:
        now[0] += cost

    monkeypatch.setattr(training_folder, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(training_folder, "save_checkpoint", write)
    folder = RunFolder(tmp_path)
    config = TrainConfig(checkpoint_seconds=10.0)
    for cost, pause in ((3.0, 60.0), (0.1, 10.0)):
        folder.save_checkpoint(training(), dataclasses.replace(STATE, seconds=100.0), config)
        for early, is_due in ((0.01, False), (-0.01, True)):
            seconds = 100.0 + cost + pause - early
            state = dataclasses.replace(STATE, seconds=seconds)
            assert folder.is_checkpoint_due(state) == is_due


def test_the_best_weights_say_how_good_they_are_where_their_checkpoint_is_older(
    tmp_path: Path,
) -> None:
    learner = training()
    model, config = learner.model, TrainConfig()
    dataset: Any = SimpleNamespace(tokenizer=CharacterTokenizer("abcde"), origin=Origin())
    folder = RunFolder(tmp_path / "run")
    with folder.begun(model, dataset, config, context_length=6, files={}):
        state = TrainingState(step=5, best_loss=1.0, best_bits_per_byte=2.0, best_step=3)
        folder.save_checkpoint(learner, state, config)
        best = {"val_loss": 0.5, "val_bits_per_byte": 0.25, "step": 7}
        save_weights(model, tmp_path / "run" / WEIGHTS, best=best)
    with folder.held():
        state = folder.resume(learner, config, dataset)
    assert (state.best_loss, state.best_bits_per_byte, state.best_step) == (0.5, 0.25, 7)
