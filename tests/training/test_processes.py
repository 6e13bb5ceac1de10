"""What several processes share out among them, tried without starting any."""

from itertools import chain
from pathlib import Path

import pytest
import torch

from minigpt import UserError
from minigpt.config import GPTConfig, TextConfig, TrainConfig
from minigpt.data.corpus import find_source
from minigpt.data.token_cache import prepare
from minigpt.model import GPT
from minigpt.training.processes import Processes, only_the_first_speaks
from minigpt.training.trainer import Trainee


@pytest.mark.parametrize("micro_batch_size", [None, 1, 3])
def test_any_number_of_processes_trains_on_the_same_batches(
    micro_batch_size: int | None, workplace: Path
) -> None:
    text = TextConfig(files=("my.txt",), tokenizer="char")
    dataset = prepare(find_source(text), text)
    model = GPT(GPTConfig(dataset.tokenizer.vocab_size, emb_dim=16, context_length=16))
    config = TrainConfig(batch_size=8, micro_batch_size=micro_batch_size)

    def batch(size: int, step: int) -> torch.Tensor:
        """Inputs and targets of all processes, one below the other."""
        all_processes = [Processes(rank, size) for rank in range(size)]
        trainees = [
            Trainee(model, dataset, config, workplace, torch.float32, p) for p in all_processes
        ]
        parts = chain.from_iterable(trainee.batches(step) for trainee in trainees)
        return torch.cat([torch.stack(pair, dim=1) for pair in parts])  # (b, 2, T)

    for step in (0, 5):
        assert len(batch(1, step)) == 8
        for size in (2, 4, 8):
            assert torch.equal(batch(size, step), batch(1, step))


def test_a_batch_that_cannot_be_shared_out_is_refused_with_one_that_can() -> None:
    Processes(size=4).check_batch(8)
    with pytest.raises(UserError, match=r"4 processes, got 10; use --batch-size 8 or 12$"):
        Processes(size=4).check_batch(10)
    with pytest.raises(UserError, match=r"use --batch-size 4$"):
        Processes(size=4).check_batch(3)


@pytest.mark.parametrize(("count", "size"), [(1, 4), (7, 2), (8, 2), (9, 4)])
def test_in_turns_everything_is_done_once_and_by_all_equally_often(count: int, size: int) -> None:
    turns = [list(Processes(rank, size).turns(range(count))) for rank in range(size)]
    assert len({len(mine) for mine in turns}) == 1
    assert sorted(i for mine in turns for i, counts in mine if counts) == list(range(count))
    assert all(0 <= i < count for mine in turns for i, _ in mine)


def test_dropout_differs_between_processes_and_steps_and_comes_again_after_a_resume() -> None:
    seeds = {Processes(rank, 4).seed(0, step) for rank in range(4) for step in range(100)}
    assert len(seeds) == 400
    assert Processes(1, 4).seed(0, 7) == Processes(1, 4).seed(0, 7) != Processes(1, 4).seed(1, 7)


def test_only_the_first_process_is_heard(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOCAL_RANK", "0")  # as torchrun sets it
    for rank in range(3):
        monkeypatch.setenv("RANK", str(rank))
        with only_the_first_speaks():
            print("process", rank)
    assert capfd.readouterr().out == "process 0\n"
