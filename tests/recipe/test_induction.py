"""The circuit a model starts from: it knows which token came before, and continues what repeats."""

import math
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from minigpt.config import GPTConfig
from minigpt.model import GPT, TransformerBlock
from minigpt.recipe import induction


def started(V: int = 300, text: Tensor | None = None, **shape: Any) -> GPT:
    """An untrained model with random token vectors and the circuit, for a text that repeats itself
    about half of the time."""
    usual = {"context_length": 128, "emb_dim": 128, "num_layers": 2, "num_heads": 2}
    usual |= {"tie_embeddings": False}
    torch.manual_seed(0)
    gpt = GPT(GPTConfig(V, **usual | shape))
    reserved = induction.reserved_components(gpt.config, "bpe")
    vectors = 0.03 + 0.06 * torch.randn(V, gpt.config.emb_dim - reserved)
    gpt.token_embedding.load_state_dict({"weight": induction.with_reserved(vectors, reserved)})
    says_twice = torch.cat([repeated(V, seed=seed) for seed in range(40)], dim=1)
    chance = torch.randint(V, says_twice.shape)
    mixed = torch.where(torch.rand(chance.shape) < 0.3, chance, says_twice)
    induction.start(gpt, mixed if text is None else text, reserved)
    return gpt.eval()


def repeated(V: int = 300, T: int = 100, seed: int = 99) -> Tensor:
    """T / 2 different tokens, twice."""
    return torch.randperm(V, generator=torch.Generator().manual_seed(seed))[: T // 2].repeat(1, 2)


TIED = {"tie_embeddings": True}
SHAPES = [{}, {"emb_dim": 64, "num_heads": 1}, {"num_kv_heads": 1}, TIED]


@torch.no_grad()
@pytest.mark.parametrize("shape", SHAPES)
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


def losses(gpt: GPT, ids: Tensor) -> Tensor:
    """Of all tokens but the first: ``(T - 1,)``, in nats."""
    logits = gpt(ids[:, :-1]).log_softmax(dim=-1)  # (1, T - 1, V)
    return -logits.gather(2, ids[:, 1:, None])[0, :, 0]


@torch.no_grad()
@pytest.mark.parametrize("shape", SHAPES)
def test_an_untrained_model_predicts_what_is_repeated(shape: dict[str, Any]) -> None:
    first, second = losses(started(**shape), repeated()).tensor_split(2)
    assert second[1:].mean() < first.mean() - 1.0


@torch.no_grad()
def test_it_copies_as_surely_as_the_text_repeats_itself() -> None:
    """A token comes again in both texts, but only in one the same follows."""
    repeating = repeated(50).repeat(1, 40)
    shuffled = repeating[:, torch.randperm(repeating.shape[1])]
    sure, unsure = (losses(started(text=t), repeated())[50:].mean() for t in (repeating, shuffled))
    assert sure < 1.0 < math.log(300) - 0.5 < unsure < math.log(300) + 0.2


def test_only_what_stands_in_the_same_context_counts_as_repeated() -> None:
    tokens = torch.tensor([1, 3, 2, 0, 2, 1])
    assert induction._repetition(tokens, context_length=3) == 0.0  # no token comes again
    assert induction._repetition(tokens, context_length=6) == 0.0  # 1 and 2 do, followed by others
    assert induction._repetition(torch.tensor([1, 3, 2, 1, 3, 0]), context_length=6) == 0.5


@pytest.mark.parametrize("text", [[7] * 9, [0, 1, 2, 3], [5, 5, 9, 9], list(range(300))], ids=str)
@pytest.mark.parametrize("shape", [{}, TIED])
def test_any_text_gives_weights_that_are_numbers(text: list[int], shape: dict[str, Any]) -> None:
    gpt = started(text=torch.tensor([text]), **shape)
    assert all(parameter.isfinite().all() for parameter in gpt.parameters())


@pytest.mark.parametrize(
    ("shape", "reserved"),
    [
        ({}, 49),
        (TIED, 17),
        ({"emb_dim": 64, "num_heads": 1}, 33),
        ({"num_layers": 1}, 0),
        ({"emb_dim": 48, "num_heads": 1}, 0),
        ({"num_heads": 8}, 0),  # 16 components each
        ({"architecture": "gpt2"}, 0),
        ({"tokenizer": "char"}, 0),  # however many
    ],
)
def test_it_needs_rotary_positions_blocks_room_and_words(
    shape: dict[str, Any], reserved: int
) -> None:
    usual: dict[str, Any] = {"vocab_size": 300, "emb_dim": 128, "num_layers": 2, "num_heads": 2}
    usual |= {"tie_embeddings": False} | shape
    tokenizer = usual.pop("tokenizer", "bpe")
    assert induction.reserved_components(GPTConfig(**usual), tokenizer) == reserved
