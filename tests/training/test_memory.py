"""Freed memory stays with the process: the next tensors bring no new pages."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource, torch
from minigpt.training.memory import keep_freed_memory

def pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(4):
        tensors = [torch.ones(6_000_000) for _ in range(4)]  # of 5,860 pages
        del tensors
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

pages()
keep_freed_memory()
pages()
print(pages())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="is about glibc")
def test_tensors_after_freed_ones_take_no_new_pages() -> None:
    """Without it they take 93,624."""
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert int(found.stdout) < 1000
