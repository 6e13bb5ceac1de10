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
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.optim import Optimizer

from ..data.batches import Batch
from . import distributed
from .cuda_graph import Cuda
from .held_fast import has_hooks, held_fast, random_states
from .loss import Loss
from .messages import say
from .optimizer import Muon

StepFunction = Callable[[list[Batch]], Tensor]  # of a batch in parts; returns figures ``(n,)``

_RUNS_BEFORE = 3  # of a step before it is recorded: the first ones load libraries
_MOST = 20  # times that a recording is begun anew: each takes some tenths of a second


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
        self._cuda = Cuda(device) if device.type == "cuda" else None

        self._reads_tensors = all(map(_reads_tensors, optimizers))
        if not self._reads_tensors:
            self._give_up("an optimizer is made without fused=True or capturable=True")

    def __call__(self, parts: list[Batch], is_unchanged: bool = False) -> Tensor:
        """Take a step. Returns its figures, which a later step may overwrite.

        With `is_unchanged` no code of somebody else has run since the last one, so that nothing is
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

    def _recording_of(self, parts: list[Batch], cuda: Cuda) -> "_Recording":
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
        if recording.runs == 0 or recording.held_fast == self._held_fast():
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

    def _run(self, recording: "_Recording", cuda: Cuda) -> Tensor:
        """Take a step as it is. The last one before it is recorded tells whether it can be."""
        recording.runs += 1
        if recording.runs < _RUNS_BEFORE:
            with cuda.beside():
                figures = self._compute(recording.parts)
            recording.held_fast = self._held_fast()
            return figures

        drawn = random_states()
        with cuda.noting_waits() as waits, cuda.beside():
            figures = self._compute(recording.parts)

        if waits:
            self._give_up("a step waits for the GPU, by a condition or .item(), say")
        elif self._held_fast() != recording.held_fast:
            self._give_up("a step changes numbers of the model or an optimizer that are no tensors")
        elif random_states() != drawn:
            self._give_up("a step draws random numbers elsewhere than on the GPU")
        elif has_hooks(self._loss, self._optimizers):
            self._give_up("the model or an optimizer has hooks, which are Python code")
        return figures

    def _record(self, recording: "_Recording", cuda: Cuda) -> None:
        """Record the step, which computes nothing; or give up."""
        problem = None
        graph: _Graph | None = None
        try:
            with cuda.recording() as graph:
                recording.figures = self._compute(recording.parts)
        except RuntimeError as error:
            problem = str(error).strip().splitlines()[0]

        if problem is None and cuda.is_nearly_full():
            problem = "hardly any of the GPU's memory is left for evaluations"
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

    def _groups(self) -> list[dict[str, Any]]:
        return [group for optimizer in self._optimizers for group in optimizer.param_groups]

    def _held_fast(self) -> list[Any]:
        return held_fast(self._loss, self._optimizers)


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
        self.held_fast: list[Any] = []

    def fits(self, parts: list[Batch]) -> bool:
        """Whether a batch has the same shape."""
        return [inputs.shape for inputs, _ in parts] == self._shapes

    def fill(self, parts: list[Batch]) -> None:
        """Put another batch of the same shape into the tensors."""
        for (inputs, targets), (new_inputs, new_targets) in zip(self.parts, parts, strict=True):
            inputs.copy_(new_inputs)
            targets.copy_(new_targets)


def _reads_tensors(optimizer: Optimizer) -> bool:
    """Whether an optimizer can read its rates from tensors of the device: one of torch can if it is
    made for that, which its groups tell."""
    if isinstance(optimizer, Muon):
        return True
    return all(g.get("fused") or g.get("capturable") for g in optimizer.param_groups)
