"""Printed tables of the seed notebooks, and the comparison of a result with one, to its digits."""

import torch
from torch import Tensor


def table(text: str, *shape: int) -> Tensor:
    """The numbers of a printed table, one row a line unless a shape is given.

    They are read in float64, so that none of their digits is lost.
    """
    numbers = torch.tensor([float(number) for number in text.split()], dtype=torch.float64)
    return numbers.reshape(shape or (len(text.strip().splitlines()), -1))


def assert_table(
    actual: Tensor, expected: Tensor | float | list[float] | list[list[float]], atol: float = 5.1e-5
) -> None:
    """The same shape, and every number the printed one; the default is for four printed digits."""
    expected = torch.as_tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(actual.detach().double().cpu(), expected, atol=atol, rtol=0)
