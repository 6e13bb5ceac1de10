"""The circuit a model starts from: it knows which token came before, and continues what repeats."""

import math
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from minigpt.config import GPTConfig
from minigpt.model import GPT, TransformerBlock
from minigpt.training import induction


def started(V: int = 300, **shape: Any) -> GPT:
    """An untrained model with random token vectors and the circuit."""
    usual = {"context_length": 128, "emb_dim": 128, "num_layers": 2, "num_heads": 2}
    usual |= {"tie_embeddings": False}
    torch.manual_seed(0)
    gpt = GPT(GPTConfig(V, **usual | shape))
    vectors = 0.06 * torch.randn(V, gpt.config.emb_dim - induction.SPARE)
    gpt.token_embedding.load_state_dict({"weight": induction.with_spare(vectors)})
    induction.start(gpt, torch.randint(1, 1000, (V,)))
    return gpt.eval()


def repeated(V: int = 300, T: int = 100) -> Tensor:
    """T / 2 different tokens, twice."""
    return torch.randperm(V, generator=torch.Generator().manual_seed(1))[: T // 2].repeat(1, 2)


SHAPES = [{}, {"emb_dim": 64, "num_heads": 1}, {"num_kv_heads": 1}]


@torch.no_grad()
@pytest.mark.parametrize("shape", [*SHAPES, {"tie_embeddings": True}])
def test_one_head_looks_back_by_a_token_and_one_to_what_followed_before(
    shape: dict[str, Any],
) -> None:
    gpt, ids = started(**shape), repeated()
    x, heads = gpt.token_embedding(ids), []
    for module in gpt.blocks:
        block = cast(TransformerBlock, module)
        _, weights = block.attention.forward_with_weights(block.attention_norm(x))
        heads.append(weights[0, 0])  # (T, T)
        x = block(x)
    looking_back, inducing = heads
    half = ids.shape[1] // 2
    assert looking_back.diagonal(-1).mean() > 0.6
    assert inducing.diagonal(1 - half)[1:].mean() > 0.6  # from the second half to the first


@torch.no_grad()
@pytest.mark.parametrize("shape", SHAPES)
def test_an_untrained_model_predicts_what_is_repeated(shape: dict[str, Any]) -> None:
    gpt, ids = started(**shape), repeated()
    logits = gpt(ids[:, :-1]).log_softmax(dim=-1)  # (1, T - 1, V)
    losses = -logits.gather(2, ids[:, 1:, None])[0, :, 0]  # (T - 1,)
    first, second = losses.tensor_split(2)
    assert second[1:].mean() < first.mean() - 0.2
    assert first.mean() < math.log(300) + 0.2  # and guesses where nothing is


@pytest.mark.parametrize("frequencies", [[7, 0, 0, 0], [0, 0, 0, 0], [5, 5, 0, 0]])
def test_a_text_of_one_token_or_two_gives_weights_that_are_numbers(frequencies: list[int]) -> None:
    gpt = started(V=4, emb_dim=64)
    induction.start(gpt, torch.tensor(frequencies))
    assert all(parameter.isfinite().all() for parameter in gpt.parameters())


@pytest.mark.parametrize(
    ("shape", "fits"),
    [
        ({}, True),
        ({"num_layers": 1}, False),
        ({"emb_dim": 48, "num_heads": 1}, False),
        ({"num_heads": 8}, False),  # 16 components each
        ({"architecture": "gpt2"}, False),
    ],
)
def test_it_needs_rotary_positions_two_blocks_and_room(shape: dict[str, Any], fits: bool) -> None:
    usual: dict[str, Any] = {"emb_dim": 128, "num_layers": 2, "num_heads": 2}
    assert induction.fits(GPTConfig(10, **usual | shape)) is fits
