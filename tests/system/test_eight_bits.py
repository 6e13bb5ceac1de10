"""Weights in 8 bits: how near they are to the weights, and that they are read alike everywhere."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from minigpt import GPT, UserError
from minigpt.config import GPTConfig
from minigpt.generation.torch_gpt import weights_of
from minigpt.runs.weights import load_weights
from minigpt.system.eight_bits import SCALE, restored, rounded
from minigpt.system.safetensors_files import Array, read_weights

RANDOM = np.random.default_rng(0)
MATRIX = (RANDOM.standard_normal((50, 40)) * np.logspace(-2, 3, 50)[:, None]).astype(np.float32)
VECTOR = RANDOM.standard_normal(40).astype(np.float32)


def as_stored(**weights: Array) -> dict[str, Array]:
    return restored(rounded(weights))


def test_each_number_is_as_near_as_the_256th_part_of_the_largest_of_its_row() -> None:
    found = as_stored(matrix=MATRIX)["matrix"]
    assert found.dtype == np.float32
    largest = np.abs(MATRIX).max(axis=1, keepdims=True)
    assert (np.abs(found - MATRIX) <= largest / 250).all()


def test_a_matrix_has_8_bits_with_a_scale_for_each_row_and_a_vector_16_bits() -> None:
    stored = rounded({"matrix": MATRIX, "vector": VECTOR})
    types = {name: (str(array.dtype), array.shape) for name, array in stored.items()}
    assert types == {
        "matrix": ("int8", (50, 40)),
        f"matrix{SCALE}": ("float16", (50,)),
        "vector": ("float16", (40,)),
    }
    assert np.abs(stored["matrix"].astype(int)).max(axis=1).tolist() == [127] * 50
    np.testing.assert_array_equal(restored(stored)["vector"], VECTOR.astype(np.float16))


def test_to_round_again_changes_nothing() -> None:
    once = as_stored(matrix=MATRIX, vector=VECTOR)
    twice = as_stored(**once)
    for name, array in once.items():
        np.testing.assert_array_equal(twice[name], array)


def test_a_row_of_zeros_stays_so_and_what_is_too_large_becomes_infinite() -> None:
    matrix = MATRIX.copy()
    matrix[3] = 0
    assert (as_stored(matrix=matrix)["matrix"][3] == 0).all()

    matrix[4, 5] = 1e8
    stored = rounded({"matrix": matrix, "vector": VECTOR * 1e6})
    assert np.isinf(stored[f"matrix{SCALE}"]).tolist() == [row == 4 for row in range(50)]
    assert np.isinf(stored["vector"]).any()


def test_numpy_and_torch_read_the_same_numbers_from_a_file(tmp_path: Path) -> None:
    config = GPTConfig(7, context_length=4, emb_dim=16, num_layers=1, num_heads=2)
    weights = weights_of(GPT(config))
    file = tmp_path / "model.safetensors"
    save_file(rounded(weights), file)

    expected = restored(rounded(weights))
    read = read_weights(file)
    network = GPT(config)
    load_weights(network, file)
    assert read.keys() == weights.keys()
    for name, array in weights_of(network).items():
        assert read[name].dtype == np.float32
        np.testing.assert_array_equal(read[name], expected[name])
        np.testing.assert_array_equal(array, expected[name])


@pytest.mark.parametrize(
    ("numbers", "scales", "problem"),
    [
        ((4, 3), None, "weights of type I8 without scales"),
        ((4, 3), (3,), r"weight has \(4, 3\) numbers and \(3,\) scales"),
        ((4, 3), (1,), r"weight has \(4, 3\) numbers and \(1,\) scales"),
        ((4, 3), (4, 1), r"weight has \(4, 3\) numbers and \(4, 1\) scales"),
        ((4,), (4,), r"weight has \(4,\) numbers and \(4,\) scales"),
    ],
)
def test_a_matrix_whose_scales_are_not_one_for_each_row_is_refused(
    tmp_path: Path, numbers: tuple[int, ...], scales: tuple[int, ...] | None, problem: str
) -> None:
    tensors = {"weight": np.ones(numbers, np.int8), "bias": np.ones(4, np.float32)}
    if scales is not None:
        tensors |= {f"weight{SCALE}": np.ones(scales, np.float16)}
    file = tmp_path / "model.safetensors"
    save_file(tensors, file)

    with pytest.raises(UserError, match=f"is damaged: {problem}"):
        read_weights(file)
    with pytest.raises(UserError, match=f"is damaged: {problem}"):
        load_weights(torch.nn.Linear(3, 4), file)


def test_whole_numbers_of_a_network_of_ones_own_stay_what_they_are(tmp_path: Path) -> None:
    class Counted(torch.nn.Linear):
        def __init__(self, count: int):
            super().__init__(3, 4)
            self.register_buffer("read", torch.tensor([count], dtype=torch.int8))

    file = tmp_path / "model.safetensors"
    save_file({name: value.numpy() for name, value in Counted(5).state_dict().items()}, file)
    network = Counted(0)
    load_weights(network, file)
    assert dict(network.named_buffers())["read"].tolist() == [5]
