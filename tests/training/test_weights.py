"""Weights are values: copied, mixed, and put in the place of a network's own for a while."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from minigpt.config import GPTConfig
from minigpt.model import GPT
from minigpt.training.checkpoint import TrainingState
from minigpt.training.folder import RunFolder
from minigpt.training.weights import WeightAverage, Weights


def small_gpt(**changes: Any) -> GPT:
    shape: dict[str, Any] = {"context_length": 4, "emb_dim": 8, "num_layers": 1, "num_heads": 2}
    return GPT(GPTConfig(7, **(shape | changes)))


def held(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def assert_same(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())


@pytest.mark.parametrize("is_tied", [True, False])
def test_in_place_a_network_has_other_weights_and_afterwards_its_own(is_tied: bool) -> None:
    """Also where an error ends it, and the weights are those that they were, too."""
    model = small_gpt(tie_embeddings=is_tied)
    own = held(model)
    others = Weights.trained(small_gpt(tie_embeddings=is_tied)).copy()
    before = others.copy()
    with pytest.raises(ZeroDivisionError), others.in_place(model):
        for name, parameter in model.named_parameters():
            assert torch.equal(parameter, before.tensors[name])
        raise ZeroDivisionError
    assert_same(held(model), own)
    assert_same(others.tensors, before.tensors)


def test_the_weights_of_a_network_change_with_it_and_a_copy_does_not() -> None:
    model = small_gpt()
    weights = Weights.trained(model)
    copy = weights.copy()
    before = held(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    assert_same(weights.tensors, dict(model.named_parameters()))
    copy.put_into(model)
    assert_same(held(model), before)


def test_frozen_parameters_are_not_among_those_that_are_trained() -> None:
    model = small_gpt(tie_embeddings=False)
    model.head.weight.requires_grad_(False)
    names = {name for name, _ in model.named_parameters()} - {"head.weight"}
    assert Weights.trained(model).tensors.keys() == WeightAverage(model).tensors.keys() == names


class Counting(nn.Module):
    """A network with a buffer that is saved."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(3, 3)
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))


def test_without_a_folder_the_best_weights_stay_in_memory_and_nothing_is_written() -> None:
    model, folder, state = Counting(), RunFolder(), TrainingState(step=4)
    best = held(model)
    folder.keep_best(model, state, loss=2.0, bits_per_byte=1.0)
    assert (state.best_loss, state.best_bits_per_byte, state.best_step) == (2.0, 1.0, 4)

    with torch.no_grad():
        for tensor in model.state_dict().values():
            tensor.add_(1)
    later = held(model)
    folder.write_best_again(model, state)
    folder.check_end(model, state)
    assert not folder.write("a file", lambda path: 1 // 0)
    assert not folder.is_checkpoint_due(state) and not folder.is_gone()
    assert_same(held(model), later)

    folder.load_best(model)
    assert_same(held(model), best)
