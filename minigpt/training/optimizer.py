"""The optimizers of a model: AdamW, or Muon for its matrices and AdamW for the rest; or others."""

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor, nn

from .. import UserError
from ..config import TrainConfig
from ..model import GPT
from ..system.networks import unwrapped
from . import workers
from .precision import dtype_of

OptimizersOf = Callable[[nn.Module], Sequence[torch.optim.Optimizer]]

# Coefficients a, b, c of three polynomials a x + b x^3 + c x^5. Applied in turn they bring every x
# from 0.01 to 1 as near to 1 as three such can, between 0.73 and 1.27: each is the best for what
# the one before it leaves ("The Polar Express", Amsel et al. 2025, section 3).
_POLYNOMIALS = ((8.0934, -23.6204, 17.4462), (3.6366, -2.7219, 0.5365), (2.6613, -1.9772, 0.4526))
_AT_ONCE = 1 << 19  # components of the matrices side by side: their products fit the cache
PEAK = "peak_lr"  # of a group: its highest rate, of which the schedule makes "lr" a share
_MARGIN = 1.02  # rounding must not push a singular value above 1, from where it would grow


def make_optimizers(
    model: nn.Module, config: TrainConfig, precision: torch.dtype = torch.float32
) -> list[torch.optim.Optimizer]:
    """AdamW ("Decoupled Weight Decay Regularization", Loshchilov and Hutter 2019) for all
    parameters that are trained, or Muon for the matrices of the blocks and AdamW for the rest.

    A network that is no `GPT` has no blocks: AdamW trains all of it. Muon computes its matrix
    products, which workers share, in `precision`.
    """
    matrices, *others = _groups(model, config.weight_decay)
    rate = config.learning_rate
    optimizers: list[torch.optim.Optimizer] = []

    if config.optimizer == "muon" and matrices["params"]:
        muon = Muon(
            matrices["params"],
            lr=rate,
            momentum=config.momentum,
            weight_decay=config.weight_decay,
            dtype=precision,
        )
        optimizers.append(muon)
    else:
        others.insert(0, matrices)

    if any(group["params"] for group in others):
        betas = (config.beta1, config.beta2)
        optimizers.append(torch.optim.AdamW(others, lr=rate, betas=betas, fused=True))
    return optimizers


def _groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """The parameters that are trained: matrices of blocks, tables, and those without decay."""
    gpt = unwrapped(model)
    if isinstance(gpt, GPT):
        groups = gpt.parameter_groups(weight_decay)
    else:
        parameters = list(model.parameters())
        tables = [p for p in parameters if p.dim() >= 2]
        others = [p for p in parameters if p.dim() < 2]
        groups = [
            {"params": [], "weight_decay": weight_decay},
            {"params": tables, "weight_decay": weight_decay},
            {"params": others, "weight_decay": 0.0},
        ]
    for group in groups:
        group["params"] = [p for p in group["params"] if p.requires_grad]
    return groups


def chosen_optimizers(
    given: Sequence[torch.optim.Optimizer] | OptimizersOf | None,
    model: nn.Module,
    config: TrainConfig,
) -> list[torch.optim.Optimizer]:
    """The optimizers that were given, or those of a resolved config. The rate that each group has
    now is its highest."""
    if given is None:
        optimizers = make_optimizers(model, config, dtype_of(config))
    else:
        made = given(model) if callable(given) else given
        if isinstance(made, torch.optim.Optimizer):
            raise UserError("optimizers is a list: put the optimizer in brackets")
        if not isinstance(made, Iterable):
            raise UserError(f"optimizers must be a list of them, got {type(made).__name__}")
        optimizers = list(made)
        _check(optimizers, model)

    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group[PEAK] = group["lr"]
    return optimizers


def _check(optimizers: Sequence[Any], model: nn.Module) -> None:
    """UserError if optimizers cannot train a model."""
    if not optimizers:
        raise UserError("optimizers is empty; leave it out for those of the config")

    known = set(model.parameters())
    for optimizer in optimizers:
        name = type(optimizer).__name__
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise UserError(f"{name} is not a torch.optim.Optimizer")
        closure = inspect.signature(optimizer.step).parameters.get("closure")
        if closure is not None and closure.default is inspect.Parameter.empty:
            raise UserError(f"{name} computes the loss several times in a step; take another one")
        if not all(p in known for group in optimizer.param_groups for p in group["params"]):
            raise UserError(f"{name} has a parameter that does not belong to the model")


class Muon(torch.optim.Optimizer):
    """Momentum whose update of each matrix is orthogonalized (Jordan et al. 2024).

    The update is scaled by ``0.2 sqrt(max(rows, columns))``, so that its components are as large
    as AdamW's and both can share a learning rate ("Muon is Scalable for LLM Training", Liu et al.
    2025, section 2.2). torch.optim.Muon does the same with five steps, one matrix at a time.

    `dtype` is the type of the matrix products. A group's "lr" may be a tensor, which a CUDA graph
    reads anew in each step.
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float,
        momentum: float,
        weight_decay: float,
        dtype: torch.dtype = torch.float32,
    ):
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        self._dtype = dtype

    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient."""
        for group in self.param_groups:
            matrices = [p for p in group["params"] if p.grad is not None]
            for p in matrices:
                if not self.state[p]:
                    self.state[p]["momentum"] = torch.zeros_like(p)

            matrices.sort(key=attrgetter("shape"))  # each worker gets its share of every shape
            n = min(workers.count(), len(matrices))
            shares = [matrices[k::n] for k in range(n)]
            workers.compute(partial(self._update, group), shares)

    @torch.no_grad()
    def _update(self, group: dict[str, Any], matrices: list[Tensor]) -> None:
        gradients = [p.grad for p in matrices if p.grad is not None]
        averages = [self.state[p]["momentum"] for p in matrices]
        torch._foreach_lerp_(averages, gradients, 1 - group["momentum"])
        updates = torch._foreach_lerp(gradients, averages, group["momentum"])  # Nesterov
        rate = group["lr"]
        torch._foreach_mul_(matrices, 1 - rate * group["weight_decay"])

        by_shape: dict[torch.Size, list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for matrix, update in zip(matrices, updates, strict=True):
            by_shape[matrix.shape].append((matrix, update))

        for shape, same in by_shape.items():
            scale = 0.2 * max(shape) ** 0.5
            count = max(_AT_ONCE // shape.numel(), 4)  # of matrices side by side
            if same[0][0].is_cuda:  # for which starting operations is what takes time
                count = len(same)
            for i in range(0, len(same), count):
                chosen, theirs = zip(*same[i : i + count], strict=True)
                stacked = torch.stack(theirs)  # (n, rows, columns)
                steps = orthogonalized(stacked, self._dtype).to(stacked.dtype)
                if isinstance(rate, Tensor):  # `alpha` would have to be known here
                    torch._foreach_add_(chosen, (steps * (-rate * scale)).unbind())
                else:
                    torch._foreach_add_(chosen, steps.unbind(), alpha=-rate * scale)


def orthogonalized(updates: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The nearest matrices with orthogonal rows (or columns), roughly: ``U Vᵀ`` of ``U S Vᵀ``.

    Steps ``X <- a X + b (X Xᵀ) X + c (X Xᵀ)² X`` apply polynomials to the singular values, which
    brings them near 1 ("Muon: An optimizer for hidden layers in neural networks", Jordan et al.
    2024). `updates` and the result, which is in `dtype`, are matrices side by side,
    ``(n, rows, columns)``, since one large product is faster than n small ones.
    """
    # Divided before the conversion: float16 has no numbers as small as some gradients.
    x = (updates / (_MARGIN * updates.norm(dim=(-2, -1), keepdim=True) + 1e-7)).to(dtype)
    is_tall = x.shape[-2] > x.shape[-1]
    if is_tall:
        x = x.mT  # the shorter side first makes the products below smaller

    is_wide = x.shape[-1] > 1.5 * x.shape[-2]
    x = _steps_of_wide(x) if is_wide and dtype == torch.float32 else _steps(x)
    return x.mT if is_tall else x


def _steps(x: Tensor) -> Tensor:
    """Apply the polynomials to the singular values of X ``(n, rows, columns)``."""
    for a, b, c in _POLYNOMIALS:
        gram = x @ x.mT  # (n, rows, rows)
        mixed = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        x = torch.baddbmm(x, mixed, x, beta=a)
    return x


def _steps_of_wide(x: Tensor) -> Tensor:
    """The result of :func:`_steps` for wide matrices. It is ``P X``, and the factor P is computed
    from ``X Xᵀ`` alone, by smaller products. That needs more digits than bfloat16 has."""
    gram_of_x = x @ x.mT  # (n, rows, rows)
    gram = gram_of_x  # P X (P X)ᵀ
    factor = torch.eye(x.shape[-2], device=x.device).expand_as(gram)  # (n, rows, rows)
    for i, (a, b, c) in enumerate(_POLYNOMIALS):
        if i > 0:
            gram = factor @ gram_of_x @ factor.mT
        mixed = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        factor = torch.baddbmm(factor, mixed, factor, beta=a)
    return factor @ x
