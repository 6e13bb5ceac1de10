"""The weights of a page: their type, that its bytes are those, and what rounding costs."""

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from minigpt import SampleConfig, UserError
from minigpt.generation.numpy_gpt import NumpyGPT
from minigpt.generation.writer import Writer
from minigpt.page.build import build_page, page_model
from minigpt.page.weights import WeightType, page_weights
from minigpt.runs.folder import GENERATION
from minigpt.runs.read_model import FoundModel
from minigpt.tokenizer import make_tokenizer

from .conftest import SHAPE, as_in_page, random_found, weights_in
from .in_node import Worker

TOKENIZER = make_tokenizer("char", None, ["abcdefghijklmnopqrstuvwxyz ,.\n"])


def changed(found: FoundModel, change: dict[str, np.ndarray]) -> FoundModel:
    """A model with some other weights."""
    weights = {**found.glass.weights, **change}
    return replace(found, glass=NumpyGPT(found.glass.config, weights))


@pytest.fixture
def usual(tmp_path: Path) -> FoundModel:
    """A model with weights that are not rounded."""
    found = random_found(TOKENIZER, tmp_path, **SHAPE)
    random = np.random.default_rng(1)
    weights = {
        name: (array * random.uniform(0.9, 1.1, array.shape)).astype(np.float32)
        for name, array in found.glass.weights.items()
    }
    return changed(found, weights)


@pytest.fixture
def uneven(usual: FoundModel) -> FoundModel:
    """A model in whose matrices one column is far larger than the others, which then have few of
    the numbers that 8 bits have; the norm before makes up for it."""
    change = {}
    for layer in (0, 1):
        block = f"blocks.{layer}"
        norm = f"{block}.feed_forward_norm.weight"
        change[norm] = usual.glass.weights[norm].copy()
        change[norm][0] /= 300
        for name in ("W_gate", "W_in"):
            matrix = f"{block}.feed_forward.{name}.weight"
            change[matrix] = usual.glass.weights[matrix].copy()
            change[matrix][:, 0] *= 300
    return changed(usual, change)


def test_the_bytes_of_the_usual_page_are_the_model_in_8_bits(
    usual: FoundModel, tmp_path: Path
) -> None:
    stored = weights_in(build_page(usual, "test"), tmp_path)
    expected = as_in_page(usual).glass.weights
    assert stored.keys() == expected.keys()
    for name, array in stored.items():
        np.testing.assert_array_equal(array, expected[name])

    found = page_weights(usual)
    assert found.bits == 8 and 0 < found.cost <= 0.001


def test_float16_and_float32_are_what_they_are_called(usual: FoundModel, tmp_path: Path) -> None:
    weights = usual.glass.weights
    halves = weights_in(build_page(usual, "test", weights="float16"), tmp_path)
    whole = weights_in(build_page(usual, "test", weights="float32"), tmp_path)
    for name, array in weights.items():
        np.testing.assert_array_equal(halves[name], array.astype(np.float16))
        np.testing.assert_array_equal(whole[name], array)
    assert page_weights(usual, "float32").cost == 0


@pytest.mark.parametrize("kind", ["int8", "float16", "float32"])
def test_the_page_computes_with_the_numbers_that_its_bytes_are(
    usual: FoundModel, kind: WeightType, tmp_path: Path
) -> None:
    read = weights_in(build_page(usual, "test", weights=kind), tmp_path)
    glass = NumpyGPT(usual.glass.config, read)
    ids = [index % TOKENIZER.vocab_size for index in range(40)]

    worker = Worker(tmp_path)
    worker.ask("open", *page_model(usual, "test", kind))
    logits = worker.ask("allLogits", ids)
    worker.close()
    np.testing.assert_allclose(logits, glass(np.array([ids]))[0], atol=1e-4)


def test_a_model_that_8_bits_would_change_has_16_unless_8_are_asked_for(uneven: FoundModel) -> None:
    found = page_weights(uneven)
    assert found.bits == 16 and found.cost <= 0.001
    asked = page_weights(uneven, "int8")
    assert asked.bits == 8 and asked.cost > 0.001


def test_what_rounding_costs_is_how_much_the_loss_rises_on_texts_of_the_model(
    uneven: FoundModel,
) -> None:
    writer = Writer(uneven.glass, TOKENIZER)
    rounded_writer = Writer(as_in_page(uneven).glass, TOKENIZER)
    samples = writer.samples(samples=64, max_new_tokens=60, temperature=1, seed=5)
    texts = [sample.text for sample in samples]

    loss = -sum(writer.score(text).log_probability for text in texts)
    rounded_loss = -sum(rounded_writer.score(text).log_probability for text in texts)
    assert page_weights(uneven, "int8").cost == pytest.approx(rounded_loss / loss - 1, rel=0.2)


def test_what_rounding_costs_does_not_depend_on_how_the_model_is_usually_sampled(
    uneven: FoundModel, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = replace(uneven, folder=tmp_path_factory.mktemp("other"))
    (other.folder / GENERATION).write_text('{"temperature": 0.1, "top_k": 2}')
    assert other.usual == SampleConfig(temperature=0.1, top_k=2)
    assert page_weights(other, "int8").cost == page_weights(uneven, "int8").cost


def test_weights_too_large_for_16_bits_have_32_unless_16_are_asked_for(usual: FoundModel) -> None:
    final_norm = usual.glass.weights["final_norm.weight"].copy()
    final_norm[3] = 70_000.0
    large = changed(usual, {"final_norm.weight": final_norm})

    with warnings.catch_warnings(action="error"):
        assert page_weights(large).bits == 32
        for kind in ("int8", "float16"):
            problem = f"weights that are not finite numbers in {kind}; store them with --weights"
            with pytest.raises(UserError, match=problem):
                page_weights(large, kind)

        final_norm[3] = np.nan
        with pytest.raises(UserError, match=r"weights that are not finite numbers$"):
            page_weights(large)
