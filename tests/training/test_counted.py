"""`--only`: the loss counts what one speaker says, and nothing else."""

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import minigpt
from minigpt import GPT, GPTConfig, UserError
from minigpt.cli import main
from minigpt.config import TextConfig, TrainConfig
from minigpt.data.batches import IGNORED, Dataset, make_batches
from minigpt.data.dialogue import Dialogue, said_by
from minigpt.data.readers.document import Layout
from minigpt.data.source import find_source
from minigpt.data.token_cache import prepare_tokens
from minigpt.runs.folder import read_metrics
from minigpt.runs.weights import read_best
from minigpt.tokenizer import CharacterTokenizer, Tokenizer, make_tokenizer
from minigpt.training import distributed
from minigpt.training.checkpoint import Learner, TrainingState
from minigpt.training.evaluation import (
    Totals,
    Validation,
    best_candidate,
    evaluate_windows,
    predictions,
)
from minigpt.training.gradients import BatchResult, set_gradients
from minigpt.training.loss import Loss, token_cross_entropy
from minigpt.training.pace import Pace

from ..conftest import TINY, tiny_settings
from ..data.chats.made import some_chat
from ..patience import PATIENCE

TALK = "Anna: hi Otto: no\n\nOtto: yes\nyes\n\nAnna: Otto\n\nOtto: I see\n\n"
DIALOGUE = Dialogue({"Otto": 2, "Anna": 2})
TOKENIZERS = [
    CharacterTokenizer(sorted(set(TALK))),
    make_tokenizer("bpe", 290, [TALK], has_turns=True),
    make_tokenizer("bpe", 290, [TALK]),
]


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_what_a_speaker_says_is_found_in_any_tokens(tokenizer: Tokenizer) -> None:
    ids = np.array(tokenizer.encode(TALK))
    counted = said_by(ids, tokenizer, DIALOGUE, "Otto")
    said = tokenizer.decode(ids[counted].tolist())
    assert said == " yes\nyes\n\n I see\n\n"


def test_a_turn_that_only_the_next_name_ends_is_found_whole() -> None:
    layout = Layout("{speaker}:\n{text}\n\n", ends_at_name=True)
    text = "Anna:\nhi\n\nOtto:\nyes\n\nyes\n\nAnna:\nOtto\n\nOtto:\nI see"
    tokenizer = CharacterTokenizer(sorted(set(text)))
    ids = np.array(tokenizer.encode(text))
    counted = said_by(ids, tokenizer, Dialogue({"Otto": 2, "Anna": 2}, layout), "Otto")
    assert tokenizer.decode(ids[counted].tolist()) == "yes\n\nyes\n\nI see"


@pytest.mark.parametrize("ends_at_name", [False, True])
def test_a_turn_ends_where_its_document_does_and_may_begin_where_the_next_one_does(
    ends_at_name: bool,
) -> None:
    """As in plays, whose last turn has no empty line after it."""
    documents = ["Anna: hi\n\nOtto: I see", "A title\n\nAnna: no\n\nOtto: yes", "Otto: hi", "no"]
    dialogue = Dialogue({"Otto": 2, "Anna": 2}, Layout(ends_at_name=ends_at_name))
    everything = "".join(documents)
    for tokenizer in (CharacterTokenizer(everything), make_tokenizer("bpe", 290, [everything])):
        assert tokenizer.end_of_text is not None
        ids: list[int] = []
        for document in documents:
            ids += [*tokenizer.encode(document), tokenizer.end_of_text]
        counted = said_by(np.array(ids), tokenizer, dialogue, "Otto")
        assert tokenizer.decode(np.array(ids)[counted].tolist()) == " I see yes hi"


# Somebody who says little


LINES = "the wolf came down to the brook", "and the lamb drank there too", "who stirs the water up?"


def play(turns: int, clara: range | tuple[int, ...]) -> str:
    """Of Anna and Otto, in which Clara says one turn in the place of some."""
    parts = []
    for number in range(turns):
        name = "CLARA" if number in clara else ("ANNA", "OTTO")[number % 2]
        parts.append(f"{name}:\n{LINES[number % 3]}, {number}\n\n")
    return "".join(parts)


def train_only_clara(text: str, **changes: Any) -> tuple[int, Path]:
    Path("play.txt").write_text(text)
    settings = tiny_settings(tokenizer="char", **changes)
    options = [p for k, v in settings.items() for p in (f"--{k.replace('_', '-')}", str(v))]
    status = main(["train", "play.txt", "--only", "clara", "--out", "run", *options])
    return status, Path("run")


@pytest.mark.parametrize("by_time", [False, True])
def test_a_role_that_comes_late_in_the_text_to_validate_on_is_learned(
    by_time: bool, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is from turn 180 on."""
    text = play(200, (40, 41, 100, 198))
    changes = {"minutes": 0.01, "steps": None} if by_time else {}
    changes = {key: value for key, value in changes.items() if value is not None}
    if by_time:
        monkeypatch.delitem(TINY, "steps")
    status, run = train_only_clara(text, **changes)
    assert status == 0
    rows = read_metrics(run / "metrics.jsonl")
    assert all(row["val_loss"] > 1.0 for row in rows)  # of a model that knows next to nothing
    assert all(row["train_loss"] > 1.0 for row in rows)


def test_an_evaluation_on_some_windows_is_on_some_that_count(workplace: Path) -> None:
    status, run = train_only_clara(play(200, (40, 41, 100, 191)), eval_tokens=64, num_evals=4)
    assert status == 0
    rows = read_metrics(run / "metrics.jsonl")
    assert all(row["val_loss"] > 1.0 for row in rows)
    best = read_best(run / "model.safetensors")
    assert best is not None and best["step"] == 8  # the last ones


def test_a_role_that_says_nothing_where_it_would_be_validated_is_refused(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, run = train_only_clara(play(200, (40, 41, 100)))
    assert status == 2 and "CLARA says too little" in capsys.readouterr().err
    assert not run.exists()


class Clock(GPT):
    """Takes a second for each token that it reads."""

    seconds = 0.0

    def forward(self, token_ids: Tensor, **caches: Any) -> Tensor:
        Clock.seconds += token_ids.numel()
        return super().forward(token_ids, **caches)


def test_the_time_of_an_evaluation_is_reckoned_by_the_tokens_that_it_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("time.perf_counter", lambda: Clock.seconds)
    tokens = np.arange(2000, dtype=np.uint16)
    counted = (tokens >= 900) & (tokens < 1000)  # 5%
    tokenizer = CharacterTokenizer(map(chr, range(0x4E00, 0x4E00 + 2000)))
    dataset = Dataset(tokenizer, tokens, tokens, counted_train=counted, counted_validation=counted)
    size = tokenizer.vocab_size
    model = Clock(GPTConfig(size, emb_dim=4, num_layers=1, num_heads=1, context_length=16))
    config = TrainConfig(steps=1, batch_size=2, eval_tokens=2000, precision="float32")
    lengths = torch.tensor(tokenizer.byte_lengths())
    batches = make_batches(dataset, config, context_length=16)
    validation = Validation(model, batches, config, context_length=16, byte_lengths=lengths)
    pace = Pace(config, deadline=0.0, steps_in_epoch=100, tokens_per_step=32)
    validation.plan(TrainingState(), config, pace)
    learner = Learner.of(model, [], config)
    for most in (40, 2000):
        before = Clock.seconds
        best_candidate(learner, validation, TrainingState(eval_tokens=most, finished=True))
        assert validation.seconds_at_end(learner, most) == Clock.seconds - before


def test_an_evaluation_of_nothing_is_never_the_best(workplace: Path) -> None:
    dataset = minigpt.prepare("my.txt", tokenizer="char")
    size = dataset.tokenizer.vocab_size
    model = GPT(GPTConfig(size, emb_dim=8, num_layers=1, num_heads=2, context_length=16))
    lengths = torch.tensor(dataset.tokenizer.byte_lengths())
    result = evaluate_windows(model, [], lengths, context_length=16)
    assert math.isnan(result.loss) and math.isnan(result.bits_per_byte) and result.tokens == 0

    config = TrainConfig(steps=2, batch_size=2, device="cpu")
    dataset = replace(dataset, counted_validation=np.zeros(len(dataset.validation), np.bool_))
    with pytest.raises(UserError, match="no token of the text to validate on counts"):
        minigpt.Trainer(model, dataset, config).train()


# A loss of one's own


def test_a_loss_of_ones_own_counts_as_one_of_ours_does_in_any_parts(folder: Path) -> None:
    """Also in parts of one row, some of which have no target that counts."""
    inputs = torch.arange(24).view(4, 6) % 11
    targets = (inputs + 1) % 11
    targets[0, :5] = IGNORED
    targets[1] = IGNORED

    def own(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
        return nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())

    found = []
    for function in (None, own):
        for rows in (1, 4):
            torch.manual_seed(0)
            model = GPT(GPTConfig(11, emb_dim=8, num_layers=1, num_heads=2, context_length=16))
            parts = list(zip(inputs.split(rows), targets.split(rows), strict=True))
            figures = set_gradients(
                Loss(model, function),
                list(model.parameters()),
                parts,
                torch.ones(11, dtype=torch.int64),
                grad_clip=1e9,
                precision=torch.float32,
            )
            result = BatchResult.of(figures)
            found.append((result.minimised, result.loss, result.gradient_norm))
    for other in found[1:]:
        assert other == pytest.approx(found[0], rel=1e-5)


@pytest.mark.parametrize("counted", [1, 49, 3, 100])
def test_for_one_process_the_loss_is_the_models_to_the_last_bit(counted: int) -> None:
    torch.manual_seed(0)
    model = GPT(GPTConfig(11, emb_dim=8, num_layers=1, num_heads=2, context_length=100))
    inputs, targets = torch.randint(11, (2, 1, 100))
    targets[:, counted:] = IGNORED
    figures = set_gradients(
        Loss(model),
        list(model.parameters()),
        [(inputs, targets)],
        torch.ones(11, dtype=torch.int64),
        grad_clip=1e9,
        precision=torch.float32,
    )
    result = BatchResult.of(figures)
    assert result.minimised == result.loss == model.loss(inputs, targets).item()


# Several processes


class TwoProcesses:
    """Two threads in the place of two processes: what is added up waits for both."""

    def __init__(self) -> None:
        self._both = threading.Barrier(2)
        self._given: list[Tensor] = []

    def add_up(self, numbers: Tensor) -> None:
        self._given.append(numbers.clone())
        self._both.wait(PATIENCE)
        numbers.copy_(torch.stack(self._given).sum(0))


@pytest.mark.parametrize("scale", [1.0, 2.0**10])
@pytest.mark.parametrize("ignored", [0, 9, 12], ids=["all count", "some count", "half count"])
def test_each_target_that_counts_weighs_the_same_whichever_process_has_it(
    ignored: int, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the first process's targets only some count or none does, of the second's all. The second
    computes in parts."""
    inputs = torch.arange(24).view(4, 6) % 11
    targets = (inputs + 1) % 11
    targets.view(-1)[:ignored] = IGNORED

    def gpt() -> GPT:
        torch.manual_seed(0)
        return GPT(GPTConfig(11, emb_dim=8, num_layers=1, num_heads=2, context_length=16))

    def result(model: GPT, rows: int, of: slice) -> tuple[BatchResult, Tensor]:
        found = set_gradients(
            Loss(model),
            list(model.parameters()),
            list(zip(inputs[of].split(rows), targets[of].split(rows), strict=True)),
            torch.arange(1, 12),
            grad_clip=1e9,
            precision=torch.float32,
            scale=scale,
        )
        assert model.head.weight.grad is not None
        return BatchResult.of(found), model.head.weight.grad

    alone, expected = result(gpt(), 4, slice(0, 4))
    monkeypatch.setattr(distributed, "world_size", lambda: 2)
    monkeypatch.setattr(distributed, "add_up", TwoProcesses().add_up)
    with ThreadPoolExecutor(2) as processes:
        one, other = processes.map(result, (gpt(), gpt()), (2, 1), (slice(0, 2), slice(2, 4)))
    torch.testing.assert_close((one[1] + other[1]) / 2, expected)  # as DDP averages them
    for found, _ in (one, other):
        assert found.minimised == pytest.approx(alone.minimised, rel=1e-5)
        assert found.loss == pytest.approx(alone.loss, rel=1e-5)
        assert found.bits_per_byte == pytest.approx(alone.bits_per_byte)


@pytest.mark.parametrize("only", [None, "otto"])
def test_an_evaluation_that_processes_share_is_that_of_one(
    only: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = chat(folder, only)
    batches = make_batches(dataset, TrainConfig(), context_length=32)
    torch.manual_seed(0)
    model = GPT(GPTConfig(320, emb_dim=16, num_layers=1, num_heads=2, context_length=32))
    byte_lengths = torch.tensor(dataset.tokenizer.byte_lengths())

    def totals() -> list[Totals]:
        groups = predictions(model, batches.validation(10_000), at_once=2)
        return [group.totals(byte_lengths) for group in groups]

    alone = totals()
    monkeypatch.setattr(distributed, "world_size", lambda: 3)
    shares = []
    for rank in range(3):
        monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
        shares += totals()
    assert len(alone) > 3 and sorted(shares) == sorted(alone)


def test_somebody_who_says_nothing_is_refused() -> None:
    ids = np.array(TOKENIZERS[0].encode("Anna: hi\n\n"))
    with pytest.raises(UserError, match="Otto says too little"):
        said_by(ids, TOKENIZERS[0], DIALOGUE, "Otto")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("only")
    (folder / "chat.txt").write_text(some_chat(200))
    return folder


def chat(folder: Path, only: str | None) -> Dataset:
    text = TextConfig(files=(str(folder / "chat.txt"),), vocab_size=320, only=only)
    return prepare_tokens(find_source(text), text, cache=folder)


def test_the_loss_and_its_gradients_are_those_of_one_speaker(folder: Path) -> None:
    config = TrainConfig(batch_size=4, seed=0)
    dataset = chat(folder, "otto")
    inputs, targets = make_batches(dataset, config, 32).batch(step=0, done=0.0)
    plain = make_batches(chat(folder, None), config, 32)
    plain_inputs, plain_targets = plain.batch(step=0, done=0.0)
    is_counted = targets != IGNORED
    assert torch.equal(inputs, plain_inputs)
    assert torch.equal(targets[is_counted], plain_targets[is_counted])
    assert 0.2 < is_counted.float().mean() < 0.6

    torch.manual_seed(0)
    model = GPT(GPTConfig(vocab_size=320, emb_dim=16, num_layers=1, num_heads=2, context_length=32))
    losses, _ = token_cross_entropy(model, plain_inputs, plain_targets)  # (b, T)
    byte_lengths = torch.tensor(dataset.tokenizer.byte_lengths())
    parts = [(inputs[:1], targets[:1]), (inputs[1:], targets[1:])]
    figures = set_gradients(
        Loss(model),
        list(model.parameters()),
        parts,
        byte_lengths,
        grad_clip=1e9,
        precision=torch.float32,
    )
    result = BatchResult.of(figures)
    assert result.loss == pytest.approx(losses[is_counted].mean().item(), rel=1e-5)
    bytes_per_token = byte_lengths[targets[is_counted]].sum().item() / is_counted.sum().item()
    bits = result.loss / math.log(2)
    assert result.bits_per_byte == pytest.approx(bits / bytes_per_token)

    found = model.head.weight.grad
    model.zero_grad()
    logits = model(plain_inputs)[is_counted]  # (n, vocab_size)
    torch.nn.functional.cross_entropy(logits, targets[is_counted]).backward()
    assert found is not None and model.head.weight.grad is not None
    assert torch.allclose(found, model.head.weight.grad, atol=1e-6)


def test_an_evaluation_is_of_the_same_tokens(folder: Path) -> None:
    dataset = chat(folder, "Anna")
    batches = make_batches(dataset, TrainConfig(), context_length=32)
    model = GPT(GPTConfig(vocab_size=320, emb_dim=16, num_layers=1, num_heads=2, context_length=32))
    byte_lengths = torch.tensor(dataset.tokenizer.byte_lengths())
    windows = batches.validation(10_000)
    result = evaluate_windows(model, windows, byte_lengths, context_length=32)
    assert dataset.origin.dialogue is not None
    counted = said_by(dataset.validation, dataset.tokenizer, dataset.origin.dialogue, "Anna")
    assert result.tokens == counted[1:].sum()
