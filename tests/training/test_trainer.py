"""A training from text to run folder: what it writes, that the same seed gives the same weights, an
interruption makes no difference, and the best weights are the ones kept.
"""

import dataclasses
import json
import math
import shutil
import signal
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import minigpt
from minigpt import UserError
from minigpt.config import TextConfig, TrainConfig
from minigpt.data.batches import Dataset
from minigpt.data.corpus import find_source
from minigpt.data.token_cache import prepare
from minigpt.model import GPT
from minigpt.runs import (
    CHECKPOINT,
    METRICS,
    PICTURE,
    SAMPLES,
    WEIGHTS,
    load_run,
    read_best,
    read_config,
    save_weights,
)
from minigpt.training.checkpoint import LAST, TrainingState, read_state
from minigpt.training.evaluation import evaluate_tokens
from minigpt.training.interruption import Interrupted
from minigpt.training.report import Report, read_metrics
from minigpt.training.resume import resume_run
from minigpt.training.trainer import Trainer, training_batch
from tests.conftest import some_text, train_tiny

TRAINING, VALIDATION = {"train_loss", "train_bits_per_byte"}, {"val_loss", "val_bits_per_byte"}
FIELDS = {"step", "seconds", "tokens_per_second"} | TRAINING | VALIDATION


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are tested in test_report.py, and drawing one takes longer than training."""
    monkeypatch.setattr("minigpt.training.report.draw", lambda *_: None)


def checkpoint_path(folder: Path) -> Path:
    return folder / CHECKPOINT / LAST


def rows(folder: Path) -> list[dict[str, Any]]:
    return read_metrics(folder / METRICS)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def resume(folder: Path, **changes: Any) -> Path:
    return resume_run(folder, changes, time.monotonic())


def interrupted(out: Path, step: int, number: int = signal.SIGINT, **changes: Any) -> Interrupted:
    """A run stopped by a signal in the middle of a step, and what it was stopped with."""

    def stopping(self: Report, state: TrainingState, *rest: float) -> None:
        plain(self, state, *rest)
        if state.step == step:
            signal.raise_signal(number)

    plain = Report.step
    with pytest.MonkeyPatch.context() as monkeypatch, pytest.raises(Interrupted) as stopped:
        monkeypatch.setattr(Report, "step", stopping)
        train_tiny(out=out, **changes)
    return stopped.value


def assert_same_end(one: Path, other: Path) -> None:
    """Weights, optimizer and random state, evaluations and samples, bit for bit."""
    for path in (one / WEIGHTS, checkpoint_path(one)):
        tensors, others = load_file(path), load_file(other / path.relative_to(one))
        assert tensors.keys() == others.keys()
        for name, tensor in tensors.items():
            assert torch.equal(tensor, others[name]), name
    for name in ("step", "val_loss"):
        assert [row[name] for row in rows(one)] == [row[name] for row in rows(other)]
    assert (one / SAMPLES).read_text() == (other / SAMPLES).read_text()
    states = [dataclasses.replace(read_state(folder), seconds=0.0) for folder in (one, other)]
    assert states[0] == states[1]


# What a training leaves


def test_a_run_holds_every_file(tiny_run: Path) -> None:
    names = {"config.json", "model.safetensors", "tokenizer.json", "metrics.jsonl", "samples.txt"}
    names |= {"plan.json"}
    states = {"checkpoint/last.safetensors", "checkpoint/previous.safetensors"}
    assert contents(tiny_run).keys() - {".lock"} == names | states | {"loss.png"}
    assert (tiny_run / PICTURE).read_bytes().startswith(b"\x89PNG")
    assert tiny_run.name == "my" and tiny_run.parent.name == "runs"


def test_every_evaluation_is_a_row_and_a_sample(tiny_run: Path) -> None:
    assert [row["step"] for row in rows(tiny_run)] == [10, 20, 30]
    for row in rows(tiny_run):
        assert row.keys() == FIELDS
        assert all(math.isfinite(row[name]) and row[name] > 0 for name in FIELDS)
    assert all(a["seconds"] < b["seconds"] for a, b in pairwise(rows(tiny_run)))
    samples = (tiny_run / SAMPLES).read_text().splitlines()
    assert [s for s in samples if s.startswith("---")] == [f"--- step {n}" for n in (10, 20, 30)]


def test_the_loss_falls(workplace: Path) -> None:
    folder = train_tiny(steps=60, num_evals=3, learning_rate=1e-2)
    losses = [(row["train_loss"], row["val_loss"]) for row in rows(folder)]
    assert losses[0][0] > losses[1][0] > losses[2][0]
    assert losses[2][1] < losses[0][1] < math.log(300)


def test_there_is_at_most_one_evaluation_a_step(workplace: Path) -> None:
    folder = train_tiny(steps=3, num_evals=10)
    assert [row["step"] for row in rows(folder)] == [1, 2, 3]


def test_the_weights_kept_are_those_of_the_best_evaluation(workplace: Path) -> None:
    """Judged by a text written backwards, learning to write forwards soon makes it worse."""
    Path("backwards.txt").write_text(some_text()[::-1])
    other = {"validation": ("backwards.txt",), "tokenizer": "char", "dropout": 0.0}
    folder = train_tiny(steps=32, num_evals=16, learning_rate=1e-2, emb_dim=32, **other)
    losses = [row["val_loss"] for row in rows(folder)]
    assert min(losses) < min(losses[0], losses[-1]) - 0.05
    run = load_run(folder)
    dataset = prepare(find_source(run.config.text), run.config.text)
    lengths = torch.tensor(run.tokenizer.byte_lengths())
    result = evaluate_tokens(run.model, dataset.validation, lengths, max_tokens=10**6)
    assert result.loss == pytest.approx(min(losses), rel=1e-6)
    state = read_state(folder)
    assert state.best_loss == min(losses) and state.step == 32
    best = rows(folder)[losses.index(min(losses))]
    assert state.best_step == best["step"]
    assert read_best(folder / WEIGHTS) == {
        name: best[name] for name in ("val_loss", "val_bits_per_byte", "step")
    }


def test_the_same_seed_ends_with_the_same_weights_and_another_with_others(workplace: Path) -> None:
    one, same, other = (
        load_file(train_tiny(seed=seed, dropout=0.2) / WEIGHTS) for seed in (1, 1, 2)
    )
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not any(torch.equal(one[name], other[name]) for name in one)
    assert {f.name for f in (workplace / "runs").iterdir()} == {"my", "my-2", "my-3"}


def test_evaluating_does_not_change_what_is_learned(workplace: Path) -> None:
    """Nor does the sample that is shown then: both runs end with the same last state."""
    seldom, often = (train_tiny(num_evals=n, dropout=0.2) for n in (1, 8))
    ends = [load_file(checkpoint_path(folder)) for folder in (seldom, often)]
    assert all(torch.equal(tensor, ends[1][name]) for name, tensor in ends[0].items())


def batch(
    done: float, rows: slice = slice(None), **changes: Any
) -> tuple[Dataset, list[tuple[Tensor, Tensor]]]:
    """The batch of step 3 of a training on my.txt."""
    text = TextConfig(("my.txt",), vocab_size=300)
    dataset = prepare(find_source(text), text)
    config = TrainConfig(**({"batch_size": 4} | changes))
    return dataset, training_batch(dataset, config, 16, 3, done, rows)


def test_tokens_are_split_until_near_the_end(workplace: Path) -> None:
    for done, are_alike in ((0.0, False), (0.79, False), (0.8, True), (1.0, True)):
        (_, ((plain, _),)), (dataset, ((split, targets),)) = (
            batch(done, token_split_prob=share) for share in (0.0, 0.5)
        )
        assert torch.equal(plain, split) == are_alike
        assert torch.equal(split[:, 1:], targets[:, :-1])
        texts = [dataset.tokenizer.decode(ids.tolist()) for ids in (plain[0], split[0])]
        assert texts[0].startswith(texts[1])  # split tokens spell the same text


def test_windows_are_cut_until_near_the_end(workplace: Path) -> None:
    """The tokens stay the same, but for those too few for a piece; so do the targets."""
    whole = batch(done=0.8, warmup_context=6)[1][0]
    for part, full in zip(batch(done=0.79, warmup_context=6)[1][0], whole, strict=True):
        assert full.shape == (4, 16) and part.shape == (12, 5)
        assert torch.equal(part.reshape(4, 15), full[:, :15])


def test_a_batch_is_the_same_in_parts_and_in_shares(workplace: Path) -> None:
    ((whole, targets),) = batch(done=0.5, token_split_prob=0.3)[1]
    for rows in ([slice(0, 4)], [slice(0, 2), slice(2, 4)]):
        parts = [
            part
            for share in rows
            for part in batch(0.5, share, token_split_prob=0.3, micro_batch_size=3)[1]
        ]
        assert max(len(x) for x, _ in parts) <= 3
        assert torch.equal(torch.cat([x for x, _ in parts]), whole)
        assert torch.equal(torch.cat([y for _, y in parts]), targets)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_the_loss_in_training_is_for_a_byte_however_tokens_are_split(
    workplace: Path, share: float
) -> None:
    """Of a first step: nats a token, times the tokens, over the bytes that they decode to."""
    folder = train_tiny(token_split_prob=share, steps=1, num_evals=1)
    (row,), config = rows(folder), read_config(folder)
    dataset = prepare(find_source(config.text), config.text)
    ((_, targets),) = training_batch(dataset, config.training, 16, step=0, done=0.0)
    size = sum(len(dataset.tokenizer.decode(ids).encode()) for ids in targets.tolist())
    bits = row["train_loss"] / math.log(2) * targets.numel() / size
    assert row["train_bits_per_byte"] == pytest.approx(bits)


# Interruption


@pytest.mark.parametrize("chance", [0.0, 0.2])
@pytest.mark.parametrize("step", [1, 3, 4, 7])
def test_an_interrupted_run_ends_as_the_uninterrupted_one(
    workplace: Path, step: int, chance: float
) -> None:
    """Stopped at the first step, before, at and after an evaluation; with and without chance."""
    whole = train_tiny(dropout=chance, token_split_prob=chance)
    parts = Path("runs/parts")
    interrupted(parts, step, dropout=chance, token_split_prob=chance)
    assert read_state(parts).step == step
    assert resume(parts) == parts
    assert_same_end(parts, whole)


def test_a_run_interrupted_often_ends_as_the_uninterrupted_one(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train_tiny(dropout=0.2)
    parts = Path("runs/parts")
    interrupted(parts, 1, dropout=0.2)
    plain = Report.step

    def stopping(self: Report, state: TrainingState, *rest: float) -> None:
        plain(self, state, *rest)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Report, "step", stopping)
    for step in range(2, 8):
        with pytest.raises(Interrupted):
            resume(parts)
        assert read_state(parts).step == step
    resume(parts)
    assert_same_end(parts, whole)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_is_the_exit_status(workplace: Path, number: int, status: int) -> None:
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    assert interrupted(Path("runs/my"), 3, number).exit_status == status
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_an_interrupted_run_can_be_used(workplace: Path) -> None:
    """One that was evaluated, and one that never was."""
    for step in (1, 5):
        folder = Path(f"runs/{step}")
        interrupted(folder, step)
        assert minigpt.load(folder).generate("the", max_new_tokens=3, seed=0).startswith("the")


def test_a_second_signal_acts_at_once(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopping(self: Report, *arguments: float) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the second signal was put off too")

    monkeypatch.setattr(Report, "step", stopping)
    with pytest.raises(KeyboardInterrupt):
        train_tiny()
    assert load_run("runs/my").config.training.steps == 8


# Resuming


def test_a_run_that_is_over_says_so_when_resumed(workplace: Path) -> None:
    folder = train_tiny()
    before = contents(folder)
    with pytest.raises(UserError, match=r"runs/my has had its time \(8 steps in .*--steps"):
        resume(folder)
    assert contents(folder) == before


def test_a_run_that_is_over_can_be_given_more_steps(workplace: Path) -> None:
    """What is learned in them is evaluated, kept if it is better, and saved."""
    folder = train_tiny()
    resume(folder, steps=16)
    steps = [row["step"] for row in rows(folder)]
    assert steps[:2] == [4, 8] and steps[-1] == read_state(folder).step == 16
    assert load_run(folder).config.training.steps == 16


def test_a_run_resumed_with_fewer_evaluations_is_still_evaluated_at_its_end(
    workplace: Path,
) -> None:
    folder = Path("runs/my")
    interrupted(folder, 6, num_evals=8)
    resume(folder, num_evals=2)
    assert rows(folder)[-1]["step"] == read_state(folder).step == 8


def test_a_run_that_went_by_steps_can_be_resumed_by_time(workplace: Path) -> None:
    """It is told to try --minutes, so that has to do something."""
    folder = train_tiny()
    with pytest.raises(UserError, match="--minutes"):
        resume(folder)
    with pytest.MonkeyPatch.context() as monkeypatch, pytest.raises(Interrupted):
        monkeypatch.setattr(Report, "step", lambda *_: signal.raise_signal(signal.SIGINT))
        resume(folder, minutes=1000)


@pytest.mark.parametrize(
    ("tokenizer", "change"),
    [
        ("bpe", lambda text: "An ox and an axe. " + text),
        ("bpe", lambda text: text[:-20] + text[-20:].upper()),
        ("char", lambda text: text[::-1]),
    ],
    ids=["another beginning", "another end, to validate on", "the same characters"],
)
def test_a_run_whose_text_has_changed_is_not_resumed(
    workplace: Path, tokenizer: str, change: Callable[[str], str]
) -> None:
    folder, text = Path("runs/my"), Path("my.txt").read_text()
    interrupted(folder, 3, tokenizer=tokenizer)
    before = contents(folder)
    Path("my.txt").write_text(change(text))
    with pytest.raises(UserError, match="the text of runs/my has changed"):
        resume(folder)
    assert contents(folder) == before


def test_a_text_that_is_gone_is_named_on_resuming(workplace: Path) -> None:
    interrupted(Path("runs/my"), 3)
    Path("my.txt").unlink()
    with pytest.raises(UserError, match=r"no such file: my\.txt"):
        resume(Path("runs/my"))


def test_a_run_without_a_checkpoint_is_not_resumed(workplace: Path) -> None:
    folder = train_tiny()
    shutil.rmtree(folder / "checkpoint")
    with pytest.raises(UserError, match="runs/my has no checkpoint to resume from"):
        resume(folder)


# What is refused


def test_a_folder_that_holds_a_run_is_left_alone(workplace: Path) -> None:
    folder = train_tiny()
    before = contents(folder)
    with pytest.raises(UserError, match=r"runs/my already holds a run; .*--resume"):
        train_tiny(out=folder)
    assert contents(folder) == before


def test_a_file_cannot_be_the_folder_of_a_run(workplace: Path) -> None:
    with pytest.raises(UserError, match=r"my\.txt"):
        train_tiny(out="my.txt")
    assert Path("my.txt").read_text() == some_text()


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"colour": 1, "size": 2}, "there is no setting colour, size"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"learning_rate": math.nan}, "learning_rate must be above 0 and below 1e6, got nan"),
        ({"num_heads": 3}, r"emb_dim must be a multiple of num_heads \(3\), got 16"),
        ({"device": "abacus"}, "no device 'abacus'"),
        ({"precision": "bf16"}, "precision must be .* got '?bf16"),
        ({"compile": "yes"}, "compile must be .* got '?yes"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_are_refused_before_anything_is_written(
    workplace: Path, setting: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        train_tiny(**setting)
    assert not Path("runs").exists()


# The best weights


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


def test_weights_that_are_not_finite_are_refused_before_the_first_step(workplace: Path) -> None:
    Path("run").mkdir()
    dataset = batch(done=0.0)[0]
    model = GPT(minigpt.GPTConfig(300, context_length=8, emb_dim=8, num_layers=1, num_heads=1))
    model.final_norm.weight.data.fill_(math.nan)
    trainer = Trainer(
        model,
        dataset,
        TrainConfig(steps=1, batch_size=2, compile="off"),
        Path("run"),
        precision=torch.float32,
        report=Report(Path("run"), tokens_per_step=16, started=0.0),
        deadline=0.0,
        sample=lambda model: "",
    )
    with pytest.raises(UserError, match="cannot train from these weights"):
        trainer.train()


# A loss that is no number


def broken(model: GPT, from_step: int) -> Callable[[Tensor, Tensor], Tensor]:
    """The loss of the model, NaN from a step on."""
    calls = iter(range(10**6))
    return lambda inputs, targets: (
        model(inputs, targets)[1] * (math.nan if next(calls) >= from_step else 1.0)
    )


def test_a_loss_that_becomes_nan_ends_the_training_and_keeps_the_best(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minigpt.training.trainer.Loss", lambda model: broken(model, 5))
    with pytest.raises(UserError, match=r"became nan at step 4, .*runs/my.* --learning-rate"):
        train_tiny()
    assert [row["step"] for row in rows(Path("runs/my"))] == [4]
    assert all(
        weights.isfinite().all() for weights in load_file(Path("runs/my") / WEIGHTS).values()
    )


@pytest.mark.parametrize("step", [0, 3])
def test_weights_that_become_nan_in_the_step_before_an_evaluation_are_not_kept(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """The loss of that step was still a number; that of the evaluation is none."""
    rates = iter([1e-3] * step + [math.inf] * 100)
    monkeypatch.setattr("minigpt.training.trainer.learning_rate", lambda *_: next(rates))
    with pytest.raises(UserError, match="--learning-rate"):
        train_tiny(num_evals=8)
    assert all(
        weights.isfinite().all() for weights in load_file(Path("runs/my") / WEIGHTS).values()
    )
    for line in (Path("runs/my") / METRICS).read_text().splitlines() if step else []:
        json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


# Training by time, with a clock that goes on only when it is read


def train_by_time(deadline: float, tick: float, minutes: float = 5.0) -> tuple[Path, TrainingState]:
    """A training that begins at second 0, and its end; reading the clock takes a tick."""
    dataset = batch(done=0.0)[0]
    config = TrainConfig(minutes=minutes, num_evals=5, batch_size=2, compile="off")
    shape = {"context_length": 8, "emb_dim": 8, "num_layers": 1, "num_heads": 1}
    folder = Path("run")
    folder.mkdir()
    ticks = iter(range(1000))  # or it does not end
    trainer = Trainer(
        GPT(minigpt.GPTConfig(dataset.tokenizer.vocab_size, **shape)),
        dataset,
        config,
        folder,
        precision=torch.float32,
        report=Report(folder, tokens_per_step=16, started=0.0),
        deadline=deadline,
        sample=lambda model: "",
        clock=lambda: tick * next(ticks),
    )
    return folder, trainer.train()


def test_a_training_by_time_ends_in_time_with_its_evaluations_spread_over_it(
    workplace: Path,
) -> None:
    folder, state = train_by_time(100.0, tick=1.0)
    steps = [row["step"] for row in rows(folder)]
    assert len(steps) == state.evaluations == 5
    assert 60 < state.step == steps[-1] and state.seconds <= 100
    gaps = [b - a for a, b in pairwise([0, *steps])]
    assert max(gaps) - min(gaps) <= 5


@pytest.mark.parametrize(("minutes", "seconds"), [(5.0, 5.0), (0.5, 3.0)])
def test_a_training_that_starts_too_late_still_learns_a_little(
    workplace: Path, minutes: float, seconds: float
) -> None:
    """Reading the text may have taken all the time, on a busy machine say."""
    folder, state = train_by_time(-60.0, 0.1, minutes)
    assert state.step >= 10 and seconds <= state.seconds <= seconds + 1.0
    assert rows(folder)[-1]["step"] == state.step
    assert state.best_loss is not None and load_file(folder / WEIGHTS)


def test_some_text_can_be_trained_on_with_every_tokenizer_of_ours(workplace: Path) -> None:
    Path("accents.txt").write_text(some_text() + "é€🦊" * 40, encoding="utf-8")
    for tokenizer in ("bpe", "char"):
        folder = train_tiny("accents.txt", tokenizer=tokenizer, architecture="gpt2", steps=2)
        assert load_run(folder).config.text.tokenizer == tokenizer
