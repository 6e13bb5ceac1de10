"""A training step as a CUDA graph: what it computes is recorded once for each shape of its batch,
and then replayed. A small model's step is some thousand short operations, which take longer to
start than to compute; a graph starts them all at once. The context of a training only grows, so
that no graph is kept beside another.

What differs from step to step is read from tensors: the batch and the learning rates; the seed is
set before. Python code runs only while a step is recorded. So it is recorded after it has run a few
times and is known to wait for nothing and to change nothing in Python; and again when something has
changed that a graph holds fast, by a callback say. step.py has the step itself.
"""

import contextlib
import functools
import gc
import inspect
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

from ..data.batches import Batch
from . import distributed
from .loss import Loss
from .messages import say
from .optimizer import PEAK, Muon

StepFunction = Callable[[list[Batch]], Tensor]  # of a batch in parts; returns figures ``(n,)``

_RUNS_BEFORE = 3  # of a step before it is recorded: the first ones load libraries
_MOST = 20  # times that a recording is begun anew: each takes some tenths of a second
_WAITED = "called a synchronizing CUDA operation"  # what torch warns of when it is asked to
_LEFT = 0.05  # of the memory of a GPU, which a graph must not take
_PLAIN = (bool, int, float, str, type(None))
_DEEP = 4  # how far what is kept in lists and dictionaries is compared
_OF_TORCH = vars(nn.Module()).keys() - {"training"}  # attributes that every module has
_OF_OPTIMIZERS = ("param_groups", "state", "defaults")  # attributes that are compared apart


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
    as they are, too. On a device without CUDA all do. All of them read the tensors that a graph
    would read, and so compute the same, except if an optimizer cannot.

    To time it, call :meth:`GradientDescent.step` a few times for a shape, with `done` below or
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
        self._recording: _Recording | None = None  # of the shape of the latest batch
        self._begun_anew = 0  # how often something had changed that a graph holds fast
        self._is_given_up = False

        device = next(loss.parameters()).device
        self._rates = [torch.zeros((), device=device) for _ in self._groups()]
        self._cuda = _Cuda(device) if device.type == "cuda" else None

        self._reads_tensors = all(map(_reads_tensors, optimizers))
        if not self._reads_tensors:
            self._give_up("an optimizer is made without fused=True or capturable=True")

    def __call__(self, parts: list[Batch], is_unchanged: bool = False) -> Tensor:
        """Take a step. Returns its figures, which a later step may overwrite.

        With `is_unchanged` nobody else's code has run since the last one, so that nothing is
        compared that a graph holds fast, which takes a millisecond or two.
        """
        if not self._reads_tensors:
            return self._step(parts)

        for rate, group in zip(self._rates, self._groups(), strict=True):
            rate.fill_(group["lr"])
        if self._is_given_up or self._cuda is None:
            return self._compute(parts)
        recording = self._recording_of(parts, self._cuda)
        if not is_unchanged:
            self._begin_anew_if_changed(recording)

        if recording.graph is None and recording.runs == _RUNS_BEFORE:
            self._record(recording, self._cuda)
        if self._is_given_up:
            return self._compute(parts)
        if recording.graph is None:
            return self._run(recording, self._cuda)
        recording.graph.replay()
        return recording.figures

    def _recording_of(self, parts: list[Batch], cuda: "_Cuda") -> "_Recording":
        """The recording for batches of this shape, with this batch in its tensors."""
        recording = self._recording
        if recording is None or not recording.fits(parts):
            # The graph of a shorter context keeps the memory that the longer one needs.
            self._recording = recording = None
            cuda.free_memory()
            self._recording = recording = _Recording(parts)
        recording.fill(parts)
        return recording

    def _begin_anew_if_changed(self, recording: "_Recording") -> None:
        """Begin a recording anew if something has changed since the last step that a graph holds
        fast; or give up if that happens again and again."""
        if recording.runs == 0 or recording.baked_in == self._baked_in():
            return
        recording.graph = None
        recording.runs = 0  # as if it were new: an optimizer may begin with more parameters
        self._begun_anew += 1
        if self._begun_anew > _MOST:
            self._give_up("a callback changes numbers of the training again and again")

    def _compute(self, parts: list[Batch]) -> Tensor:
        with self._rates_in_tensors():
            return self._step(parts)

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
                figures = self._compute(recording.parts)
            recording.baked_in = self._baked_in()
            return figures

        drawn = _random_states()
        with cuda.noting_waits() as waits, cuda.beside():
            figures = self._compute(recording.parts)

        if waits:
            self._give_up("a step waits for the GPU, by a condition or .item(), say")
        elif self._baked_in() != recording.baked_in:
            self._give_up("a step changes numbers of the model or an optimizer that are no tensors")
        elif _random_states() != drawn:
            self._give_up("a step draws random numbers elsewhere than on the GPU")
        elif self._has_hooks():
            self._give_up("the model or an optimizer has hooks, which are Python code")
        return figures

    def _record(self, recording: "_Recording", cuda: "_Cuda") -> None:
        """Record the step, which computes nothing; or give up."""
        problem = None
        graph: _Graph | None = None
        try:
            with cuda.recording() as graph:
                recording.figures = self._compute(recording.parts)
        except RuntimeError as error:
            problem = str(error).strip().splitlines()[0]

        if problem is None and cuda.is_nearly_full():
            problem = "its memory would leave none for evaluations"
        if problem is None:
            recording.graph = graph
            self.recorded += 1
            return
        graph = None
        self._loss.zero_grad()  # gradients in the memory of the graph
        self._give_up(problem)
        cuda.free_memory()  # not before: the error has held what was computed

    def _give_up(self, problem: str) -> None:
        self._is_given_up = True
        self._recording = None
        say_not_captured(problem)

    # What a graph holds fast

    def _groups(self) -> list[dict[str, Any]]:
        return [group for optimizer in self._optimizers for group in optimizer.param_groups]

    def _baked_in(self) -> list[Any]:
        """What a graph holds fast, as it is now: the numbers of the model's parts, such as dropout
        and mode, and of the loss; which parameters are trained; the settings of the optimizers
        without the rates; where all tensors lie; how many hooks there are."""
        found: list[Any] = []
        parts = list(self._loss.modules())
        for part in [*parts, *_parts_of(self._loss._function)]:
            found.append(type(part))
            _note(found, {k: v for k, v in vars(part).items() if k not in _OF_TORCH})
        for parameter in _parameters_of(parts):
            found += [parameter.requires_grad, parameter.data_ptr()]
        for part in parts:
            found += [buffer.data_ptr() for buffer in part._buffers.values() if buffer is not None]

        for group in self._groups():
            _note(found, {k: v for k, v in group.items() if k not in ("params", "lr", PEAK)})
        for optimizer in self._optimizers:
            _note(found, {k: v for k, v in vars(optimizer).items() if k not in _OF_OPTIMIZERS})
            for state in optimizer.state.values():
                _note(found, state)
        found += map(len, self._hooks(parts))
        return found

    def _has_hooks(self) -> bool:
        """Whether somebody else's Python code is to run within a step."""
        kinds = self._hooks(list(self._loss.modules()))
        hooks = [hook for of_a_kind in kinds for hook in of_a_kind.values()]
        return any(hook != self._loss.note for hook in hooks)

    def _hooks(self, parts: list[nn.Module]) -> list[Mapping[int, Any]]:
        """All hooks that may run within a step, of each kind."""
        found: list[Mapping[int, Any]] = [*_hooks_of_all()]
        for part in parts:
            found += [part._forward_pre_hooks, part._forward_hooks]
            found += [part._backward_pre_hooks, part._backward_hooks]
        for parameter in _parameters_of(parts):
            found += [parameter._backward_hooks or {}, parameter._post_accumulate_grad_hooks or {}]
        for optimizer in self._optimizers:
            found += [optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks]
        return found


class _Graph(Protocol):
    """A recorded step."""

    def replay(self) -> None: ...


class _Recording:
    """A step on batches of one shape: the tensors that it reads; and, once it is recorded, its
    graph, the figures that this computes, and what it holds fast."""

    def __init__(self, parts: list[Batch]):
        self.parts = [(inputs.clone(), targets.clone()) for inputs, targets in parts]
        self._shapes = [inputs.shape for inputs, _ in parts]
        self.runs = 0
        self.graph: _Graph | None = None
        self.figures = torch.empty(0)
        self.baked_in: list[Any] = []

    def fits(self, parts: list[Batch]) -> bool:
        """Whether a batch has the same shape."""
        return [inputs.shape for inputs, _ in parts] == self._shapes

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
        gc.collect()  # what is left of other steps would have a stream of its own
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


def _reads_tensors(optimizer: Optimizer) -> bool:
    """Whether an optimizer can read its rates from tensors of the device: one of torch can if it is
    made for that, which its groups tell."""
    if isinstance(optimizer, Muon):
        return True
    return all(g.get("fused") or g.get("capturable") for g in optimizer.param_groups)


def _parameters_of(parts: list[nn.Module]) -> list[nn.Parameter]:
    """Those that the modules themselves have; one that several of them share is there for each."""
    held = [one for part in parts for one in part._parameters.values()]
    return [parameter for parameter in held if parameter is not None]


def _parts_of(function: Any) -> list[Any]:
    """What has the attributes that a loss function may use: itself, and the object whose method it
    is; of a module all modules in it."""
    if isinstance(function, functools.partial):
        return _parts_of(function.func)
    found: list[Any] = []
    for owner in (function, getattr(function, "__self__", None)):
        if isinstance(owner, nn.Module):
            found += owner.modules()
        elif hasattr(owner, "__dict__"):
            found.append(owner)
    return found


def _note(found: list[Any], value: Any, depth: int = _DEEP) -> None:
    """Add to what was found whatever of a value can be compared: a number, a name, a function,
    where a tensor lies, or several of these."""
    if isinstance(value, _PLAIN) or inspect.isroutine(value):
        found.append(value)
    elif isinstance(value, Tensor):
        found.append(value.data_ptr() if value.layout == torch.strided else id(value))
    elif isinstance(value, dict) and depth > 0:
        for key, one in value.items():
            _note(found, key, depth - 1)
            _note(found, one, depth - 1)
    elif isinstance(value, (list, tuple)) and depth > 0:
        for one in value:
            _note(found, one, depth - 1)


def _hooks_of_all() -> list[Mapping[int, Any]]:
    """Those that were registered for every module and every optimizer there is."""
    of_modules = nn.modules.module
    return [
        of_modules._global_forward_pre_hooks,
        of_modules._global_forward_hooks,
        of_modules._global_backward_pre_hooks,
        of_modules._global_backward_hooks,
        _global_optimizer_pre_hooks,
        _global_optimizer_post_hooks,
    ]


def _random_states() -> list[Any]:
    """Of the generators on the processor that everybody shares."""
    of_numpy = np.random.get_state(legacy=False)
    return [random.getstate(), str(of_numpy), torch.default_generator.get_state().tolist()]
