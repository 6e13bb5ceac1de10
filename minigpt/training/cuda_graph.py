"""What a step (captured.py) needs of CUDA to be recorded as a graph: a stream beside the usual one,
an end to each recording, also to one that fails, and a look at what waits.
"""

import contextlib
import gc
import warnings
from collections.abc import Iterator
from typing import Any

import torch

_LEFT = 0.05  # of the memory of a GPU, which a graph must not take
_WAITED = "called a synchronizing CUDA operation"  # what torch warns of when it is asked to


class Cuda:
    """What recording asks of CUDA. Graphs are recorded on a stream of their own."""

    def __init__(self, device: torch.device):
        self._device = device
        self._stream = torch.cuda.Stream(device)

    @contextlib.contextmanager
    def beside(self) -> Iterator[None]:
        """Within, the GPU computes on that stream: after all that it was given so far, and before
        all that comes. What libraries keep for each stream is made there before it is recorded."""
        usual = torch.cuda.current_stream(self._device)
        self._stream.wait_stream(usual)
        with torch.cuda.stream(self._stream):
            yield
        usual.wait_stream(self._stream)

    @contextlib.contextmanager
    def recording(self) -> Iterator[torch.cuda.CUDAGraph]:
        """Within, what the GPU is given is not computed, but recorded."""
        # What Python has not collected of other steps belongs to another stream, which would wait.
        gc.collect()
        graph = torch.cuda.CUDAGraph()
        pool = torch.cuda.graph_pool_handle()
        error: RuntimeError | None = None
        try:
            with self._recorded_in(graph, pool):
                try:
                    yield graph
                except RuntimeError as raised:  # out of memory, say: it still ends as usual
                    error = raised
        except RuntimeError:  # the driver has cut it off
            self._forget(pool)
            raise
        if error is not None:
            raise error

    @contextlib.contextmanager
    def _recorded_in(self, graph: torch.cuda.CUDAGraph, pool: Any = None) -> Iterator[None]:
        """Within, what the GPU is given is recorded, and other threads may use it meanwhile. The
        stream is entered here: where a recording is cut off, torch does not leave it."""
        mode = "thread_local"
        with (
            torch.cuda.stream(self._stream),
            torch.cuda.graph(graph, pool, self._stream, capture_error_mode=mode),
        ):
            yield

    def _forget(self, pool: Any) -> None:
        """Leave torch as if a recording that was cut off had ended. Its allocator would free no
        memory while one goes on; and its generator of random numbers would refuse dropout in the
        next step (torch 2.9 to 2.12), until another recording, of nothing much, ends."""
        index = self._device.index
        with contextlib.suppress(RuntimeError):
            torch._C._cuda_endAllocateToPool(index, pool)
            torch._C._cuda_releasePool(index, pool)
        with contextlib.suppress(RuntimeError), self._recorded_in(torch.cuda.CUDAGraph()):
            torch.zeros(1, device=self._device)

    def free_memory(self) -> None:
        """Give back what the graphs have used that are gone, once all is computed."""
        torch.cuda.synchronize(self._device)
        torch.cuda.empty_cache()

    def is_nearly_full(self) -> bool:
        """Whether hardly any memory is left for what is computed beside a graph, which keeps to
        itself what a step needs: an evaluation, say."""
        free, total = torch.cuda.mem_get_info(self._device)
        return free < _LEFT * total

    @contextlib.contextmanager
    def noting_waits(self) -> Iterator[list[str]]:
        """Within, warnings of operations that wait for the GPU are noted; other ones are lost."""
        waits: list[str] = []
        mode = torch.cuda.get_sync_debug_mode()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            try:
                yield waits
            finally:
                torch.cuda.set_sync_debug_mode(mode)
                waits += [str(one.message) for one in told if _WAITED in str(one.message)]
