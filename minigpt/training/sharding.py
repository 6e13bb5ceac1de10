"""A model, and tensors, of which each process holds a part: PyTorch's FSDP2 and DTensor, from
outside, so that the model knows nothing of it.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

from ..model import GPT


def shard(model: GPT, mesh: DeviceMesh) -> None:
    """Leave each process its rows of every parameter, in place ("PyTorch FSDP: Experiences on
    Scaling Fully Sharded Data Parallel", Zhao et al. 2023).

    A block's parameters are gathered just before it computes, and let go of after; so are they
    once more on the way back. Embedding, last norm and head stay from forward to backward.
    """
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor, gathered from all processes if it is sharded."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def like(tensor: Tensor, other: Tensor) -> Tensor:
    """A tensor that all processes have, sharded if and as `other` is."""
    if not isinstance(other, DTensor):
        return tensor
    mesh = other.device_mesh
    moved = tensor.to(mesh.device_type)
    return distribute_tensor(moved, mesh, other.placements, src_data_rank=None)


def by_rows(tensor: Tensor, mesh: DeviceMesh) -> Tensor:
    """A tensor that all processes have, sharded by rows; one that is sharded as it is."""
    if isinstance(tensor, DTensor):
        return tensor
    return distribute_tensor(tensor, mesh, [Shard(0)], src_data_rank=None)


def each_some(function: Callable[[Tensor], Tensor], matrices: Tensor, like: Tensor) -> Tensor:
    """A function of matrices, each process computing some of them.

    Args:
        function: maps ``(m, rows, columns)`` to the same shape, each matrix by itself.
        matrices: ``(n, rows, columns)``, sharded by rows. They are sent around so that each
            process has about n / processes of them whole, and back.
        like: a matrix ``(rows, columns)``: the result is sharded by rows if it is, else whole.
    """
    assert isinstance(matrices, DTensor)
    mine = matrices.redistribute(placements=[Shard(0)])
    done = DTensor.from_local(
        function(mine.to_local()),  # (m, rows, columns)
        matrices.device_mesh,
        [Shard(0)],
        run_check=False,
        shape=matrices.shape,
        stride=matrices.stride(),
    )
    if isinstance(like, DTensor):
        return done.redistribute(placements=[Shard(1)])
    return done.redistribute(placements=[Replicate()]).to_local()


def gather_into(copy: GPT | None, model: GPT) -> None:
    """Copy all parameters of a sharded model into a whole one, on the process that has it."""
    copies = dict(copy.named_parameters()) if copy is not None else {}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            gathered = whole(parameter)
            if copies:
                copies[name].copy_(gathered)
