"""A training that is interrupted and resumed, however often, ends as if nothing had happened, bit
for bit; what cannot be resumed is refused and stays as it was.
"""

import dataclasses
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import minigpt
from minigpt import UserError
from minigpt.runs.folder import CHECKPOINT, METRICS, WEIGHTS, read_metrics
from minigpt.runs.read_model import load_run
from minigpt.runs.state import texts_of_evaluations
from minigpt.runs.weights import save_weights
from minigpt.training.checkpoint import LAST, PREVIOUS, read_state
from minigpt.training.interruption import Interrupted
from tests.conftest import train_tiny
from tests.training.runs import after_step, contents, interrupted, resume

pytestmark = pytest.mark.long


def assert_same_end(one: Path, other: Path) -> None:
    """Weights, optimizer state, evaluations and their texts, bit for bit."""
    for path in (one / WEIGHTS, one / CHECKPOINT / LAST):
        tensors, others = load_file(path), load_file(other / path.relative_to(one))
        assert tensors.keys() == others.keys()
        for name, tensor in tensors.items():
            assert torch.equal(tensor, others[name]), name
    figures = [
        [(row["step"], row["val_loss"]) for row in read_metrics(folder / METRICS)]
        for folder in (one, other)
    ]
    assert figures[0] == figures[1]
    assert texts_of_evaluations(one) == texts_of_evaluations(other)
    states = [dataclasses.replace(read_state(folder), seconds=0.0) for folder in (one, other)]
    assert states[0] == states[1]


# Interruption


@pytest.mark.parametrize("step", [1, 3, 4, 7])
def test_an_interrupted_run_ends_as_the_uninterrupted_one(workplace: Path, step: int) -> None:
    """Stopped at the first step, before, at and after an evaluation; it can be used meanwhile."""
    chance = {"dropout": 0.2, "token_split_prob": 0.2}
    whole, parts = train_tiny(**chance), Path("runs/parts")
    interrupted(parts, step, **chance)
    assert read_state(parts).step == step
    assert minigpt.load(parts).generate("the", max_new_tokens=3, seed=0).startswith("the")
    assert resume(parts) == parts
    assert_same_end(parts, whole)


def test_a_run_interpolates_its_weights_once_resumed_without_the_run_that_it_began_with(
    workplace: Path, tiny_run: Path
) -> None:
    """The weights that it began with are in the checkpoint."""
    shutil.copytree(tiny_run, "other")
    tuned: dict[str, Any] = {"init": "other", "steps": 8, "num_evals": 2}
    tuned |= {"learning_rate": 0.1, "device": "cpu"}
    whole = minigpt.train("my.txt", out="runs/whole", **tuned)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Interrupted):
        after_step(patch, lambda at: at == 3, lambda: signal.raise_signal(signal.SIGINT))
        minigpt.train("my.txt", out="runs/parts", **tuned)

    shutil.rmtree("other")
    assert_same_end(resume(Path("runs/parts")), whole)
    last = read_metrics(whole / METRICS)[-1]
    assert 0.0 < last["interpolation"] < 1.0 and read_state(whole).best_step == 8


SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
if os.name != "nt":  # Windows has no SIGHUP
    SIGNALS.append((signal.SIGHUP, 129))


@pytest.mark.parametrize(("number", "status"), SIGNALS)
def test_a_signal_is_said_once_and_is_the_exit_status(
    workplace: Path, number: int, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    handlers = [signal.getsignal(n) for n, _ in SIGNALS]
    assert interrupted(Path("runs/my"), 3, number).exit_status == status
    assert capsys.readouterr().err.count("interrupted: ") == 1
    assert [signal.getsignal(n) for n, _ in SIGNALS] == handlers


def test_a_second_signal_acts_at_once(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def press_twice() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the second signal waited too")

    after_step(monkeypatch, lambda step: step == 3, press_twice)
    with pytest.raises(KeyboardInterrupt):
        train_tiny()
    assert load_run("runs/my").config.training.steps == 8
    assert read_state(Path("runs/my")).step == 1


# Resuming


def test_a_run_that_is_over_says_so_when_resumed(workplace: Path) -> None:
    folder = train_tiny()
    before = contents(folder)
    with pytest.raises(UserError, match=r"runs/my is finished \(8 steps in .*--steps"):
        resume(folder)
    assert contents(folder) == before


def test_a_run_that_is_over_can_be_given_more_steps(workplace: Path) -> None:
    """What is learned in them is evaluated, kept if it is better, and saved."""
    folder = train_tiny()
    resume(folder, steps=16)
    steps = [row["step"] for row in read_metrics(folder / METRICS)]
    assert steps[:2] == [4, 8] and steps[-1] == read_state(folder).step == 16
    assert load_run(folder).config.training.steps == 16


def test_a_run_resumed_with_fewer_evaluations_is_still_evaluated_at_its_end(
    workplace: Path,
) -> None:
    folder = Path("runs/my")
    interrupted(folder, 6, num_evals=8)
    resume(folder, num_evals=2)
    assert read_metrics(folder / METRICS)[-1]["step"] == read_state(folder).step == 8


def test_a_run_that_went_by_steps_can_be_resumed_by_time(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = train_tiny()
    after_step(monkeypatch, lambda step: True, lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(Interrupted):
        resume(folder, minutes=1000)
    assert read_state(folder).step == 9


@pytest.mark.parametrize(
    ("tokenizer", "change"),
    [
        ("bpe", lambda text: text[:-20] + text[-20:].upper()),
        ("char", lambda text: text[::-1]),
    ],
    ids=["another end, to validate on", "the same characters"],
)
def test_a_run_whose_text_has_changed_is_not_resumed(
    workplace: Path, tokenizer: str, change: Callable[[str], str]
) -> None:
    folder, text = Path("runs/my"), Path("my.txt").read_text()
    interrupted(folder, 3, tokenizer=tokenizer)
    before = contents(folder)
    Path("my.txt").write_text(change(text))
    with pytest.raises(UserError, match=r"my\.txt has changed since .*: --init runs/my$"):
        resume(folder)
    assert contents(folder) == before
    Path("my.txt").unlink()
    with pytest.raises(UserError, match=r"no such file: my\.txt"):
        resume(folder)


def test_weights_are_only_replaced_by_better_ones_than_those_in_the_file(workplace: Path) -> None:
    """Also when they were saved and their checkpoint was not: the file says how good they are."""
    folder = Path("runs/my")
    interrupted(folder, 5)
    best = {"val_loss": 0.5, "val_bits_per_byte": 0.25, "step": 7}
    save_weights(load_run(folder).model, folder / WEIGHTS, best)
    before = (folder / WEIGHTS).read_bytes()
    resume(folder)
    assert (folder / WEIGHTS).read_bytes() == before
    state = read_state(folder)
    assert (state.best_loss, state.best_bits_per_byte, state.best_step) == (0.5, 0.25, 7)


def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The damaged one never takes its place, which would leave a moment without a whole one."""
    whole, parts = train_tiny(), Path("runs/parts")
    interrupted(parts, 6)
    last = parts / CHECKPOINT / LAST
    data = bytearray(last.read_bytes())
    data[-100] ^= 1  # a bit of a tensor
    last.write_bytes(data)
    before = (parts / CHECKPOINT / PREVIOUS).read_bytes()

    def look() -> None:  # after the first save, while the next is not yet due
        assert (parts / CHECKPOINT / PREVIOUS).read_bytes() == before
        assert read_state(parts).step == 4
        looked.append(True)

    looked: list[bool] = []
    with monkeypatch.context() as patch:
        after_step(patch, lambda step: step == 5, look)
        resume(parts)
    assert looked
    said = capsys.readouterr().err
    assert f"{LAST}: it is damaged: its checksum does not match; going back to the one" in said
    assert_same_end(parts, whole)


def test_when_no_checkpoint_is_whole_the_run_is_refused_and_untouched(workplace: Path) -> None:
    folder = train_tiny()
    for name in (LAST, PREVIOUS):
        os.truncate(folder / CHECKPOINT / name, 1000)
    before = contents(folder)
    both = f"runs/my has no checkpoint to resume from.*{LAST}.*damaged.*{PREVIOUS}.*damaged"
    with pytest.raises(UserError, match=both):
        resume(folder, steps=20)
    assert contents(folder) == before
