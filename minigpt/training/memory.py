"""The memory of a training step is kept for the next one, where the C library can be told so."""

import ctypes
import sys

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # glibc's malloc.h
_LARGEST = 32 << 20  # bytes that glibc is willing to keep for a later tensor


def keep_freed_memory() -> None:
    """Keep the memory of freed tensors in this process.

    glibc returns it to the system at the end of each step; then every page of the next step is
    fetched and filled with zeros again.
    """
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "mallopt"):
        library.mallopt(_MMAP_THRESHOLD, _LARGEST)
        library.mallopt(_TRIM_THRESHOLD, 2**31 - 1)
        library.mallopt(_TOP_PAD, 2 * _LARGEST)  # threads' memory comes in pieces this large
