"""Why a token was likely: the parts of its logit add up, and a word or a head that is taken away
changes what the torch model says that it changes."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from minigpt import UserError
from minigpt.attention import MultiHeadAttention
from minigpt.config import GPTConfig
from minigpt.generation.explanation import Explanation, explain_token
from minigpt.generation.torch_gpt import TorchGPT, glass_of
from minigpt.generation.writer import Writer
from minigpt.model import GPT

from ..interop.examples import byte_pairs, random_model, randomize
from ..networks import COMBINATIONS, configs, shapes

pytestmark = pytest.mark.long

VOCAB = 31
few = settings(max_examples=8, deadline=None)


def random_gpt(config: GPTConfig, seed: int = 0) -> GPT:
    torch.manual_seed(seed)
    model = GPT(config)
    randomize(model)
    return model.eval()


def some_ids(model: GPT, count: int) -> list[int]:
    ids: list[int] = np.random.default_rng(0).integers(model.config.vocab_size, size=count).tolist()
    return ids


def log_probability(logits: Tensor, token: int) -> float:
    """In bits."""
    return logits.double().log_softmax(-1)[token].item() / math.log(2)


@torch.no_grad()
def logits_with_hidden(model: GPT, window: list[int], hidden: int) -> Tensor:
    """The torch model's logits after the window, if in no layer any later token may look at the
    token at the position `hidden`."""
    causal_mask = MultiHeadAttention._mask

    def mask(self: MultiHeadAttention, *arguments: Any) -> Tensor:
        forbidden = causal_mask(self, *arguments)
        assert forbidden is not None
        forbidden[hidden + 1 :, hidden] = True
        return forbidden

    def forward(self: MultiHeadAttention, x: Tensor, _: None) -> Tensor:
        return self.forward_with_weights(x)[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MultiHeadAttention, "_mask", mask)
        patch.setattr(MultiHeadAttention, "forward", forward)
        logits: Tensor = model(torch.tensor([window]))[0, -1]
        return logits


@torch.no_grad()
def logits_without(model: GPT, window: list[int], heads: list[tuple[int, int]]) -> Tensor:
    """The torch model's logits after the window, with the columns of out_proj zero that read these
    heads."""
    model_without = GPT(model.config).eval()
    model_without.load_state_dict(model.state_dict())
    size = model.config.head_size
    for layer, head in heads:
        out_proj: Any = model_without.blocks[layer].attention.out_proj  # type: ignore[union-attr]
        out_proj.weight[:, head * size : (head + 1) * size] = 0
    logits: Tensor = model_without(torch.tensor([window]))[0, -1]
    return logits


@pytest.mark.parametrize(
    "parts", COMBINATIONS, ids=lambda parts: "-".join(map(str, parts.values()))
)
@given(shape=shapes(VOCAB), data=st.data())
@settings(max_examples=3, deadline=None)
@torch.no_grad()
def test_the_parts_add_up_to_the_centred_logit(
    parts: dict[str, Any], shape: dict[str, Any], data: st.DataObject
) -> None:
    """Of the window, the tokens that the context holds, whatever was before it."""
    model = random_gpt(GPTConfig(**shape, **parts))
    ids = some_ids(model, model.config.context_length + 3)
    place = data.draw(st.integers(1, len(ids) - 1))
    why = explain_token(glass_of(model), ids, place)

    window = ids[max(0, place - model.config.context_length) : place]
    logits = model(torch.tensor([window]))[0, -1]
    assert why.logit == pytest.approx((logits[ids[place]] - logits.mean()).item(), abs=1e-4)
    assert sum(why.parts.values()) == pytest.approx(why.logit, abs=1e-4)
    assert math.log2(why.probability) == pytest.approx(
        log_probability(logits, ids[place]), abs=1e-4
    )


@given(config=configs(VOCAB))
@few
@torch.no_grad()
def test_a_part_adds_what_the_logit_loses_without_it(config: GPTConfig) -> None:
    """The last feed-forward layer and the heads of the last layer: with the scale of the final norm
    as it was, the logit without one is less by its part."""
    model = random_gpt(config)
    ids = some_ids(model, config.context_length + 1)
    why = explain_token(glass_of(model), ids, config.context_length)

    seen: list[Tensor] = []
    last: Any = model.blocks[-1]
    hooks = [
        last.attention.out_proj.register_forward_pre_hook(lambda _, given: seen.append(given[0])),
        last.feed_forward.register_forward_hook(lambda *given: seen.append(given[2])),
        model.final_norm.register_forward_pre_hook(lambda _, given: seen.append(given[0])),
    ]
    model(torch.tensor([ids[:-1]]))
    for hook in hooks:
        hook.remove()
    contexts, feed_forward, x = (tensor[0, -1] for tensor in seen)

    updates = {f"{config.num_layers} feed-forward": feed_forward}
    for head in range(config.num_heads):
        own = slice(head * config.head_size, (head + 1) * config.head_size)
        update = last.attention.out_proj.weight[:, own] @ contexts[own]
        updates[f"{config.num_layers}.{head + 1}"] = update

    def centred_logit(x: Tensor, scale: Tensor) -> float:
        normed = x - x.mean() if config.norm == "layer" else x
        bias = getattr(model.final_norm, "bias", None)
        normed = normed / scale * model.final_norm.weight + (0 if bias is None else bias)
        logits: Tensor = model.head(normed)
        return (logits[ids[-1]] - logits.mean()).item()

    centred = x - x.mean() if config.norm == "layer" else x
    scale = (centred.square().mean() + config.norm_eps).sqrt()
    for name, update in updates.items():
        difference = centred_logit(x, scale) - centred_logit(x - update, scale)
        assert why.parts[name] == pytest.approx(difference, abs=1e-3, rel=1e-3)


@given(config=configs(VOCAB), data=st.data())
@few
def test_a_word_changes_what_the_torch_model_with_that_word_masked_changes(
    config: GPTConfig, data: st.DataObject
) -> None:
    model = random_gpt(config)
    ids = some_ids(model, config.context_length + 3)
    place = data.draw(st.integers(1, len(ids) - 1))
    why = explain_token(glass_of(model), ids, place)

    start = max(0, place - config.context_length)
    window = ids[start:place]
    assert list(why.words) == list(range(start, place))
    for i, bits in why.words.items():
        hidden = log_probability(logits_with_hidden(model, window, i - start), ids[place])
        assert bits == pytest.approx(hidden - math.log2(why.probability), abs=1e-3)
    assert why.words[place - 1] == 0


@given(config=configs(VOCAB), data=st.data())
@few
def test_without_a_head_the_probability_is_that_of_the_torch_model_without_it(
    config: GPTConfig, data: st.DataObject
) -> None:
    """Also where heads are off already."""
    model = random_gpt(config)
    ids = some_ids(model, config.context_length + 1)
    place = data.draw(st.integers(1, len(ids) - 1))
    all_heads = [(i, head) for i in range(config.num_layers) for head in range(config.num_heads)]
    off = data.draw(st.lists(st.sampled_from(all_heads), max_size=2))
    why = explain_token(glass_of(model), ids, place, heads_off=off)

    window = ids[:place]
    known = log_probability(logits_without(model, window, off), ids[place])
    assert math.log2(why.probability) == pytest.approx(known, abs=1e-3)
    assert sum(why.parts.values()) == pytest.approx(why.logit, abs=1e-4)
    for i, head in all_heads:
        without = logits_without(model, window, [*off, (i, head)])
        probability = 2 ** log_probability(without, ids[place])
        assert why.heads[f"{i + 1}.{head + 1}"] == pytest.approx(probability, abs=1e-4)


@given(config=configs(VOCAB), data=st.data())
@few
@torch.no_grad()
def test_a_head_that_is_zero_adds_nothing_and_changes_nothing(
    config: GPTConfig, data: st.DataObject
) -> None:
    model = random_gpt(config)
    layer = data.draw(st.integers(0, config.num_layers - 1))
    head = data.draw(st.integers(0, config.num_heads - 1))
    out_proj: Any = model.blocks[layer].attention.out_proj  # type: ignore[union-attr]
    out_proj.weight[:, head * config.head_size : (head + 1) * config.head_size] = 0

    ids = some_ids(model, config.context_length + 1)
    why = explain_token(glass_of(model), ids, config.context_length)
    name = f"{layer + 1}.{head + 1}"
    assert why.parts[name] == 0
    assert why.heads[name] == pytest.approx(why.probability, rel=1e-5)


@torch.no_grad()
def test_one_layer_and_no_feed_forward_agree_with_a_calculation_by_hand() -> None:
    """One head looks equally at the two tokens of the window and copies what it sees."""
    config = GPTConfig(
        3,
        architecture="llama",
        context_length=4,
        emb_dim=2,
        num_layers=1,
        num_heads=1,
        hidden_dim=1,
        tie_embeddings=False,
        norm_eps=1e-12,
    )
    model = GPT(config).eval()
    attention: Any = model.blocks[0].attention
    feed_forward: Any = model.blocks[0].feed_forward
    model.token_embedding.weight[:] = torch.tensor([[3.0, 4.0], [4.0, -3.0], [0.0, 5.0]])
    model.head.weight[:] = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, -4.0]])
    attention.W_query.weight.zero_()  # all scores are 0
    attention.W_value.weight[:] = torch.eye(2)
    attention.out_proj.weight[:] = torch.eye(2)
    feed_forward.out_proj.weight.zero_()

    # The norm makes (3, 4) and (4, -3) of length sqrt(2): (3, 4) k and (4, -3) k. The head adds
    # their mean to (4, -3). The final norm divides by the root of the mean square.
    k = math.sqrt(2) / 5
    x = (4 + 3.5 * k, -3 + 0.5 * k)
    scale = math.sqrt((x[0] ** 2 + x[1] ** 2) / 2)
    # Token 2 has the row (0, -4) of the output layer, and the mean of its rows is (1/3, -1).
    direction = (0 - 1 / 3, -4 + 1)

    def chance(first: float, second: float) -> float:
        """Of token 2, from the stream after the layer."""
        size = math.sqrt((first**2 + second**2) / 2)
        logits = (first / size, second / size, -4 * second / size)
        return math.exp(logits[2]) / sum(math.exp(logit) for logit in logits)

    why = explain_token(glass_of(model), [0, 1, 2], 2)
    assert why.parts == pytest.approx(
        {
            "embedding": (4 * direction[0] - 3 * direction[1]) / scale,
            "1.1": (3.5 * k * direction[0] + 0.5 * k * direction[1]) / scale,
            "1 feed-forward": 0,
            "bias": 0,
        },
        abs=1e-6,
    )
    assert why.logit == pytest.approx((x[0] * direction[0] + x[1] * direction[1]) / scale, rel=1e-6)
    assert why.probability == pytest.approx(chance(*x), rel=1e-6)
    assert why.heads == pytest.approx({"1.1": chance(4, -3)}, rel=1e-6)

    # If nobody may look at token 0, token 1 looks at itself alone.
    alone = chance(4 + 4 * k, -3 - 3 * k)
    assert why.words == pytest.approx({0: math.log2(alone / chance(*x)), 1: 0}, rel=1e-5)


def test_a_token_cannot_be_hidden_from_itself() -> None:
    glass = glass_of(random_model("qwen3"))
    ids = np.array([[5, 6, 7, 8]])
    cache = glass.new_cache(1)
    glass.last_stream(ids[:, :2], cache)
    with pytest.raises(ValueError, match="a token always sees itself"):
        glass.last_stream(ids[:, 2:], cache, hidden=[2])


@pytest.mark.parametrize("place", [-1, 0, 5, 50])
def test_a_place_that_nothing_predicts_is_refused(place: int) -> None:
    glass = glass_of(random_model("qwen3"))
    with pytest.raises(UserError, match=f"place must be between 1 and 4, got {place}"):
        explain_token(glass, [1, 2, 3, 4, 5], place)


@pytest.mark.parametrize("text", ["", "a"])
def test_a_text_with_nothing_to_predict_is_refused(text: str) -> None:
    writer = Writer(glass_of(random_model("qwen3")), byte_pairs())
    with pytest.raises(UserError, match="give a longer text"):
        writer.explain(text, 1)


def test_a_damaged_model_is_refused() -> None:
    model = random_model("gpt2")
    with torch.no_grad():
        model.final_norm.weight[0] = math.nan
    with pytest.raises(UserError, match="its logits are not finite"):
        explain_token(glass_of(model), [1, 2, 3], 2)


def test_a_writer_with_a_torch_model_explains_the_same() -> None:
    model = random_model("gpt2")
    text = "The crow asked the fox"
    glass = Writer(glass_of(model), byte_pairs()).explain(text, 4)
    assert isinstance(glass, Explanation)
    assert Writer(TorchGPT(model), byte_pairs()).explain(text, 4) == glass


def test_what_comes_after_the_token_does_not_matter() -> None:
    glass = glass_of(random_model("qwen3"))
    assert explain_token(glass, [5, 6, 7, 8], 2) == explain_token(glass, [5, 6, 7, 9, 1], 2)
