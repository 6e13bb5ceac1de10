"""The optimizer of a model: AdamW, or Muon for its matrices and AdamW for the rest."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from ..config import TrainConfig
from ..model import GPT
from .processes import ALONE, Processes

# Coefficients a, b, c of three polynomials a x + b x^3 + c x^5. One after the other they bring all
# of 0.01 to 1 as near to 1 as three such can, to between 0.73 and 1.27: each is the best for what
# the one before it leaves ("The Polar Express", Amsel et al. 2025, section 3).
_POLYNOMIALS = (
    (8.0934, -23.6204, 17.4462),
    (3.6366, -2.7219, 0.5365),
    (2.6613, -1.9772, 0.4526),
)
_MARGIN = 1.02  # rounding must not push a singular value above 1, from where it would grow


def orthogonalized(updates: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The nearest matrices with orthogonal rows (or columns), roughly: ``U Vᵀ`` of ``U S Vᵀ``.

    Steps ``X <- a X + b (X Xᵀ) X + c (X Xᵀ)² X`` apply polynomials to the singular values, which
    brings them near 1 ("Muon: An optimizer for hidden layers in neural networks", Jordan et al.
    2024).

    Args:
        updates: ``(n, rows, columns)``, matrices side by side, since one large product is faster
            than n small ones.
        dtype: of the products.

    Returns:
        ``(n, rows, columns)`` in `dtype`.
    """
    x = updates.to(dtype)
    is_tall = x.shape[-2] > x.shape[-1]
    if is_tall:
        x = x.mT  # the shorter side first makes the products below smaller
    x = x / (_MARGIN * x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for a, b, c in _POLYNOMIALS:
        gram = x @ x.mT  # (n, rows, rows)
        mixed = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        x = torch.baddbmm(x, mixed, x, beta=a)
    return x.mT if is_tall else x


class Muon(torch.optim.Optimizer):
    """Momentum whose update of each matrix is orthogonalized (Jordan et al. 2024).

    The update is scaled by ``0.2 sqrt(max(rows, columns))``, so that its components are as large
    as AdamW's and both can share a learning rate ("Muon is Scalable for LLM Training", Liu et al.
    2025, section 2.2). torch.optim.Muon does the same with five steps, one matrix at a time.

    Of several processes each remembers its rows of the gradients, sharded model or not, and
    orthogonalizes its share of the matrices.

    Args:
        params: matrices ``(rows, columns)``.
        lr: learning rate.
        momentum: how long gradients are remembered.
        weight_decay: decoupled.
        dtype: of the products.
        processes: that train together.
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float,
        momentum: float,
        weight_decay: float,
        dtype: torch.dtype = torch.float32,
        processes: Processes = ALONE,
    ):
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        self._dtype, self._processes = dtype, processes

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient."""
        for group in self.param_groups:
            matrices = [p for p in group["params"] if p.grad is not None]
            gradients = [self._processes.by_rows(p.grad) for p in matrices]
            for p in matrices:
                if not self.state[p]:
                    self.state[p] = self.blank_state(p)
            averages = [self.state[p]["momentum"] for p in matrices]
            torch._foreach_lerp_(averages, gradients, 1 - group["momentum"])
            updates = list(torch._foreach_lerp(gradients, averages, group["momentum"]))  # Nesterov
            torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
            self._apply(matrices, updates, group["lr"])

    def blank_state(self, parameter: Tensor) -> dict[str, Tensor]:
        """What is remembered of a parameter before the first step."""
        return {"momentum": self._processes.by_rows(torch.zeros_like(parameter))}

    def _apply(self, matrices: list[Tensor], updates: list[Tensor], rate: float) -> None:
        by_shape: dict[torch.Size, list[int]] = defaultdict(list)
        for i, matrix in enumerate(matrices):
            by_shape[matrix.shape].append(i)
        for shape, same in by_shape.items():
            stacked = torch.stack([updates[i] for i in same])  # (n, rows, columns)
            steps = self._processes.each_some(self._orthogonalized, stacked, matrices[same[0]])
            scale = 0.2 * max(shape) ** 0.5
            torch._foreach_add_(
                [matrices[i] for i in same], list(steps.unbind()), alpha=-rate * scale
            )

    def _orthogonalized(self, updates: Tensor) -> Tensor:
        return orthogonalized(updates, self._dtype).to(updates.dtype)


class Optimizers:
    """One optimizer or several, used as one.

    Args:
        parts: each with parameters of its own.
    """

    def __init__(self, *parts: torch.optim.Optimizer):
        self._parts = parts

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The groups of all parts."""
        return [group for part in self._parts for group in part.param_groups]

    def step(self) -> None:
        """Update all parameters."""
        for part in self._parts:
            part.step()

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for part in self._parts:
            part.zero_grad()

    def state(self) -> dict[str, Tensor]:
        """What is remembered of gradients, each tensor under a name: "0.3.momentum", ..."""
        return {
            f"{k}.{i}.{name}": tensor
            for k, part in enumerate(self._parts)
            for i, values in part.state_dict()["state"].items()
            for name, tensor in values.items()
        }

    def blank_state(self) -> Iterator[tuple[str, Tensor]]:
        """What :meth:`state` holds after a step, in shape, type and place; in value, nothing."""
        for k, part in enumerate(self._parts):
            for i, parameter in enumerate(_parameters(part)):
                for name, tensor in _blank_state(part, parameter).items():
                    yield f"{k}.{i}.{name}", tensor

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Take over what :meth:`state` gave, or nothing."""
        for k, part in enumerate(self._parts):
            state: dict[int, dict[str, Tensor]] = defaultdict(dict)
            for key, tensor in tensors.items():
                number, i, name = key.split(".")
                if int(number) == k:
                    state[int(i)][name] = tensor
            part.load_state_dict({**part.state_dict(), "state": dict(state)})


def _parameters(part: torch.optim.Optimizer) -> list[Tensor]:
    return [parameter for group in part.param_groups for parameter in group["params"]]


def _blank_state(part: torch.optim.Optimizer, parameter: Tensor) -> dict[str, Tensor]:
    if isinstance(part, Muon):
        return part.blank_state(parameter)
    averages = {name: torch.zeros_like(parameter) for name in ("exp_avg", "exp_avg_sq")}
    return {"step": torch.tensor(0.0), **averages}


def make_optimizer(
    model: GPT,
    config: TrainConfig,
    precision: torch.dtype = torch.float32,
    processes: Processes = ALONE,
) -> Optimizers:
    """AdamW ("Decoupled Weight Decay Regularization", Loshchilov and Hutter 2019) for all
    parameters, or Muon for the blocks' matrices and AdamW for the rest.

    Args:
        model: whose parameters are optimized.
        config: which, learning rate, decay and memory.
        precision: of Muon's matrix products.
        processes: that train together.
    """
    matrices, others = model.parameter_groups(config.weight_decay)
    parts: list[torch.optim.Optimizer] = []
    groups = [matrices, others]
    if config.optimizer == "muon":
        groups = [others]
        rate, decay = config.learning_rate, config.weight_decay
        parts.append(Muon(matrices["params"], rate, config.momentum, decay, precision, processes))
    betas = (config.beta1, config.beta2)
    parts.append(torch.optim.AdamW(groups, lr=config.learning_rate, betas=betas, fused=True))
    return Optimizers(*parts)
