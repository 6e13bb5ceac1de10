"""The fast forms equal the plain expressions that other devices use, and so do their gradients."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from minigpt import GPT, GPTConfig
from minigpt.attention import fused

from .examples import CONTEXT, D_IN, EXTRAS, cache_of, normal
from .examples import attention as layer_of

Function = Callable[..., Tensor]


def of(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    return fused.attention(queries, keys, values, causal=True)


def cross_entropy(x: Tensor, weight: Tensor) -> Tensor:
    return 3 * fused.linear_cross_entropy(x, weight, torch.tensor([0, 4, 4, 10, 3, 0, 7]))


CASES: dict[str, tuple[Function, tuple[tuple[int, ...], ...]]] = {
    "attention": (attention, ((2, 2, 7, 6),) * 3),
    "cross_entropy": (cross_entropy, ((7, 3), (11, 3))),
}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Of 3 queries, and of 4 rows of logits, so that the last part is shorter."""
    torch.manual_seed(0)
    monkeypatch.setattr(fused, "_ROWS", 3)
    monkeypatch.setattr(fused, "_LOGITS", 44)
    monkeypatch.setattr(fused, "_LEAST_ROWS", 4)
    yield


@pytest.mark.parametrize("name", CASES)
def test_gradients_agree_with_finite_differences(name: str) -> None:
    function = CASES[name][0]
    shapes = {"attention": ((1, 2, 7, 3),) * 3, "cross_entropy": ((7, 3), (11, 3))}[name]
    assert torch.autograd.gradcheck(function, [of(*shape) for shape in shapes])


@pytest.mark.parametrize("name", CASES)
def test_second_derivatives_agree_with_finite_differences(name: str) -> None:
    """Also where some inputs have no gradient, and where all of them are made of one tensor."""
    function = CASES[name][0]
    small = {"attention": ((1, 2, 4, 2),) * 3, "cross_entropy": ((7, 2), (11, 2))}[name]
    inputs = [of(*shape) for shape in small]
    assert torch.autograd.gradgradcheck(function, inputs)

    first, *others = inputs
    others = [x.detach() for x in others]
    assert torch.autograd.gradgradcheck(lambda x: function(x, *others), [first])

    def of_one(x: Tensor) -> Tensor:
        return function(*(x[: shape[0]] for shape in small))

    assert torch.autograd.gradgradcheck(of_one, [of(*max(small))])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_results_and_gradients_are_those_of_the_plain_expression(
    name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, shapes = CASES[name]
    inputs = [of(*shape).detach().to(dtype).requires_grad_() for shape in shapes]

    def all_of(inputs: list[Tensor]) -> list[Tensor]:
        result = function(*inputs)
        weights = torch.linspace(-1, 1, result.numel()).view(result.shape)
        return [result, *torch.autograd.grad((result * weights).sum(), inputs)]

    found = all_of(inputs)
    assert [x.dtype for x in found[1:]] == [dtype] * len(inputs)
    monkeypatch.setattr(fused, "_is_fast", lambda *tensors: False)
    plain = all_of([x.detach().double().requires_grad_() for x in inputs])
    tolerance = 1e-5 if dtype == torch.float32 else 3e-2
    for x, y in zip(found, plain, strict=True):
        torch.testing.assert_close(x.double(), y.double(), atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("extra", EXTRAS)
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("T", [1, 8])
def test_a_step_on_a_device_without_torchs_kernel_is_the_same(
    extra: str, causal: bool, T: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All training on an Apple GPU is such."""
    layer, x = layer_of(causal=causal, **EXTRAS[extra]), normal(2, T, D_IN).requires_grad_()

    def step() -> list[Tensor]:
        y = layer(x)
        loss = (y * torch.linspace(-1, 1, y.numel()).view(y.shape)).sum()
        return [y, *torch.autograd.grad(loss, [x, *layer.parameters()])]

    expected = step()
    monkeypatch.setattr(fused, "_EXPLICIT_ON", ("cpu",))
    torch.testing.assert_close(step(), expected)

    cache = cache_of(layer, CONTEXT)
    read = [layer(x[:, t : t + 1], cache) for t in range(T)]
    if causal:
        torch.testing.assert_close(torch.cat(read, dim=1), expected[0])


def test_a_layer_under_a_transform_of_torch_is_causal_too() -> None:
    layer, x = layer_of(), normal(2, 8, D_IN)
    rows = torch.func.vmap(lambda row: layer(row[None])[0])(x)
    torch.testing.assert_close(rows, layer(x))


@pytest.mark.long
def test_training_on_a_device_without_torchs_kernel_is_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = GPTConfig(11, context_length=8, emb_dim=8, num_layers=2, num_heads=2)
    ids = torch.arange(16).view(2, 8) % 11

    def losses() -> list[float]:
        torch.manual_seed(0)
        model = GPT(config)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        found = []
        for _ in range(5):
            loss = model.loss(ids[:, :-1], ids[:, 1:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    expected = losses()
    monkeypatch.setattr(fused, "_EXPLICIT_ON", ("cpu",))
    assert losses() == pytest.approx(expected, rel=1e-4)
    assert expected[-1] < expected[0] - 0.1


def test_a_loss_of_certain_and_of_impossible_targets_is_finite() -> None:
    """The logits are 200 apart, which no probability of float32 can tell."""
    x = torch.tensor([[200.0], [-200.0]], requires_grad=True)
    weight = torch.tensor([[1.0], [0.0]], requires_grad=True)
    loss = fused.linear_cross_entropy(x, weight, torch.tensor([0, 0]))
    loss.backward()
    assert loss == 100.0 and x.grad is not None
    assert torch.equal(x.grad, torch.tensor([[0.0], [-0.5]]))
