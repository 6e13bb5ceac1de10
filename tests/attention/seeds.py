"""What the seed notebooks share: the six-word input, the tables that more than one of them prints,
and the comparison of a result with a printed table, to the digits it was printed with.
"""

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


# One sentence of six words, each embedded in three dimensions (notebooks 000 and 002).
JOURNEY = torch.tensor(
    [
        [0.43, 0.15, 0.89],  # Your
        [0.55, 0.87, 0.66],  # journey
        [0.57, 0.85, 0.64],  # starts
        [0.22, 0.58, 0.33],  # with
        [0.77, 0.25, 0.10],  # one
        [0.05, 0.80, 0.55],  # step
    ]
)

# Dot products of all pairs of words, their softmax, and the context vectors (000 In [16] to [21],
# 002 section 3.3.2).
JOURNEY_SCORES = table("""
    0.9995 0.9544 0.9422 0.4753 0.4576 0.6310
    0.9544 1.4950 1.4754 0.8434 0.7070 1.0865
    0.9422 1.4754 1.4570 0.8296 0.7154 1.0605
    0.4753 0.8434 0.8296 0.4937 0.3474 0.6565
    0.4576 0.7070 0.7154 0.3474 0.6654 0.2935
    0.6310 1.0865 1.0605 0.6565 0.2935 0.9450
""")
JOURNEY_WEIGHTS = table("""
    0.2098 0.2006 0.1981 0.1242 0.1220 0.1452
    0.1385 0.2379 0.2333 0.1240 0.1082 0.1581
    0.1390 0.2369 0.2326 0.1242 0.1108 0.1565
    0.1435 0.2074 0.2046 0.1462 0.1263 0.1720
    0.1526 0.1958 0.1975 0.1367 0.1879 0.1295
    0.1385 0.2184 0.2128 0.1420 0.0988 0.1896
""")
JOURNEY_CONTEXTS = table("""
    0.4421 0.5931 0.5790
    0.4419 0.6515 0.5683
    0.4431 0.6496 0.5671
    0.4304 0.6298 0.5510
    0.4671 0.5910 0.5266
    0.4177 0.6503 0.5645
""")

# SelfAttentionV1(3, 2) made after torch.manual_seed(123) (000 In [38], 002 section 3.4.2).
THREE_MATRIX_CONTEXTS = table("""
    0.2996 0.8053
    0.3061 0.8210
    0.3058 0.8203
    0.2948 0.7939
    0.2927 0.7891
    0.2990 0.8040
""")
