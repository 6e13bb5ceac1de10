"""Matrix products as fast as memory allows: a vector times a large matrix, in two threads."""

import functools
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

_FEW = 64  # vectors: for so many, BLAS is up to twice as fast the other way round
_CHUNK = 400_000  # weights: for more, BLAS starts threads that wait for each other


def product(x: NDArray[np.float32], matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors ``(n, d_in)`` times a matrix ``(d_in, d_out)``. For one vector this takes as long as
    reading the matrix, which two threads do faster: each takes the next chunk when it is ready."""
    if 1 < len(x) <= _FEW:
        return matrix.T.dot(x.T).T
    if matrix.size <= _CHUNK or len(x) > 1:
        return x.dot(matrix)
    d_in, d_out = matrix.shape
    y = np.empty((1, d_out), np.float32)
    columns = max(_CHUNK // d_in, 1)
    starts = iter(range(0, d_out, columns))

    def multiply() -> None:
        for i in starts:
            np.matmul(x, matrix[:, i : i + columns], out=y[:, i : i + columns])

    helper = _thread(os.getpid()).submit(multiply)
    multiply()
    if not helper.cancel():  # it has begun
        helper.result()
    return y


@functools.cache
def _thread(process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1)
