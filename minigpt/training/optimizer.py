"""The optimizer of a model: AdamW, or Muon for its matrices and AdamW for the rest."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from ..config import TrainConfig
from ..model import GPT

# Coefficients of the fifth-order iteration that brings singular values near 1 (Jordan et al. 2024).
_A, _B, _C = 3.4445, -4.7750, 2.0315
_STEPS = 5


def orthogonalized(updates: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The nearest matrices with orthogonal rows (or columns), roughly: ``U Vᵀ`` of ``U S Vᵀ``.

    Five Newton-Schulz steps ``X <- a X + b (X Xᵀ) X + c (X Xᵀ)² X`` bring every singular value
    near 1 ("Muon: An optimizer for hidden layers in neural networks", Jordan et al. 2024).

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
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(_STEPS):
        gram = x @ x.mT  # (n, rows, rows)
        mixed = torch.baddbmm(gram, gram, gram, beta=_B, alpha=_C)
        x = torch.baddbmm(x, mixed, x, beta=_A)
    return x.mT if is_tall else x


class Muon(torch.optim.Optimizer):
    """Momentum whose update of each matrix is orthogonalized (Jordan et al. 2024).

    The update is scaled by ``0.2 sqrt(max(rows, columns))``, so that its components are as large
    as AdamW's and both can share a learning rate ("Muon is Scalable for LLM Training", Liu et al.
    2025, section 2.2). torch.optim.Muon does the same one matrix at a time.

    Args:
        params: matrices ``(rows, columns)``.
        lr: learning rate.
        momentum: how long gradients are remembered.
        weight_decay: decoupled.
        dtype: of the products.
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

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient."""
        for group in self.param_groups:
            matrices = [p for p in group["params"] if p.grad is not None]
            gradients = [p.grad for p in matrices]
            for p in matrices:
                if not self.state[p]:
                    self.state[p]["momentum"] = torch.zeros_like(p)
            averages = [self.state[p]["momentum"] for p in matrices]
            torch._foreach_lerp_(averages, gradients, 1 - group["momentum"])
            updates = list(torch._foreach_lerp(gradients, averages, group["momentum"]))  # Nesterov
            torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
            self._apply(matrices, updates, group["lr"])

    def _apply(self, matrices: list[Tensor], updates: list[Tensor], rate: float) -> None:
        by_shape: dict[torch.Size, list[int]] = defaultdict(list)
        for i, matrix in enumerate(matrices):
            by_shape[matrix.shape].append(i)
        for shape, same in by_shape.items():
            stacked = torch.stack([updates[i] for i in same])  # (n, rows, columns)
            steps = orthogonalized(stacked, self._dtype).to(stacked.dtype)
            scale = 0.2 * max(shape) ** 0.5
            torch._foreach_add_(
                [matrices[i] for i in same], list(steps.unbind()), alpha=-rate * scale
            )


# What each keeps of a parameter's gradients.
_STATE = {Muon: ("momentum",), torch.optim.AdamW: ("step", "exp_avg", "exp_avg_sq")}


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

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Take over what :meth:`state` gave.

        Raises:
            ValueError: if a tensor is missing or has another shape than its parameter.
        """
        for k, part in enumerate(self._parts):
            parameters = [p for group in part.param_groups for p in group["params"]]
            state: dict[int, dict[str, Tensor]] = {}
            for i, parameter in enumerate(parameters if tensors else []):
                state[i] = {name: tensors[f"{k}.{i}.{name}"] for name in _STATE[type(part)]}
                if any(t.dim() and t.shape != parameter.shape for t in state[i].values()):
                    raise ValueError(f"the optimizer's state {k}.{i} has another shape")
            part.load_state_dict({**part.state_dict(), "state": state})


def make_optimizer(
    model: GPT, config: TrainConfig, precision: torch.dtype = torch.float32
) -> Optimizers:
    """AdamW ("Decoupled Weight Decay Regularization", Loshchilov and Hutter 2019) for all
    parameters, or Muon for the blocks' matrices and AdamW for the rest.

    Args:
        model: whose parameters are optimized.
        config: which, learning rate, decay and memory.
        precision: of Muon's matrix products.
    """
    matrices, others = model.parameter_groups(config.weight_decay)
    parts: list[torch.optim.Optimizer] = []
    groups = [matrices, others]
    if config.optimizer == "muon":
        groups = [others]
        rate, decay = config.learning_rate, config.weight_decay
        parts.append(Muon(matrices["params"], rate, config.momentum, decay, precision))
    betas = (config.beta1, config.beta2)
    parts.append(torch.optim.AdamW(groups, lr=config.learning_rate, betas=betas, fused=True))
    return Optimizers(*parts)
