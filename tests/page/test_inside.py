"""What the page's worker shows of the model's inside, in node, beside torch and numpy."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from minigpt.generation.sampler import log_softmax
from minigpt.runs.read_model import FoundModel
from minigpt.tokenizer import make_tokenizer

from .conftest import random_found
from .in_node import Worker

TOKENIZER = make_tokenizer("char", None, ["abcdefghijklmnopqrstuvwxyz ,.\n"])
VOCAB = TOKENIZER.vocab_size
SHAPE = {"emb_dim": 24, "num_layers": 2, "num_heads": 4, "num_kv_heads": 2, "context_length": 20}
IDS = np.random.default_rng(7).integers(VOCAB, size=17).tolist()
LAYER = 1
HEAD = 2


@pytest.fixture(scope="module", params=["qwen3", "gpt2"])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> FoundModel:
    return random_found(
        TOKENIZER, tmp_path_factory.mktemp("run"), seed=3, architecture=request.param, **SHAPE
    )


@pytest.fixture(scope="module")
def worker(found: FoundModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    worker = Worker(tmp_path_factory.mktemp("node"))
    worker.open(found)
    yield worker
    worker.close()


@torch.no_grad()
def inputs_of(found: FoundModel, part: str) -> Any:
    """What a linear layer of the torch model gets when it reads the tokens, (T, d_in)."""
    seen: list[Tensor] = []
    module = found.model.get_submodule(part)
    hook = module.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    found.model(torch.tensor([IDS]))
    hook.remove()
    return seen[0][0].numpy()


def test_the_units_that_fire_most_are_shown_with_what_they_add(
    worker: Worker, found: FoundModel
) -> None:
    activations = inputs_of(found, f"blocks.{LAYER}.feed_forward.out_proj")  # (T, ff_dim)
    strongest = np.argsort(-np.abs(activations[-1]), kind="stable")[:12]
    units = worker.ask("feedForward", IDS, LAYER, [])["units"]
    assert [unit["unit"] for unit in units] == strongest.tolist()

    weights = found.glass.weights
    matrix = weights[f"blocks.{LAYER}.feed_forward.out_proj.weight"]  # (emb_dim, ff_dim)
    for unit in units:
        firing = activations[:, unit["unit"]]
        assert unit["activation"] == pytest.approx(firing[-1], abs=1e-3)

        sign = np.sign(firing[-1])
        added = sign * matrix[:, unit["unit"]]
        if found.glass.config.norm == "layer":
            added = added - added.mean()
        raised = weights["token_embedding.weight"] @ (added * weights["final_norm.weight"])
        assert unit["adds"] == np.argsort(-raised, kind="stable")[:8].tolist()

        others = np.argsort(-sign * firing[:-1], kind="stable")[:5]
        expected = [int(t) for t in others if sign * firing[t] > 0]
        assert [place["place"] for place in unit["places"]] == expected
        shown = [place["activation"] for place in unit["places"]]
        assert shown == pytest.approx(firing[expected].tolist(), abs=1e-3)


def test_the_nearest_tokens_have_the_most_similar_vectors(
    worker: Worker, found: FoundModel
) -> None:
    vectors = found.glass.weights["token_embedding.weight"].astype(float)
    lengths = np.linalg.norm(vectors, axis=1)
    lengths[lengths == 0] = 1  # of the end of the text in these models
    similarities = vectors @ vectors[5] / (lengths * lengths[5])
    order = [int(i) for i in np.argsort(-similarities, kind="stable") if i != 5][:6]

    nearest = worker.ask("nearest", 5, 6)
    assert [token["id"] for token in nearest] == order
    shown = [token["similarity"] for token in nearest]
    assert shown == pytest.approx(similarities[order].tolist(), abs=1e-4)


def test_the_lens_shows_the_likeliest_token_after_each_layer(
    worker: Worker, found: FoundModel
) -> None:
    off = [(0, 1)]
    residual = found.glass.record(np.array(IDS), off).residual
    nats = log_softmax(found.glass.logits(residual[:, -4:]))  # (num_layers + 1, 4, vocab_size)
    rows = worker.ask("lens", IDS, 4, ["0.1"])
    assert [[cell["id"] for cell in row] for row in rows] == nats.argmax(-1).tolist()
    shown = [[cell["probability"] for cell in row] for row in rows]
    np.testing.assert_allclose(shown, np.exp(nats.max(-1)), atol=1e-4)

    following = [[cell["next"] for cell in row[:-1]] for row in rows]
    expected = np.exp(nats[:, np.arange(3), IDS[-3:]])
    np.testing.assert_allclose(following, expected, atol=1e-4)
    assert [row[-1]["next"] for row in rows] == [None] * 3


def test_a_query_is_followed_from_its_vectors_to_what_the_layer_adds(
    worker: Worker, found: FoundModel
) -> None:
    query = worker.ask("query", IDS, LAYER, HEAD, [])
    record = found.glass.record(np.array(IDS))
    weights = record.attention[LAYER, HEAD, -1]
    np.testing.assert_allclose(query["weights"], weights, atol=1e-4)

    size = found.glass.config.head_size
    joined = inputs_of(found, f"blocks.{LAYER}.attention.out_proj")[-1]
    np.testing.assert_allclose(query["joined"], joined, atol=1e-3)
    np.testing.assert_allclose(query["context"], joined[HEAD * size : (HEAD + 1) * size], atol=1e-3)
    np.testing.assert_allclose(query["stream"], record.residual[LAYER, -1], atol=1e-3)

    scores = np.array(query["keys"]) @ query["query"] / size**0.5
    np.testing.assert_allclose(query["scores"], scores, atol=1e-3)
    np.testing.assert_allclose(query["context"], weights @ np.array(query["values"]), atol=1e-3)


def test_thumbnails_show_the_largest_weight_of_each_square(
    worker: Worker, found: FoundModel
) -> None:
    small = worker.ask("thumbnails", IDS, [])
    weights = found.glass.record(np.array(IDS)).attention
    assert small["T"] == small["side"] == len(IDS)
    shown = np.reshape(small["heads"], weights.shape)
    np.testing.assert_allclose(shown, 255 * np.sqrt(weights), atol=1.01)
