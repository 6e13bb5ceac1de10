"""Workers: a step shared out has the same gradients, whoever is slow, and each has its dropout."""

import random
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from minigpt.attention.fused import Dropout, randomness
from minigpt.config import GPTConfig, TrainConfig
from minigpt.model import GPT
from minigpt.runs.folder import CHECKPOINT, METRICS, read_config, read_metrics
from minigpt.training import workers
from minigpt.training.checkpoint import LAST
from minigpt.training.optimizer import make_optimizers
from minigpt.training.workers import why_not_shared
from tests.conftest import train_tiny
from tests.patience import PATIENCE
from tests.training.runs import interrupted, resume

pytestmark = pytest.mark.long

SHAPE = GPTConfig(50, context_length=8, emb_dim=16, num_layers=2, num_heads=2)


def gpt(**changes: Any) -> GPT:
    torch.manual_seed(0)
    return GPT(replace(SHAPE, **changes)).train()


def gradients(model: GPT, count: int, parts: list[Tensor]) -> tuple[list[Tensor], Tensor]:
    """Of the mean loss over the parts, each of the same size; and that loss."""

    def loss_of(ids: Tensor) -> tuple[Tensor]:
        time.sleep(random.random() / 500)  # a share is computed now by this worker, now by that
        return (model.loss(ids, ids) / len(parts),)

    parameters = list(model.parameters())
    with workers.team(count):
        torch.manual_seed(3)
        (loss,) = workers.backward(loss_of, parameters, parts)
    return [p.grad.clone() for p in parameters if p.grad is not None], loss


# Who computes what


@pytest.mark.parametrize("count", [1, 2, 5])
def test_results_come_in_the_order_of_the_items(count: int) -> None:
    def square(n: int) -> int:
        time.sleep(random.random() / 200)
        return n * n

    with workers.team(count):
        for size in (0, 1, 3, 40):
            assert workers.compute(square, range(size)) == [n * n for n in range(size)]


def test_each_worker_has_one_thread_of_torch_and_the_caller_gets_its_own_back() -> None:
    before, together = torch.get_num_threads(), threading.Barrier(3)

    def threads(_: int) -> int:
        together.wait(PATIENCE)  # all three are at work at once
        return torch.get_num_threads()

    with workers.team(3):
        assert workers.compute(threads, range(3)) == [1, 1, 1]
    assert torch.get_num_threads() == before


def test_an_error_of_any_worker_reaches_the_caller() -> None:
    def invert(n: int) -> float:
        return 1 / n

    for zero in range(3):
        with pytest.raises(ZeroDivisionError), workers.team(2):
            workers.compute(invert, [int(n != zero) for n in range(3)])


# A step


@pytest.mark.parametrize(("count", "size"), [(1, 6), (2, 3), (2, 1), (3, 1), (8, 2)])
def test_shared_gradients_are_those_of_the_whole_batch(count: int, size: int) -> None:
    ids = torch.randint(50, (6, 8))
    found, loss = gradients(gpt(), count, list(ids.split(size)))
    model = gpt()
    expected = model.loss(ids, ids)
    torch.testing.assert_close(loss, expected.detach())
    for own, theirs in zip(found, torch.autograd.grad(expected, model.parameters()), strict=True):
        torch.testing.assert_close(own, theirs, rtol=1e-4, atol=1e-6)


def test_gradients_depend_on_how_many_workers_there_are_and_on_nothing_else() -> None:
    """To the last bit, with dropout, whichever worker computes a share."""
    parts = list(torch.randint(50, (9, 8)).split(1))
    first = gradients(gpt(dropout=0.3), 3, parts)[0]
    for _ in range(4):
        torch.rand(7)  # random numbers that others draw
        again = gradients(gpt(dropout=0.3), 3, parts)[0]
        assert all(map(torch.equal, first, again))
    assert not all(map(torch.equal, first, gradients(gpt(dropout=0.3), 2, parts)[0]))


def test_a_share_draws_dropout_of_its_own() -> None:
    weight, draws = torch.ones(1, requires_grad=True), dict[int, Tensor]()

    def loss_of(part: int) -> tuple[Tensor]:
        draws[part] = Dropout(0.5)(torch.ones(100))
        return (weight.sum(),)

    with workers.team(2):
        workers.backward(loss_of, [weight], [0, 1])
        assert not torch.equal(draws[0], draws[1])


def test_an_error_in_a_share_leaves_no_random_numbers_of_a_share_behind() -> None:
    weight = torch.ones(1, requires_grad=True)

    def loss_of(part: int) -> tuple[Tensor]:
        raise KeyboardInterrupt if part == 1 else ValueError

    with workers.team(1), pytest.raises(ValueError):
        workers.backward(loss_of, [weight], [0])
    with workers.team(2), pytest.raises((ValueError, KeyboardInterrupt)):
        workers.backward(loss_of, [weight], [0, 1])
    assert getattr(randomness, "generator", None) is None


def test_nobody_is_at_work_any_more_when_the_caller_hears_of_an_error() -> None:
    """Ctrl-C too: it comes while the leader computes its own item or waits for the others."""
    own, ended, is_pressed = threading.get_ident(), list[int](), threading.Event()

    def work(n: int) -> None:
        if threading.get_ident() == own:
            is_pressed.set()
            raise KeyboardInterrupt
        assert is_pressed.wait(PATIENCE)
        time.sleep(0.05)  # as long as an item takes
        ended.append(n)

    with workers.team(3):
        with pytest.raises(KeyboardInterrupt):
            workers.compute(work, range(40))
        so_far = len(ended)
        workers.compute(abs, range(40))  # each worker is there for the next ones
        assert len(ended) == so_far < 39


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_parameter_that_is_unused_or_not_trained_has_no_gradient(count: int) -> None:
    """One is used in a single part, as an expert is; the others' gradients are as usual."""
    kinds = ("used", "expert", "unused", "frozen")
    weights = {name: torch.full((3,), 2.0, requires_grad=name != "frozen") for name in kinds}
    weights["unused"].grad = torch.ones(3)  # of an earlier step

    def losses_of(part: int) -> tuple[Tensor, Tensor]:
        loss = (weights["used"] ** 2 * weights["frozen"]).sum()
        if part == 1:
            loss = loss + weights["expert"].prod()
        return loss, torch.tensor(float(part))

    with workers.team(count):
        totals = workers.backward(losses_of, list(weights.values()), range(4))
    assert totals.tolist() == [4 * 24 + 8, 0 + 1 + 2 + 3]
    assert torch.equal(weights["used"].grad, torch.full((3,), 4 * 8.0))
    assert torch.equal(weights["expert"].grad, torch.full((3,), 4.0))
    assert weights["unused"].grad is None and weights["frozen"].grad is None


@pytest.mark.parametrize("count", [1, 2, 3])
def test_gradients_that_autograd_gives_as_one_tensor_are_added_each_for_itself(count: int) -> None:
    """Of a sum of parameters, and of a parameter that is summed up."""
    a, b, c = (torch.zeros(4, requires_grad=True) for _ in range(3))

    def loss_of(part: int) -> tuple[Tensor]:
        return (((a + b) * torch.arange(4.0)).sum() + c.sum(),)

    with workers.team(count):
        workers.backward(loss_of, [a, b, c], range(5))
    assert torch.equal(a.grad, 5 * torch.arange(4.0)) and torch.equal(b.grad, a.grad)
    assert torch.equal(c.grad, torch.full((4,), 5.0))
    a.grad.zero_()
    assert b.grad.any()


@pytest.mark.parametrize("count", [2, 3])
def test_muon_shared_out_gives_the_same_update(count: int) -> None:
    weights = []
    for number in (1, count):
        model, ids = gpt(), torch.arange(16).view(2, 8)
        with workers.team(number):
            optimizers = make_optimizers(model, TrainConfig())
            for _ in range(3):
                model.loss(ids, ids).backward()
                for optimizer in optimizers:
                    optimizer.step()
                    optimizer.zero_grad()
        weights.append(list(model.parameters()))
    for own, theirs in zip(*weights, strict=True):
        torch.testing.assert_close(own, theirs, rtol=1e-4, atol=1e-5)


# A run


def test_what_already_uses_all_cores_is_not_shared() -> None:
    cpu = torch.device("cpu")
    assert why_not_shared(cpu, "off", 0.0) is None
    assert why_not_shared(torch.device("cuda"), "off", 0.0) is not None
    assert why_not_shared(cpu, "on", 0.0) is not None
    assert why_not_shared(cpu, "off", 0.1) is not None


@pytest.mark.parametrize("micro", [None, 2])
def test_a_run_with_workers_is_the_same_again_and_when_it_was_interrupted(
    workplace: Path, micro: int | None
) -> None:
    settings = {"num_workers": 2, "micro_batch_size": micro, "dropout": 0.2, "num_evals": 2}
    whole, same = train_tiny(**settings), train_tiny(**settings)
    interrupted("stopped", step=5, **settings)
    weights = [load_file(f / CHECKPOINT / LAST) for f in (whole, same, resume(Path("stopped")))]
    for other in weights[1:]:
        assert all(torch.equal(weights[0][name], other[name]) for name in other)
    assert read_config(whole).training.num_workers == 2


def test_no_more_workers_compute_than_sequences_are_computed_at_once() -> None:
    """Otherwise a small --micro-batch-size would save no memory."""
    config = TrainConfig(num_workers=4, batch_size=8)
    assert workers.number_for(gpt(), config) == 4
    numbers = [
        workers.number_for(gpt(), replace(config, micro_batch_size=micro)) for micro in (8, 4, 3, 1)
    ]
    assert numbers == [4, 4, 3, 1]
    assert workers.number_for(gpt(), TrainConfig(num_workers=4, batch_size=2)) == 2


def test_workers_change_a_run_only_by_rounding(workplace: Path) -> None:
    folders = [train_tiny(num_workers=count, num_evals=2) for count in (1, 2, 3)]
    first, *others = ([row["val_loss"] for row in read_metrics(f / METRICS)] for f in folders)
    assert all(losses == pytest.approx(first, rel=1e-4) for losses in others)
