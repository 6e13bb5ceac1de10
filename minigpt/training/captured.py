"""A training step as a CUDA graph: what it computes is recorded once for each shape of its batch,
and then replayed. A small model's step is some thousand short operations, which take longer to
start than to compute; a graph starts them all at once.

What differs from step to step is read from tensors: the batch and the learning rates; the seed is
set before. Python code runs only while a step is recorded. So it is recorded after it has run a few
times and is known to wait for nothing and to change nothing in Python; and again when something has
changed that a graph holds fast, by a callback say. step.py has the step itself.
"""

import contextlib
import functools
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ..data.batches import Batch
from . import distributed
from .loss import Loss
from .messages import say
from .optimizer import PEAK

StepFunction = Callable[[list[Batch]], Tensor]  # of a batch in parts; returns figures ``(n,)``

_RUNS_BEFORE = 3  # of a step before it is recorded: the first ones load libraries
_MOST = 20  # recordings of a training, each of which takes some tenths of a second
_WAITED = "called a synchronizing CUDA operation"  # what torch warns of when it is asked to
_PLAIN = (bool, int, float, str, type(None))


def why_not_captured(precision: str) -> str | None:
    """Why no step of a training on a GPU can be recorded, or None."""
    if torch.version.cuda is None:
        return "that is for GPUs of NVIDIA"
    if distributed.started() > 1:
        return "several processes share each of them"
    if precision == "float16":
        return "in float16 a step may have to be made again"
    return None


@functools.cache
def say_not_captured(problem: str) -> None:
    """Say in a line, once, why steps take longer than they could."""
    say(f"steps are not recorded as a CUDA graph, so that they take longer: {problem}")


class CapturedStep:
    """A step that is recorded and replayed.

    The first steps of each shape of batch run as they are: they are steps of the training like all
    others. If they show that the step cannot be recorded, a line says why, and all further ones run
    as they are, too. On a device without CUDA all do, with the tensors that a graph would read.

    To time it, call :meth:`GradientDescent.step` a few times for each shape, with `done` below and
    above 0.8 if the context grows: ``runs_before`` times as they are, and once to record. Then time
    further calls, and wait for the GPU before and after, as ``benchmarks/training_on_gpu.py`` does.

    Args:
        step: learns from a batch in parts, on the device, at the rates that the optimizers have. It
            returns figures ``(n,)`` on the device.
        loss: the model with its loss. All that the step computes with is in it or an optimizer.
        optimizers: whose rates are set before each step.

    Attributes:
        runs_before: how often a step of each shape runs before it is recorded.
        recorded: how many graphs were recorded.
    """

    runs_before = _RUNS_BEFORE

    def __init__(self, step: StepFunction, loss: Loss, optimizers: Sequence[Optimizer]):
        self.recorded = 0
        self._step = step
        self._loss = loss
        self._optimizers = optimizers
        self._recordings: dict[tuple[torch.Size, ...], _Recording] = {}
        self._is_given_up = False

        device = next(loss.parameters()).device
        self._rates = [torch.zeros((), device=device) for _ in self._groups()]
        self._cuda = _Cuda(device) if device.type == "cuda" else None

    def __call__(self, parts: list[Batch]) -> Tensor:
        """Take a step. Returns its figures, which a later step may overwrite."""
        if self._is_given_up:
            return self._step(parts)

        for rate, group in zip(self._rates, self._groups(), strict=True):
            rate.fill_(group["lr"])
        recording = self._recording_of(parts)
        if self._cuda is None:
            return self._compute(recording)

        if recording.graph is None and recording.runs == _RUNS_BEFORE:
            self._record(recording, self._cuda)
            if recording.graph is None:
                return self._step(parts)
        if recording.graph is None:
            return self._run(recording, self._cuda)
        recording.graph.replay()
        return recording.figures

    def _recording_of(self, parts: list[Batch]) -> "_Recording":
        """The recording for batches of this shape, with this batch in its tensors."""
        shapes = tuple(inputs.shape for inputs, _ in parts)
        if shapes not in self._recordings:
            self._recordings[shapes] = _Recording(parts)
        recording = self._recordings[shapes]
        recording.fill(parts)

        if recording.graph is not None and recording.baked_in != self._baked_in():
            recording.graph = None
            recording.runs = _RUNS_BEFORE - 1
        return recording

    def _compute(self, recording: "_Recording") -> Tensor:
        with self._rates_in_tensors():
            return self._step(recording.parts)

    @contextlib.contextmanager
    def _rates_in_tensors(self) -> Iterator[None]:
        """Within, the optimizers read their rates from tensors, and those that keep their count of
        steps on the device know that they may be recorded. To everybody else rates are numbers."""
        names = ("lr", "capturable")
        groups = self._groups()
        before = [{name: group[name] for name in names if name in group} for group in groups]
        try:
            for group, rate in zip(groups, self._rates, strict=True):
                group["lr"] = rate
                if group.get("fused") and "capturable" in group:
                    group["capturable"] = True
            yield
        finally:
            for group, own in zip(groups, before, strict=True):
                group.update(own)

    # Recorded

    def _run(self, recording: "_Recording", cuda: "_Cuda") -> Tensor:
        """Take a step as it is. The last one before it is recorded tells whether it can be."""
        recording.runs += 1
        if recording.runs < _RUNS_BEFORE:
            with cuda.beside():
                return self._compute(recording)

        baked_in = self._baked_in()
        drawn = _random_states()
        with cuda.noting_waits() as waits, cuda.beside():
            figures = self._compute(recording)

        if waits:
            self._give_up("a step waits for the GPU, by a condition or .item(), say")
        elif self._baked_in() != baked_in:
            self._give_up("a step changes numbers of the model or an optimizer that are no tensors")
        elif _random_states() != drawn:
            self._give_up("a step draws random numbers elsewhere than on the GPU")
        elif self._has_hooks():
            self._give_up("the model or an optimizer has hooks, which are Python code")
        elif self.recorded >= _MOST:
            self._give_up("a callback changes numbers of the training again and again")
        return figures

    def _record(self, recording: "_Recording", cuda: "_Cuda") -> None:
        """Record the step, which computes nothing; or give up."""
        others = [other.graph for other in self._recordings.values() if other.graph is not None]
        recording.baked_in = self._baked_in()
        try:
            with cuda.recording(beside=others) as graph:
                recording.figures = self._compute(recording)
        except RuntimeError as error:
            self._loss.zero_grad()  # gradients in the memory of the graph
            self._give_up(str(error).strip().splitlines()[0])
            return
        recording.graph = graph
        self.recorded += 1

    def _give_up(self, problem: str) -> None:
        self._is_given_up = True
        self._recordings.clear()
        say_not_captured(problem)

    # What a graph holds fast

    def _groups(self) -> list[dict[str, Any]]:
        return [group for optimizer in self._optimizers for group in optimizer.param_groups]

    def _baked_in(self) -> list[Any]:
        """What a graph holds fast, as it is now: the numbers of the model's parts, such as dropout
        and mode; which parameters are trained; the settings of the optimizers without the rates;
        where all tensors lie. It takes some tenths of a millisecond, while the GPU computes."""
        found: list[Any] = []
        for part in self._loss.modules():
            found += filter(_is_plain, vars(part).values())
            found += map(len, _hooks_of(part))
        for parameter in self._loss.parameters():
            found += [parameter.requires_grad, parameter.data_ptr()]
        found += [buffer.data_ptr() for buffer in self._loss.buffers()]

        for group in self._groups():
            names = group.keys() - {"params", "lr", PEAK}
            found += [group[name] for name in sorted(names) if _is_plain(group[name])]
        for optimizer in self._optimizers:
            for state in optimizer.state.values():
                found += [v.data_ptr() if isinstance(v, Tensor) else v for v in state.values()]
        return found

    def _has_hooks(self) -> bool:
        """Whether somebody else's Python code is to run within a step."""
        hooks: list[Any] = []
        for part in self._loss.modules():
            for of_a_kind in _hooks_of(part):
                hooks += of_a_kind.values()
        for optimizer in self._optimizers:
            hooks += optimizer._optimizer_step_pre_hooks.values()
            hooks += optimizer._optimizer_step_post_hooks.values()
        return any(hook != self._loss.note for hook in hooks)


class _Graph(Protocol):
    """A recorded step."""

    def replay(self) -> None: ...


class _Recording:
    """A step on batches of one shape: the tensors that it reads; and, once it is recorded, its
    graph, the figures that this computes, and what it holds fast."""

    def __init__(self, parts: list[Batch]):
        self.parts = [(inputs.clone(), targets.clone()) for inputs, targets in parts]
        self.runs = 0
        self.graph: _Graph | None = None
        self.figures = torch.empty(0)
        self.baked_in: list[Any] = []

    def fill(self, parts: list[Batch]) -> None:
        """Put another batch of the same shape into the tensors."""
        for (inputs, targets), (new_inputs, new_targets) in zip(self.parts, parts, strict=True):
            inputs.copy_(new_inputs)
            targets.copy_(new_targets)


class _Cuda:
    """What recording asks of CUDA. Graphs are recorded on a stream of their own."""

    def __init__(self, device: torch.device):
        self._device = device
        self._stream = torch.cuda.Stream(device)
        self._unfinished: torch.cuda.CUDAGraph | None = None

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
    def recording(self, beside: Sequence[Any]) -> Iterator[torch.cuda.CUDAGraph]:
        """Within, what the GPU is given is not computed, but recorded. Graphs that are never
        replayed at once, as this one and those `beside` it, use the same memory."""
        graph = torch.cuda.CUDAGraph()
        pool = beside[0].pool() if beside else None
        self._unfinished = graph  # the allocator refers to it, even if recording fails
        with (
            torch.cuda.stream(self._stream),
            # Other threads may use the GPU meanwhile.
            torch.cuda.graph(graph, pool, self._stream, capture_error_mode="thread_local"),
        ):
            yield graph
        self._unfinished = None

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


def _is_plain(value: Any) -> bool:
    """Whether a value can be compared: a number, a name, or several."""
    if isinstance(value, list | tuple):
        return all(isinstance(one, _PLAIN) for one in value)
    return isinstance(value, _PLAIN)


def _hooks_of(part: nn.Module) -> list[dict[int, Any]]:
    """What runs before or after the forward and the backward pass of a part."""
    forward = [part._forward_pre_hooks, part._forward_hooks]
    backward = [part._backward_pre_hooks, part._backward_hooks]
    return [*forward, *backward]


def _random_states() -> list[Any]:
    """Of the generators on the processor that everybody shares."""
    of_numpy = np.random.get_state(legacy=False)
    return [random.getstate(), str(of_numpy), torch.default_generator.get_state().tolist()]
