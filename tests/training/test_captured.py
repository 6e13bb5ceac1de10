"""A step that is recorded gives the weights of one that is not, and is recorded anew when a
callback changes what it holds fast. What cannot be recorded is trained as it is, and a line says
so.

There is no GPU here. `PretendCuda` stands in for CUDA: a recorded step is one that is computed
again when it is replayed. tests/devices/test_gpu.py has the same on a GPU.
"""

import contextlib
import random
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook

import minigpt
from minigpt.config import TextConfig, TrainConfig
from minigpt.data.batches import Dataset, make_batches
from minigpt.data.source import find_source
from minigpt.data.token_cache import prepare_tokens
from minigpt.model import GPT
from minigpt.training.captured import CapturedStep, say_not_captured
from minigpt.training.checkpoint import Learner, TrainingState
from minigpt.training.loss import LossFunction
from minigpt.training.optimizer import chosen_optimizers
from minigpt.training.step import GradientDescent
from tests.devices.waiting import noting_waits

pytestmark = pytest.mark.long

STEPS = 10  # the context grows after eight of them


@pytest.fixture(autouse=True)
def nothing_was_said() -> None:
    """Each line is said once in a process."""
    say_not_captured.cache_clear()


@pytest.fixture
def dataset(workplace: Path) -> Dataset:
    text = TextConfig(("my.txt",), vocab_size=300)
    return prepare_tokens(find_source(text), text)


class Replayed:
    """In the place of a graph."""

    def __init__(self, step: CapturedStep):
        self._step = step

    def replay(self) -> None:
        recording = self._step._recording
        assert recording is not None and recording.graph is self
        recording.figures = self._step._compute(recording.parts)


class PretendCuda:
    """In the place of what recording asks of CUDA."""

    def __init__(self, step: CapturedStep):
        self._step = step

    def beside(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def recording(self) -> Iterator[Replayed]:
        """Within, nothing is changed: on a GPU nothing would be computed."""
        states = [state for o in self._step._optimizers for state in o.state.values()]
        tensors = [*self._step._loss.parameters(), *self._step._loss.buffers()]
        tensors += [t for state in states for t in state.values() if isinstance(t, Tensor)]
        before = [tensor.detach().clone() for tensor in tensors]
        with torch.random.fork_rng([]):
            yield Replayed(self._step)
        with torch.no_grad():
            for tensor, kept in zip(tensors, before, strict=True):
                tensor.copy_(kept)

    def free_memory(self) -> None:
        pass

    def is_nearly_full(self) -> bool:
        return False

    def noting_waits(self) -> contextlib.AbstractContextManager[list[str]]:
        """What is computed on a CPU alone waits: GPT's own loss looks at the targets there."""
        has_own_loss = self._step._loss._function is None and type(self._step._loss.model) is GPT
        return contextlib.nullcontext([]) if has_own_loss else noting_waits()


class Training:
    """Steps of a small model on a text, as they are or recorded."""

    def __init__(
        self,
        dataset: Dataset,
        is_recorded: bool,
        *,
        model: nn.Module | None = None,
        loss: LossFunction | None = None,
        optimizers: Any = None,
        before: Callable[[nn.Module], None] | None = None,
        **settings: Any,
    ):
        torch.manual_seed(0)
        shape = {"context_length": 12, "emb_dim": 16, "num_layers": 2, "num_heads": 2}
        self.model = GPT(minigpt.GPTConfig(300, **shape)) if model is None else model
        if before is not None:
            before(self.model)
        usual = {"steps": STEPS, "batch_size": 4, "learning_rate": 1e-2, "device": "cpu"}
        self.config = TrainConfig(**({"precision": "float32"} | usual | settings))
        self.optimizers = chosen_optimizers(optimizers, self.model, self.config)
        self.descent = GradientDescent(
            Learner.of(self.model, self.optimizers, self.config),
            make_batches(dataset, self.config, context_length=12),
            self.config,
            loss=loss,
            byte_lengths=torch.tensor(dataset.tokenizer.byte_lengths()),
        )
        self.state = TrainingState()
        self.losses: list[float] = []
        self.is_recorded = is_recorded

    @property
    def step(self) -> CapturedStep:
        assert self.descent._captured is not None
        return self.descent._captured

    @contextlib.contextmanager
    def under_way(self) -> Iterator[None]:
        with self.descent.under_way():
            if self.is_recorded:
                loss = self.descent._plain_loss
                step = CapturedStep(self.descent.update, loss, self.optimizers)
                step._cuda = PretendCuda(step)  # type: ignore[assignment]
                self.descent._captured = step
            yield

    def take(self, count: int = STEPS) -> None:
        for _ in range(count):
            started = self.descent.step(self.state, done=self.state.step / STEPS)
            self.losses.append(self.descent.finish(self.state, started).loss)

    def train(self) -> list[Tensor]:
        """The weights after all steps."""
        with self.under_way():
            self.take()
            if self.is_recorded:
                self.recorded = self.step.recorded
        return list(self.model.parameters())


@pytest.fixture
def dropout_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropout draws its numbers on the processor here, on a GPU there."""
    monkeypatch.setattr("minigpt.training.captured.random_states", list)


def freeze(model: nn.Module) -> None:
    model.blocks[0].attention.W_query.weight.requires_grad = False  # type: ignore


KINDS: dict[str, dict[str, Any]] = {
    "Muon": {},
    "AdamW": {"optimizer": "adamw"},
    "in parts": {"micro_batch_size": 3},
    "a frozen parameter": {"before": freeze},
    "split tokens": {"token_split_prob": 0.3},
    "dropout": {"before": lambda model: [setattr(b.dropout, "p", 0.25) for b in model.blocks]},
}


@pytest.mark.usefixtures("dropout_on_the_cpu")
@pytest.mark.parametrize("kind", KINDS)
def test_a_recorded_step_gives_the_weights_of_one_that_is_not(kind: str, dataset: Dataset) -> None:
    """Also where the context grows on the way."""
    settings = {"warmup_context": 6} | KINDS[kind]
    plain = Training(dataset, False, **settings)
    recorded = Training(dataset, True, **settings)
    expected, found = plain.train(), recorded.train()
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    assert recorded.losses == pytest.approx(plain.losses, abs=1e-5)
    assert recorded.losses[-1] < recorded.losses[0] - 0.3
    assert recorded.recorded == 1


def test_it_is_recorded_once_for_each_shape_after_three_runs(dataset: Dataset) -> None:
    training = Training(dataset, True, warmup_context=6)
    with training.under_way():
        counts = []
        for done in [0.0] * 6 + [1.0] * 6:
            training.descent.step(training.state, done)
            counts.append(training.step.recorded)
    assert counts == [0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2]


def test_what_is_recorded_of_a_shorter_context_is_gone_before_the_longer_one(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = Training(dataset, True, warmup_context=6)
    with training.under_way():
        for _ in range(4):
            training.descent.step(training.state, done=0.0)
        assert training.step._recording is not None
        graph = weakref.ref(training.step._recording.graph)
        freed = []
        monkeypatch.setattr(PretendCuda, "free_memory", lambda _: freed.append(graph() is None))
        training.descent.step(training.state, done=1.0)
    assert freed == [True]


def test_rates_and_settings_are_numbers_to_everybody_else(dataset: Dataset) -> None:
    training = Training(dataset, True)
    with training.under_way():
        training.take(5)
        groups = [group for optimizer in training.optimizers for group in optimizer.param_groups]
        assert all(isinstance(group["lr"], float) for group in groups)
        assert not any(group.get("capturable") for group in groups)


def changed(training: Training, what: str) -> None:
    """What a callback may do between two steps."""
    model = training.model
    assert isinstance(model, GPT)
    block = model.blocks[0]
    if what == "weight decay":
        training.optimizers[-1].param_groups[0]["weight_decay"] = 0.5
    elif what == "momentum":
        training.optimizers[0].param_groups[0]["momentum"] = 0.5
    elif what == "betas":
        training.optimizers[-1].param_groups[0]["betas"] = (0.8, 0.9)
    elif what == "dropout":
        block.dropout.p = 0.5
    elif what == "mode":
        block.eval()
    elif what == "frozen":
        block.attention.W_query.weight.requires_grad = False
    elif what == "moved":
        model.head.weight.data = model.head.weight.data.clone()
    elif what == "function":
        block.attention.process_heads = lambda queries, keys: (0.5 * queries, keys)
    elif what == "class":
        block.attention_norm.__class__ = Halved
    elif what == "state":
        for state in training.optimizers[-1].state.values():
            state["exp_avg"] = torch.zeros_like(state["exp_avg"])


class Halved(nn.RMSNorm):
    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * super().forward(x)


CHANGES = (
    "weight decay",
    "momentum",
    "betas",
    "dropout",
    "mode",
    "frozen",
    "moved",
    "function",
    "class",
    "state",
)


@pytest.mark.usefixtures("dropout_on_the_cpu")
@pytest.mark.parametrize("what", CHANGES)
def test_it_is_recorded_anew_when_a_callback_has_changed_something(
    what: str, dataset: Dataset
) -> None:
    settings = {"before": lambda model: setattr(model.blocks[0].dropout, "p", 0.25)}
    weights = []
    for is_recorded in (False, True):
        training = Training(dataset, is_recorded, **settings)
        with training.under_way():
            training.take(5)
            changed(training, what)
            training.take(5)
            if is_recorded:
                assert training.step.recorded == 2
        weights.append(list(training.model.parameters()))
    torch.testing.assert_close(weights[1], weights[0], rtol=0, atol=1e-6)


# What cannot be recorded


class Bigrams(nn.Module):
    """Each token's logits for the next one; and something that a graph would not do again."""

    def __init__(self, odd: Callable[["Bigrams"], float]):
        super().__init__()
        self.table = nn.Embedding(300, 300)
        self.calls = 0
        self.odd = odd

    def forward(self, token_ids: Tensor) -> Tensor:
        return self.table(token_ids) * (1.0 + 0.1 * self.odd(self))


def counted(model: Bigrams) -> float:
    model.calls += 1
    return float(model.calls % 2)


ODD: dict[str, tuple[Callable[[Bigrams], float], str]] = {
    "waits": (lambda model: model.table.weight[0, 0].item(), "waits for the GPU"),
    "asks": (lambda model: float(bool(model.table.weight[0, 0] > 0)), "waits for the GPU"),
    "looks for": (lambda model: float(len(model.table.weight[0].nonzero())), "waits for the GPU"),
    "counts": (counted, "changes numbers of the model"),
    "Python's random": (lambda model: random.random(), "draws random numbers"),
    "numpy's random": (lambda model: float(np.random.rand()), "draws random numbers"),
}


@pytest.mark.parametrize("name", ODD)
def test_a_model_that_cannot_be_recorded_is_trained_as_it_is_with_one_line(
    name: str, dataset: Dataset, capsys: pytest.CaptureFixture[str]
) -> None:
    odd, why = ODD[name]
    weights = []
    for is_recorded in (False, True):
        random.seed(0)
        np.random.seed(0)
        torch.manual_seed(0)
        training = Training(dataset, is_recorded, model=Bigrams(odd), optimizer="adamw")
        weights.append(training.train())
    torch.testing.assert_close(weights[1], weights[0], rtol=0, atol=1e-6)
    said = capsys.readouterr().err
    assert said.count("steps are not recorded as a CUDA graph") == 1 and why in said
    assert training.recorded == 0


@pytest.mark.parametrize("where", ["group", "attribute"])
def test_an_optimizer_that_counts_in_python_is_not_recorded(
    where: str, dataset: Dataset, capsys: pytest.CaptureFixture[str]
) -> None:
    class Slower(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:  # type: ignore[override]
            for group in self.param_groups:
                group["steps"] = group.get("steps", 0) + 1
            super().step()

    class Counting(torch.optim.AdamW):
        steps = 0

        def step(self, closure: Any = None) -> None:  # type: ignore[override]
            self.steps += 1
            super().step()

    def optimizers(model: nn.Module) -> list[torch.optim.Optimizer]:
        return [kind(model.parameters(), lr=0.1, fused=True)]

    kind: Any = Slower if where == "group" else Counting
    Training(dataset, True, optimizers=optimizers).train()
    assert "changes numbers of the model or an optimizer" in capsys.readouterr().err


def test_an_optimizer_that_cannot_read_its_rate_from_a_tensor_gets_numbers(
    dataset: Dataset, capsys: pytest.CaptureFixture[str]
) -> None:
    def optimizers(model: nn.Module) -> list[torch.optim.Optimizer]:
        return [torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=True)]

    weights = [Training(dataset, of, optimizers=optimizers).train() for of in (False, True)]
    assert all(map(torch.equal, *weights))
    said = capsys.readouterr().err
    assert said.count("an optimizer is made without fused=True or capturable=True") == 1


def test_a_step_reads_its_rates_from_tensors_also_when_it_cannot_be_recorded(
    dataset: Dataset, capsys: pytest.CaptureFixture[str]
) -> None:
    """Or a run that is resumed, which finds that out anew, would compute other weights."""
    training = Training(dataset, True)
    rates: list[Any] = []
    for optimizer in training.optimizers:
        optimizer.register_step_pre_hook(lambda o, *_: rates.append(o.param_groups[0]["lr"]))
    training.train()
    assert "hooks, which are Python code" in capsys.readouterr().err
    assert len(rates) == STEPS * len(training.optimizers)
    assert all(isinstance(rate, Tensor) for rate in rates)


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
def test_a_callback_may_train_what_was_frozen(steps: int, dataset: Dataset) -> None:
    """Of which the optimizer keeps averages only then: before a step is recorded, too."""

    def optimizers(model: nn.Module) -> list[torch.optim.Optimizer]:
        return [torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)]

    weights = []
    for is_recorded in (False, True):
        training = Training(dataset, is_recorded, before=freeze, optimizers=optimizers)
        with training.under_way():
            training.take(steps)
            training.model.requires_grad_()
            training.take(5)
            assert not is_recorded or training.step._recording.graph is not None
        weights.append(list(training.model.parameters()))
    torch.testing.assert_close(weights[1], weights[0], rtol=0, atol=1e-5)


Remove = Callable[[], None]


def hooked(training: Training, what: str, note: Callable[..., None]) -> Remove:
    """Set a hook; what removes it."""
    model = training.model
    assert isinstance(model, GPT)
    if what == "of a part":
        return model.final_norm.register_forward_hook(note).remove
    if what == "of a parameter":
        return model.final_norm.weight.register_hook(note).remove
    if what == "of an added gradient":
        return model.final_norm.weight.register_post_accumulate_grad_hook(note).remove
    if what == "of all parts":
        return nn.modules.module.register_module_forward_hook(
            lambda part, *_: note() if part is model.final_norm else None
        ).remove
    if what == "of all optimizers":
        return register_optimizer_step_post_hook(
            lambda one, *_: note() if one is training.optimizers[0] else None
        ).remove
    return training.optimizers[0].register_step_post_hook(note).remove


HOOKS = (
    "of a part",
    "of a parameter",
    "of an added gradient",
    "of all parts",
    "of an optimizer",
    "of all optimizers",
)


@pytest.mark.parametrize("what", HOOKS)
def test_hooks_are_seen_whenever_they_are_set(
    what: str, dataset: Dataset, capsys: pytest.CaptureFixture[str]
) -> None:
    training = Training(dataset, True)
    seen: list[int] = []
    with training.under_way():
        training.take(5)
        assert training.step.recorded == 1
        remove = hooked(training, what, lambda *_: seen.append(training.state.step))
        training.take(3)
        remove()
    assert seen == [5, 6, 7]
    assert "hooks, which are Python code" in capsys.readouterr().err


def test_a_loss_of_ones_own_is_recorded_with_the_logits_that_it_computes(dataset: Dataset) -> None:
    def squared(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
        return nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten()) ** 2

    plain, recorded = (Training(dataset, of, loss=squared) for of in (False, True))
    torch.testing.assert_close(recorded.train(), plain.train(), rtol=0, atol=1e-6)
    assert recorded.recorded == 1
    assert recorded.losses == pytest.approx(plain.losses, abs=1e-5)


class Scaled:
    """A loss of one's own with numbers of several kinds."""

    def __init__(self) -> None:
        self.scale = 1.0
        self.others = {"all": [1.0]}
        self.tensor = torch.tensor(1.0)

    def __call__(self, model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
        loss = nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        return loss * self.scale * self.others["all"][0] * self.tensor


@pytest.mark.parametrize("is_method", [False, True])
@pytest.mark.parametrize("what", ["scale", "others", "tensor"])
def test_what_a_callback_changes_of_a_loss_is_seen(
    what: str, is_method: bool, dataset: Dataset
) -> None:
    loss = Scaled()
    training = Training(dataset, True, loss=loss.__call__ if is_method else loss)
    with training.under_way():
        training.take(5)
        if what == "scale":
            loss.scale = 2.0
        elif what == "others":
            loss.others["all"][0] = 2.0
        else:
            loss.tensor = torch.tensor(2.0)
        training.take(5)
        assert training.step.recorded == 2


def test_nothing_is_compared_where_nobody_else_could_change_it(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That takes as long as a small model's step on a GPU."""
    training = Training(dataset, True)
    with training.under_way():
        training.take(5)
        compared: list[bool] = []
        usual = training.step._held_fast
        monkeypatch.setattr(training.step, "_held_fast", lambda: compared.append(True) or usual())
        for is_unchanged in (True, True, False):
            training.descent.step(training.state, done=0.5, is_unchanged=is_unchanged)
        assert len(compared) == 1

        training.descent._has_own_code = True
        training.descent.step(training.state, done=0.5, is_unchanged=True)
        assert len(compared) == 2


class Masked(Bigrams):
    """A network that keeps a tensor made for the length of its latest input."""

    def __init__(self) -> None:
        super().__init__(lambda model: 0.0)
        self.mask = torch.ones(0)

    def forward(self, token_ids: Tensor) -> Tensor:
        length = token_ids.shape[1]
        if len(self.mask) != length:
            self.mask = torch.ones(length)
        return super().forward(token_ids) * self.mask[:, None]


def test_a_network_of_ones_own_may_change_in_an_evaluation(dataset: Dataset) -> None:
    training = Training(dataset, True, model=Masked(), optimizer="adamw")
    with training.under_way():
        training.take(5)
        before = training.model.mask  # kept, or the next one may lie in its place
        training.model(torch.zeros(1, 3, dtype=torch.int64))
        training.model(torch.zeros(1, 12, dtype=torch.int64))
        for _ in range(5):
            training.descent.step(training.state, done=0.5, is_unchanged=True)
        assert training.step.recorded == 2 and training.model.mask is not before


def test_what_a_callback_changes_in_every_step_ends_in_steps_that_are_not_recorded(
    dataset: Dataset,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("minigpt.training.captured._MOST", 2)
    training = Training(dataset, True)
    with training.under_way():
        for decay in range(12):
            training.optimizers[-1].param_groups[0]["weight_decay"] = decay / 100
            training.take(2)
    said = capsys.readouterr().err
    assert said.count("a callback changes numbers of the training again and again") == 1


def test_a_graph_that_leaves_no_memory_for_evaluations_is_given_up(
    dataset: Dataset, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PretendCuda, "is_nearly_full", lambda _: True)
    training = Training(dataset, True)
    weights = training.train()
    said = capsys.readouterr().err
    assert said.count("hardly any of the GPU's memory is left") == 1
    assert training.recorded == 0
    torch.testing.assert_close(weights, Training(dataset, False).train(), rtol=0, atol=1e-6)


def test_what_fails_while_it_is_recorded_is_trained_as_it_is(
    dataset: Dataset,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = PretendCuda.recording

    @contextlib.contextmanager
    def failing(self: PretendCuda) -> Iterator[Replayed]:
        with usual(self) as replayed:
            yield replayed
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate\nmore")

    with monkeypatch.context() as patch:
        patch.setattr(PretendCuda, "recording", failing)
        training = Training(dataset, True)
        with training.under_way():
            training.take(3)
            training.take(7)
    said = capsys.readouterr().err
    assert said.count("take longer: CUDA out of memory. Tried to allocate\n") == 1
    torch.testing.assert_close(
        list(training.model.parameters()), Training(dataset, False).train(), rtol=0, atol=1e-6
    )
