"""The GPT, of whatever parts: what an untrained one predicts, what its logits may depend on,
its cache, its parameters and what it costs. Parity with transformers is in interop/.
"""

import math
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from minigpt.attention import fused
from minigpt.attention.fused import Dropout
from minigpt.config import GPTConfig, count_parameters, named_shapes
from minigpt.model import GPT, flops_per_token

from .networks import configs

few = settings(max_examples=15, deadline=None)

KINDS: dict[str, dict[str, Any]] = {
    "qwen3": {"num_kv_heads": 2},
    "llama": {"architecture": "llama"},
    "gpt2": {"architecture": "gpt2"},
    # what one of these has and the other has not
    "mixed": {"norm": "layer", "bias": False, "positions": "learned"},
    "mixed, too": {"architecture": "gpt2", "norm": "rms", "feed_forward": "swiglu"},
}
every_kind = pytest.mark.parametrize("kind", KINDS)
kinds = st.sampled_from(list(KINDS))
VOCAB, CONTEXT = 11, 12
SHAPE: dict[str, Any] = {
    "vocab_size": VOCAB,
    "context_length": CONTEXT,
    "emb_dim": 16,
    "num_layers": 2,
    "num_heads": 4,
    "hidden_dim": 24,
}
# Lengths of pieces that together fit into the context.
splits = st.lists(st.integers(1, 5), min_size=1, max_size=CONTEXT).filter(
    lambda pieces: sum(pieces) <= CONTEXT
)


def gpt(kind: str, **changes: Any) -> GPT:
    """A float64 model, every parameter of it random, norms and biases too, in evaluation mode."""
    torch.manual_seed(123)
    model = GPT(GPTConfig(**SHAPE | KINDS[kind] | changes)).double().eval()
    for name, parameter in model.named_parameters():
        nn.init.normal_(parameter, mean=float(name.endswith("norm.weight")), std=0.3)
    return model


class Table(nn.Module):
    """Adds a learned vector for each position to queries and keys."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.zeros(CONTEXT, 4))

    def forward(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        rows = self.rows[: queries.shape[-2]]
        return queries + rows, keys + rows


def ids(*shape: int, vocab_size: int = VOCAB, seed: int = 0) -> Tensor:
    return torch.randint(vocab_size, shape, generator=torch.Generator().manual_seed(seed))


# An untrained model


@every_kind
@pytest.mark.parametrize(
    ("tied", "vocab_size", "emb_dim", "layers"),
    [(True, 64, 32, 2), (False, 1000, 64, 4), (True, 2048, 512, 1)],
)
def test_an_untrained_model_gives_all_tokens_about_the_same_probability(
    kind: str, tied: bool, vocab_size: int, emb_dim: int, layers: int
) -> None:
    """Its loss on random targets is ln(vocab_size), within 0.2 nats: logits of standard deviation
    s add s²/2, here at most 0.02² * 512 / 2 = 0.1, and 256 targets are a sample."""
    torch.manual_seed(0)
    shape = {"emb_dim": emb_dim, "num_layers": layers, "context_length": 32}
    config = GPTConfig(vocab_size, tie_embeddings=tied, **KINDS[kind], **shape)
    inputs, targets = (ids(8, 32, vocab_size=vocab_size, seed=i) for i in range(2))
    with torch.no_grad():
        loss = GPT(config).eval().loss(inputs, targets)
    assert loss.item() == pytest.approx(math.log(vocab_size), abs=0.2)


@pytest.mark.parametrize(
    ("kind", "name", "std"),
    [
        ("gpt2", "token_embedding.weight", 0.02),
        ("gpt2", "blocks.1.attention.W_key.weight", 0.02),
        ("gpt2", "blocks.1.feed_forward.out_proj.weight", 0.01),  # 0.02 / sqrt(2 * 2 layers)
        ("qwen3", "token_embedding.weight", 0.01),  # 2.5 / 250
        ("qwen3", "blocks.1.feed_forward.W_in.weight", 0.02),
    ],
)
def test_weights_are_drawn_with_the_documented_deviation(kind: str, name: str, std: float) -> None:
    torch.manual_seed(0)
    shape = {"emb_dim": 250, "num_layers": 2, "num_heads": 5, "num_kv_heads": None}
    model = GPT(GPTConfig(500, **KINDS[kind] | shape))
    assert model.state_dict()[name].std().item() == pytest.approx(std, rel=0.03)


@pytest.mark.parametrize("kind", ["qwen3", "llama"])
def test_every_block_of_an_untrained_model_with_rotary_positions_is_the_identity(kind: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 5, 16)
    model = GPT(GPTConfig(**SHAPE | KINDS[kind]))
    assert all(torch.equal(block(x), x) for block in model.blocks)


# Logits, loss, and what depends on what


@every_kind
def test_the_loss_is_the_mean_cross_entropy_of_the_logits(kind: str) -> None:
    model, inputs, targets = gpt(kind), ids(3, 7), ids(3, 7, seed=1)
    expected = -model(inputs).log_softmax(-1).gather(-1, targets[..., None]).mean()
    assert model.loss(inputs, targets).item() == pytest.approx(expected.item(), rel=1e-6)


@every_kind
@pytest.mark.parametrize("is_fast", [True, False], ids=["fast", "plain"])
def test_a_target_of_minus_100_does_not_count(
    kind: str, is_fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_fast:  # as on a GPU
        monkeypatch.setattr(fused, "_is_fast", lambda *tensors: False)
    model, inputs, targets = gpt(kind), ids(3, 7), ids(3, 7, seed=1)
    targets[0, 2:] = -100
    targets[1] = -100
    loss = model.loss(inputs, targets)
    loss.backward()
    found = model.head.weight.grad
    assert found is not None

    is_counted = targets != -100
    model.zero_grad()
    logits = model(inputs)[is_counted]  # (9, VOCAB)
    expected = torch.nn.functional.cross_entropy(logits, targets[is_counted])
    expected.backward()
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(found, model.head.weight.grad)

    nothing = model.loss(inputs, torch.full_like(targets, -100))
    model.zero_grad()
    nothing.backward()
    assert nothing.item() == 0.0 and not model.head.weight.grad.any()


@every_kind
@pytest.mark.parametrize("n", [1, 5, 7])
@pytest.mark.parametrize("tied", [True, False])
def test_the_losses_of_tokens_are_those_of_their_logits(
    kind: str, n: int, tied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the last n, the only ones that count, at once or two rows at a time."""
    model, inputs, targets = gpt(kind, tie_embeddings=tied), ids(3, 7), ids(3, 7, seed=1)
    logits = model(inputs)
    targets[0] = logits[0].argmax(-1)  # guessed right
    every = -logits.log_softmax(-1).gather(-1, targets[..., None]).squeeze(-1)  # (3, 7)
    are_right = logits.argmax(-1) == targets
    of_last = targets.clone()
    of_last[:, :-n] = -100
    for size in (1 << 20, 2 * VOCAB):
        monkeypatch.setattr("minigpt.model._LOGITS_ON_CPU", size)
        found, is_right = model.token_losses(inputs, of_last)
        assert found.shape == is_right.shape == (3, 7) and not found.requires_grad
        assert torch.equal(is_right[:, -n:], are_right[:, -n:]) and is_right[0, -n:].all()
        torch.testing.assert_close(found[:, -n:], every[:, -n:].detach())
        assert not found[:, :-n].any() and not is_right[:, :-n].any()


def test_the_losses_of_tokens_are_computed_in_the_precision_asked_for() -> None:
    """Of the products: the losses themselves are in float32."""
    model, inputs, targets = gpt("qwen3").float(), ids(3, 7), ids(3, 7, seed=1)
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(inputs).float()
        found, _ = model.token_losses(inputs, targets)
    expected = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.mean(), expected.detach(), rtol=1e-6, atol=0)
    assert not torch.equal(found, model.token_losses(inputs, targets)[0])


@given(kind=kinds, T=st.integers(1, CONTEXT), data=st.data())
@few
def test_a_token_never_changes_the_logits_before_it(kind: str, T: int, data: st.DataObject) -> None:
    j = data.draw(st.integers(0, T - 1))
    model, before = gpt(kind), ids(2, T)
    after = before.clone()
    after[:, j] = (after[:, j] + 1) % VOCAB
    same = (model(before) == model(after)).all(dim=-1)  # (2, T)
    assert same[:, :j].all() and not same[:, j:].any()


@every_kind
def test_the_rows_of_a_batch_do_not_depend_on_each_other(kind: str) -> None:
    model, batch = gpt(kind), ids(4, CONTEXT)
    alone = torch.cat([model(row[None]) for row in batch])
    torch.testing.assert_close(model(batch), alone)


@every_kind
def test_a_token_means_something_else_at_another_position(kind: str) -> None:
    """Without positions, the last token of 0 1 2 and of 1 0 2 would see the same."""
    last = gpt(kind)(torch.tensor([[0, 1, 2], [1, 0, 2]]))[:, -1]
    assert not torch.allclose(last[0], last[1], atol=1e-3)


@every_kind
@pytest.mark.parametrize("field", ["dropout", "attention_dropout"])
def test_dropout_acts_in_training_only(kind: str, field: str) -> None:
    model, inputs = gpt(kind, **{field: 0.5}), ids(2, CONTEXT)
    assert torch.equal(model(inputs), gpt(kind)(inputs))
    model.train()
    assert not torch.allclose(model(inputs), model(inputs))
    torch.testing.assert_close(gpt(kind).train()(inputs), gpt(kind)(inputs))


@every_kind
@pytest.mark.parametrize("part", ["embeddings", "attention", "feed_forward"])
def test_embeddings_attention_and_feed_forward_are_dropped_out(kind: str, part: str) -> None:
    """Each alone, with the others made to add nothing."""
    model = gpt(kind, dropout=0.5).train()
    for block in model.blocks:
        for name in {"attention", "feed_forward"} - {part}:
            for parameter in getattr(block, name).out_proj.parameters():
                nn.init.zeros_(parameter)
    if part != "embeddings":
        model.dropout.p = 0.0
    assert not torch.allclose(model(ids(2, 5)), model(ids(2, 5)))


# Reading in pieces


@given(
    shape=st.sampled_from([("gpt2", {"num_layers": 1}), ("qwen3", {}), ("llama", {"head_dim": 6})]),
    pieces=splits,
)
@few
def test_tokens_read_in_pieces_give_the_logits_of_the_whole(
    shape: tuple[str, dict[str, Any]], pieces: list[int]
) -> None:
    model, inputs = gpt(shape[0], **shape[1]), ids(2, sum(pieces))
    caches = model.new_caches(2)
    logits = [model(piece, caches=caches) for piece in inputs.split(pieces, dim=1)]
    torch.testing.assert_close(torch.cat(logits, dim=1), model(inputs))
    assert [cache.length for cache in caches] == [sum(pieces)] * model.config.num_layers


# What does not fit


@every_kind
def test_cached_and_new_tokens_together_may_not_outgrow_the_context(kind: str) -> None:
    model = gpt(kind)
    with pytest.raises(ValueError, match=r"13 tokens .* context_length 12"):
        model(ids(1, 13))
    caches = model.new_caches(1)
    model(ids(1, 8), caches=caches)
    with pytest.raises(ValueError, match=r"13 tokens .* context_length 12"):
        model(ids(1, 5), caches=caches)
    assert model(ids(1, 4), caches=caches).shape == (1, 4, VOCAB)


@pytest.mark.parametrize("shape", [(5,), (2, 5, 1)])
def test_token_ids_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"\(b, T\), got \(") as error:
        gpt("qwen3")(ids(*shape))
    assert str(shape) in str(error.value)


# Parameters


@pytest.mark.parametrize("p", [0.05, 0.1, 0.5, 0.999])
def test_dropout_zeroes_a_share_p_and_keeps_the_mean(p: float) -> None:
    torch.manual_seed(0)
    share = min(round(256 * p), 255) / 256
    y = Dropout(p)(torch.full((100, 1001), 3.0))  # an odd number of activations
    assert (y == 0).float().mean().item() == pytest.approx(share, rel=0.05)
    kept = y[y != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 3.0 / (1 - share)))
    assert not torch.equal(y, Dropout(p)(torch.full((100, 1001), 3.0)))


GPT2_SMALL = GPTConfig(50257, "gpt2", 1024, emb_dim=768, num_layers=12, num_heads=12)


@given(config=configs())
@example(config=GPT2_SMALL)
@few
def test_the_parameters_are_those_of_the_table_of_weights(config: GPTConfig) -> None:
    """Their names, their shapes and how many there are."""
    with torch.device("meta"):  # without their memory
        model = GPT(config)
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    assert shapes == dict(named_shapes(config))
    assert sum(p.numel() for p in model.parameters()) == count_parameters(config)
    if config == GPT2_SMALL:  # the smallest model of Radford et al. 2019
        assert count_parameters(config) == 124_439_808


@every_kind
def test_a_tied_head_is_the_embedding_and_learns_from_both_uses(kind: str) -> None:
    """Its gradient is the sum of the two that an untied model with equal weights has."""
    tied, untied = gpt(kind), gpt(kind, tie_embeddings=False)
    untied.load_state_dict(tied.state_dict())
    assert tied.head.weight is tied.token_embedding.weight
    assert untied.head.weight.data_ptr() != untied.token_embedding.weight.data_ptr()
    for model in (tied, untied):
        model.loss(ids(2, 5), ids(2, 5, seed=1)).backward()
    parts = untied.head.weight.grad, untied.token_embedding.weight.grad
    assert all(part is not None and part.abs().max() > 1e-6 for part in parts)
    torch.testing.assert_close(tied.head.weight.grad, parts[0] + parts[1])


@given(config=configs())
@few
def test_every_parameter_is_in_one_group_and_all_matrices_decay(config: GPTConfig) -> None:
    model = GPT(config)
    groups = model.parameter_groups(0.3)
    assert [group["weight_decay"] for group in groups] == [0.3, 0.3, 0.0]
    matrices, tables, others = ([id(p) for p in group["params"]] for group in groups)
    assert sorted(matrices + tables + others) == sorted(map(id, model.parameters()))
    assert set(others) == {id(p) for p in model.parameters() if p.dim() == 1}
    assert set(tables).isdisjoint(id(p) for p in model.blocks.parameters())


def test_a_table_in_a_block_is_no_matrix() -> None:
    """A table of positions, say, has a row for each of them, and no directions to make equal."""
    model = GPT(GPTConfig(**SHAPE))
    model.blocks[0].attention.process_heads = Table()
    matrices, tables, _ = model.parameter_groups(0.1)
    assert any(p is model.blocks[0].attention.process_heads.rows for p in tables["params"])
    assert len(matrices["params"]) == 2 * 7  # of queries, keys, values, heads, and three more


# Cost


@pytest.mark.parametrize(
    ("kind", "head_dim", "kv_heads"),
    [("qwen3", None, 1), ("llama", None, 4), ("qwen3", 6, 1), ("gpt2", None, 4), ("mixed", 3, 2)],
)
def test_flops_are_those_that_torch_counts(kind: str, head_dim: int | None, kv_heads: int) -> None:
    """Torch counts the scores of all pairs, also of the half that the mask leaves out."""
    changes = {"context_length": 32, "num_kv_heads": kv_heads, "head_dim": head_dim}
    model = GPT(GPTConfig(**SHAPE | KINDS[kind] | changes))
    config, tokens = model.config, 3 * 32
    head_sizes = config.num_heads * config.head_size
    masked_half = config.num_layers * 2 * config.context_length * head_sizes
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        logits = model(ids(3, 32))
        forward = counter.get_total_flops()
        logits.sum().backward()
    assert forward == tokens * (flops_per_token(config, training=False) + masked_half)
    assert counter.get_total_flops() == tokens * (flops_per_token(config) + 3 * masked_half)


@every_kind
def test_a_tiny_model_memorises_a_batch(kind: str) -> None:
    torch.manual_seed(0)
    model = GPT(GPTConfig(**SHAPE | KINDS[kind] | {"emb_dim": 32}))
    optimizer = torch.optim.AdamW(model.parameter_groups(0.0), lr=2e-2)
    inputs, targets = ids(3, CONTEXT), ids(3, CONTEXT, seed=1)
    for _ in range(40):
        loss = model.loss(inputs, targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert loss.item() < 0.1
