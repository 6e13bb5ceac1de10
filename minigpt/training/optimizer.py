"""The optimizers of a model: AdamW, or Muon for its matrices and AdamW for the rest."""

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..config import TrainConfig
from ..model import GPT
from . import workers

# Coefficients a, b, c of three polynomials a x + b x^3 + c x^5. Applied in turn they bring every x
# from 0.01 to 1 as near to 1 as three such can, between 0.73 and 1.27: each is the best for what
# the one before it leaves ("The Polar Express", Amsel et al. 2025, section 3).
_POLYNOMIALS = ((8.0934, -23.6204, 17.4462), (3.6366, -2.7219, 0.5365), (2.6613, -1.9772, 0.4526))
_MEMORY = 0.1  # of the steps so far, for the average of the weights
_AT_ONCE = 1 << 19  # components of the matrices side by side: what is made of them fits the cache
_MARGIN = 1.02  # rounding must not push a singular value above 1, from where it would grow


def make_optimizers(
    model: GPT, config: TrainConfig, precision: torch.dtype = torch.float32
) -> list[torch.optim.Optimizer]:
    """AdamW ("Decoupled Weight Decay Regularization", Loshchilov and Hutter 2019) for all
    parameters, or Muon for the blocks' matrices and AdamW for the rest.

    `precision` is that of Muon's matrix products, which workers share. Both keep an average of the
    weights, see :func:`averaged`.
    """
    groups = model.parameter_groups(config.weight_decay)
    optimizers: list[torch.optim.Optimizer] = []
    if config.optimizer == "muon":
        matrices = groups.pop(0)
        rate, decay = config.learning_rate, config.weight_decay
        optimizers.append(Muon(matrices["params"], rate, config.momentum, decay, precision))
    betas = (config.beta1, config.beta2)
    optimizers.append(torch.optim.AdamW(groups, lr=config.learning_rate, betas=betas, fused=True))
    for optimizer in optimizers:
        optimizer.register_step_post_hook(_average)
    return optimizers


def prepare_step(optimizers: Sequence[torch.optim.Optimizer], step: int, rate: float) -> None:
    """Set the learning rate of a step, the first of which is 0, and its part in the average."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"], group["average_rate"] = rate, 1 / max(_MEMORY * step, 1.0)


def _average(optimizer: torch.optim.Optimizer, *_: Any) -> None:
    """Move the averages a little towards the weights."""
    for group in optimizer.param_groups:
        weights = [p for p in group["params"] if p in optimizer.state]
        for p in weights:
            optimizer.state[p].setdefault("average", p.detach().clone())
        averages = [optimizer.state[p]["average"] for p in weights]
        rate = group.get("average_rate", 1.0)  # unset where speed is measured
        torch._foreach_lerp_(averages, [p.detach() for p in weights], rate)


@contextlib.contextmanager
def averaged(optimizers: Sequence[torch.optim.Optimizer]) -> Iterator[None]:
    """Within, each weight is its average over about the last tenth of the steps so far.

    What chance has added to a weight cancels out: the average predicts better than the weights
    that it is made of ("Analyzing and Improving the Training Dynamics of Diffusion Models", Karras
    et al. 2024, section 3, average over a share of the training).
    """
    pairs = [(p, state["average"]) for o in optimizers for p, state in o.state.items()]

    @torch.no_grad()
    def swap() -> None:
        for weight, average in pairs:
            kept = weight.clone()
            weight.copy_(average)
            average.copy_(kept)

    swap()
    try:
        yield
    finally:
        swap()


class Muon(torch.optim.Optimizer):
    """Momentum whose update of each matrix is orthogonalized (Jordan et al. 2024).

    The update is scaled by ``0.2 sqrt(max(rows, columns))``, so that its components are as large
    as AdamW's and both can share a learning rate ("Muon is Scalable for LLM Training", Liu et al.
    2025, section 2.2). torch.optim.Muon does the same with five steps, one matrix at a time.

    `dtype` is that of the products.
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
            matrices.sort(key=lambda p: tuple(p.shape))
            n = min(workers.count(), len(matrices))
            workers.compute(partial(self._update, group), [matrices[k::n] for k in range(n)])

    @torch.no_grad()
    def _update(self, group: dict[str, Any], matrices: list[Tensor]) -> None:
        gradients = [p.grad for p in matrices if p.grad is not None]
        averages = [self.state[p]["momentum"] for p in matrices]
        torch._foreach_lerp_(averages, gradients, 1 - group["momentum"])
        updates = torch._foreach_lerp(gradients, averages, group["momentum"])  # Nesterov
        torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
        by_shape: dict[torch.Size, list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for matrix, update in zip(matrices, updates, strict=True):
            by_shape[matrix.shape].append((matrix, update))
        for shape, same in by_shape.items():
            scale, count = 0.2 * max(shape) ** 0.5, max(_AT_ONCE // shape.numel(), 4)
            for i in range(0, len(same), count):
                chosen, theirs = zip(*same[i : i + count], strict=True)
                stacked = torch.stack(theirs)  # (n, rows, columns)
                steps = orthogonalized(stacked, self._dtype).to(stacked.dtype)
                torch._foreach_add_(chosen, steps.unbind(), alpha=-group["lr"] * scale)


def orthogonalized(updates: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The nearest matrices with orthogonal rows (or columns), roughly: ``U Vᵀ`` of ``U S Vᵀ``.

    Steps ``X <- a X + b (X Xᵀ) X + c (X Xᵀ)² X`` apply polynomials to the singular values, which
    brings them near 1 ("Muon: An optimizer for hidden layers in neural networks", Jordan et al.
    2024). `updates` are matrices side by side, ``(n, rows, columns)``, since one large product is
    faster than n small ones; so is the result, in `dtype`.

    Of wide matrices, steps are taken by the factor P of ``P X``, from ``X Xᵀ`` alone: its products
    are smaller. That needs more digits than bfloat16 has.
    """
    x = updates.to(dtype)
    is_tall = x.shape[-2] > x.shape[-1]
    if is_tall:
        x = x.mT  # the shorter side first makes the products below smaller
    x = x / (_MARGIN * x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    gram, whole_x, small = x @ x.mT, x, None  # (n, rows, rows)
    if x.shape[-1] > 1.5 * x.shape[-2] and dtype == torch.float32:
        small, x = gram, torch.eye(x.shape[-2], device=x.device).expand_as(gram)
    for i, (a, b, c) in enumerate(_POLYNOMIALS):
        if i > 0:
            gram = x @ x.mT if small is None else x @ small @ x.mT
        mixed = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        x = torch.baddbmm(x, mixed, x, beta=a)
    x = x if small is None else x @ whole_x
    return x.mT if is_tall else x
