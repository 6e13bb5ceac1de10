"""The layer and the GPT under torch's own tools: torch.func, forward mode, second derivatives,
torch.compile, torch.export, copies. Each gives what the explicit path or the plain call gives.
"""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call, grad, hessian, jacrev, jvp, vmap
from torch.nn import functional as F

from minigpt.attention import MultiHeadAttention
from minigpt.attention.fused import Dropout
from minigpt.config import GPTConfig
from minigpt.model import GPT

from .examples import CONTEXT, D_IN, EXTRAS, attention, every_extra, normal

pytestmark = pytest.mark.long

Weights = dict[str, Tensor]

in_both_modes = pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
both_architectures = pytest.mark.parametrize("architecture", ["qwen3", "gpt2"])


def explicit(layer: MultiHeadAttention, x: Tensor) -> Tensor:
    return layer.forward_with_weights(x)[0]


def gpt(architecture: str, **changes: Any) -> GPT:
    """A float64 model with random parameters, in training mode."""
    torch.manual_seed(0)
    sizes = {"context_length": 6, "emb_dim": 8, "num_layers": 2, "num_heads": 2, "hidden_dim": 8}
    model = GPT(GPTConfig(11, architecture, **(sizes | changes))).double()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model


def texts(model: GPT, count: int = 3) -> tuple[Tensor, Tensor]:
    ids = torch.randint(11, (2, count, model.config.context_length))
    return ids[0], ids[1]


def loss_of(model: GPT) -> Callable[[Weights, Tensor, Tensor], Tensor]:
    """The loss of one text ``(T,)`` as a function of the weights."""

    def loss(weights: Weights, ids: Tensor, targets: Tensor) -> Tensor:
        logits = functional_call(model, weights, (ids[None],))[0]  # (T, vocab_size)
        return F.cross_entropy(logits, targets)

    return loss


def weights_of(model: nn.Module) -> Weights:
    return {name: p.detach() for name, p in model.named_parameters()}


# torch.func


@every_extra
@in_both_modes
def test_jacobians_of_the_layer_are_those_of_the_explicit_path(extra: str, training: bool) -> None:
    layer, x = attention(**EXTRAS[extra]).train(training), normal(2, 5, D_IN)
    expected = torch.autograd.functional.jacobian(lambda x: explicit(layer, x), x)
    torch.testing.assert_close(jacrev(layer)(x), expected)

    rows = vmap(lambda row: layer(row[None])[0])(x)
    torch.testing.assert_close(rows, explicit(layer, x))

    direction = normal(2, 5, D_IN, seed=1)
    output, tangent = jvp(layer, (x,), (direction,))
    torch.testing.assert_close(output, explicit(layer, x))
    torch.testing.assert_close(tangent, torch.einsum("btdcse,cse->btd", expected, direction))


@both_architectures
@in_both_modes
def test_vmap_of_grad_gives_the_gradient_of_each_text(architecture: str, training: bool) -> None:
    model = gpt(architecture).train(training)
    ids, targets = texts(model)
    each = vmap(grad(loss_of(model)), in_dims=(None, 0, 0))(weights_of(model), ids, targets)
    parameters = dict(model.named_parameters())
    for i in range(len(ids)):
        loss = model.loss(ids[i : i + 1], targets[i : i + 1])
        found = torch.autograd.grad(loss, list(parameters.values()))
        torch.testing.assert_close(list(found), [each[name][i] for name in parameters])


@pytest.mark.parametrize("kind", ["dropout", "attention_dropout"])
def test_dropout_differs_from_text_to_text_under_vmap(kind: str) -> None:
    model = gpt("qwen3", **{kind: 0.5})
    ids, targets = (part[:1].expand(4, -1) for part in texts(model))
    each = vmap(grad(loss_of(model)), in_dims=(None, 0, 0), randomness="different")
    gradients = each(weights_of(model), ids, targets)["final_norm.weight"]
    assert not any(torch.equal(gradients[0], other) for other in gradients[1:])


def test_the_second_derivative_of_torch_func_is_that_of_autograd() -> None:
    model = gpt("qwen3")
    ids, targets = texts(model)
    name = "blocks.0.attention.query_norm.weight"
    weight = weights_of(model)[name]

    def loss(weight: Tensor) -> Tensor:
        logits = functional_call(model, {name: weight}, (ids,))  # (b, T, vocab_size)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    expected = torch.autograd.functional.hessian(loss, weight)
    assert expected.abs().max() > 1e-4
    torch.testing.assert_close(hessian(loss)(weight), expected)


# Derivatives of derivatives


@pytest.mark.parametrize("extra", ["plain", "rotary", "qk_norm", "head_dim"])
@in_both_modes
def test_second_derivatives_of_the_layer_agree_with_finite_differences(
    extra: str, training: bool
) -> None:
    layer = attention(4, 4, heads=2, **EXTRAS[extra]).train(training)
    x = normal(1, 3, 4).requires_grad_()
    inputs = (x, *layer.parameters())
    assert torch.autograd.gradgradcheck(lambda x, *_: layer(x), inputs)


@pytest.mark.parametrize("length", [1, 5])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("kv_heads", [2, 4])
def test_second_derivatives_are_right_or_refused(length: int, causal: bool, kv_heads: int) -> None:
    """A gradient penalty, with torch's own kernels too: its gradient never lacks terms."""
    layer = attention(num_kv_heads=kv_heads, causal=causal)
    parameters = list(layer.parameters())

    def penalty(forward: Callable[[Tensor], Tensor]) -> list[Tensor]:
        x = normal(2, length, D_IN).requires_grad_()
        (slope,) = torch.autograd.grad(forward(x).square().sum(), x, create_graph=True)
        return list(torch.autograd.grad(slope.square().sum(), parameters, allow_unused=True))

    expected = penalty(lambda x: explicit(layer, x))
    try:
        found = penalty(layer)
    except RuntimeError as error:
        assert "not implemented" in str(error)
    else:
        for own, theirs in zip(found, expected, strict=True):
            assert own is not None or theirs is None or not theirs.any()
            if own is not None:
                torch.testing.assert_close(own, torch.zeros_like(own) if theirs is None else theirs)


@both_architectures
def test_second_derivatives_of_the_loss_are_those_of_the_logits(architecture: str) -> None:
    """`loss` and `forward` compute the same cross-entropy in different ways."""
    model = gpt(architecture)
    ids, targets = texts(model)
    parameters = list(model.parameters())

    def penalty(loss: Tensor) -> list[Tensor]:
        slopes = torch.autograd.grad(loss, parameters, create_graph=True)
        total = torch.stack([slope.square().sum() for slope in slopes]).sum()
        return list(torch.autograd.grad(total, parameters))

    found = penalty(model.loss(ids, targets))
    expected = penalty(F.cross_entropy(model(ids).flatten(0, 1), targets.flatten()))
    torch.testing.assert_close(found, expected)


# Compiled and exported


@both_architectures
@in_both_modes
def test_the_model_compiles_into_one_graph(architecture: str, training: bool) -> None:
    torch.compiler.reset()
    model = gpt(architecture, num_layers=1).train(training)
    ids, targets = texts(model)
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(ids), model(ids))
    loss = torch.compile(model.loss, fullgraph=True, backend="eager")
    torch.testing.assert_close(loss(ids, targets), model.loss(ids, targets))


def test_dropout_compiles_for_any_shape() -> None:
    torch.compiler.reset()
    compiled = torch.compile(Dropout(0.5), fullgraph=True, dynamic=True, backend="aot_eager")
    for shape in ((3, 50), (4, 70)):
        assert set(compiled(torch.ones(shape)).unique().tolist()) == {0.0, 2.0}


@both_architectures
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_the_model_can_be_exported_for_any_number_of_texts(
    architecture: str, dropout: float
) -> None:
    model = gpt(architecture, dropout=dropout, num_layers=1).train(dropout > 0)
    shapes = ({0: torch.export.Dim("b", min=1, max=64), 1: torch.export.Dim("T", min=2, max=6)},)
    exported = torch.export.export(model, (texts(model)[0],), dynamic_shapes=shapes).module()
    ids = texts(model, 5)[0][:, :4]
    if not dropout:
        torch.testing.assert_close(exported(ids), model(ids))
    assert exported(ids).shape == (5, 4, 11)


def test_a_model_made_of_tensors_without_values_leaves_nothing_to_the_next() -> None:
    config = GPTConfig(11, context_length=7, emb_dim=8, num_layers=1, num_heads=2)
    ids = torch.zeros(1, 7, dtype=torch.int64)
    for _ in range(2):
        with FakeTensorMode():
            assert GPT(config)(torch.zeros(1, 7, dtype=torch.int64)).shape == (1, 7, 11)
        GPT(config).loss(ids, ids).backward()


# Copies


@both_architectures
@in_both_modes
def test_a_copy_is_the_same_model_and_trains_by_itself(architecture: str, training: bool) -> None:
    model = gpt(architecture).train(training)
    ids, targets = texts(model)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert twin.training == training
        assert (twin.head.weight is twin.token_embedding.weight) == model.config.tie_embeddings
        assert torch.equal(twin(ids), model(ids))
        twin.loss(ids, targets).backward()
        assert all(p.grad is None for p in model.parameters())


# Unusual inputs


def test_no_texts_one_token_and_strided_inputs_give_what_the_explicit_path_gives() -> None:
    layer = attention(rotary_base=100.0, qk_norm=True)
    wide = normal(CONTEXT, 2 * D_IN, 3).permute(2, 0, 1)[:, :, ::2]  # (3, CONTEXT, D_IN)
    assert not wide.is_contiguous()
    for x in (wide, wide[:0], wide[:, :1], wide[:1].expand(3, -1, -1)):
        torch.testing.assert_close(layer(x), explicit(layer, x))
        with torch.inference_mode():
            torch.testing.assert_close(layer(x.clone()), explicit(layer, x.clone()))


def test_gradients_of_some_inputs_alone_are_those_of_all() -> None:
    layer, x = attention(), normal(2, 5, D_IN)
    expected = torch.autograd.grad(explicit(layer, x).sum(), layer.W_value.weight)
    for name, parameter in layer.named_parameters():
        parameter.requires_grad_(name == "W_value.weight")
    torch.testing.assert_close(torch.autograd.grad(layer(x).sum(), layer.W_value.weight), expected)


def test_a_backward_pass_inside_autocast_has_the_gradients_of_one_outside() -> None:
    model = gpt("gpt2").float()
    ids, targets = texts(model)
    gradients = []
    for is_inside in (True, False):
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
            loss = model.loss(ids, targets)
            if is_inside:
                loss.backward()
        if not is_inside:
            loss.backward()
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    torch.testing.assert_close(*gradients, rtol=0.05, atol=0.02 * gradients[1].abs().max().item())
