"""A part of one's own in the place of one of ours: small programs as a researcher would write them,
through the public names only.
"""

import csv
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import SGD, Adam, AdamW, Optimizer

import minigpt
from minigpt import GPT, GPTConfig, StopTraining, TrainConfig, Trainer, UserError
from minigpt.data.batches import Dataset
from tests.conftest import move_into

SHAPE = GPTConfig(300, context_length=16, emb_dim=16, num_layers=1, num_heads=2)
SHORT: dict[str, Any] = {"steps": 12, "num_evals": 3, "batch_size": 4, "device": "cpu"}
CONFIG = TrainConfig(**SHORT, precision="float32")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    with pytest.MonkeyPatch.context() as monkeypatch:
        move_into(tmp_path_factory.mktemp("text"), monkeypatch)
        return minigpt.prepare("my.txt", vocab_size=300)


@pytest.fixture(autouse=True)
def here(workplace: Path) -> Path:
    """An empty folder but for my.txt."""
    torch.manual_seed(0)
    return workplace


def losses(run: Path | None) -> list[float]:
    assert run is not None
    with open(run / "metrics.jsonl") as rows:
        return [float(row.split('"val_loss": ')[1].split(",")[0]) for row in rows]


def bits(trainer: Trainer) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}


def assert_equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


# Networks of one's own


class Bigram(nn.Module):
    """Logits that depend on the last token alone."""

    def __init__(self, vocab_size: int):
        super().__init__()
        self.table = nn.Embedding(vocab_size, vocab_size)

    def forward(self, ids: Tensor) -> Tensor:
        return self.table(ids)


class LSTM(nn.Module):
    def __init__(self, vocab_size: int, width: int = 16):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, vocab_size)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.lstm(self.embedding(ids))[0])


class Warm(GPT):
    """A GPT that learns a temperature of its own."""

    def __init__(self, config: GPTConfig):
        super().__init__(config)
        self.log_temperature = nn.Parameter(torch.zeros(()))

    def forward(self, ids: Tensor, **caches: Any) -> Tensor:
        return super().forward(ids, **caches) / self.log_temperature.exp()


class Square(nn.Module):
    """A feed-forward of one's own."""

    def __init__(self, width: int = 16):
        super().__init__()
        self.wide, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(F.relu(self.wide(x)).square())


def test_1_a_gpt_is_trained(dataset: Dataset) -> None:
    run = Trainer(GPT(SHAPE), dataset, CONFIG, out="runs/mine").train()
    assert losses(run)[-1] < losses(run)[0]
    assert minigpt.load(run).generate("the", max_new_tokens=5, seed=0).startswith("the")


def test_2_a_loss_with_label_smoothing_is_minimised_and_the_plain_one_reported(
    dataset: Dataset,
) -> None:
    def smoothed(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
        logits = model(inputs).flatten(0, 1)
        return F.cross_entropy(logits, targets.flatten(), label_smoothing=0.1)

    trainer = Trainer(GPT(SHAPE), dataset, CONFIG, out="runs/mine", loss=smoothed)
    assert losses(trainer.train())[-1] < losses(Path("runs/mine"))[0]


def test_3_a_loss_four_times_as_large_trains_and_reports_the_same(dataset: Dataset) -> None:
    """Where the gradients are clipped to the same norm."""

    def loss(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())

    steps = []
    for factor in (1.0, 4.0):
        torch.manual_seed(0)
        config = TrainConfig(**SHORT, precision="float32", grad_clip=1e-3)
        seen = Seen()
        of = lambda m, x, y, factor=factor: factor * loss(m, x, y)  # noqa: E731
        Trainer(GPT(SHAPE), dataset, config, loss=of, callbacks=[seen]).train()
        steps.append(seen.losses)
    assert steps[0] == pytest.approx(steps[1], rel=1e-4) and steps[0][-1] < steps[0][0]


# Optimizers


class Lion(Optimizer):
    """As somebody writes it ("Symbolic Discovery of Optimization Algorithms", Chen et al. 2023); it
    counts its steps in a number that is no tensor."""

    def __init__(self, params: Iterable[Any], lr: float = 1e-3):
        super().__init__(params, {"lr": lr, "taken": 0})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            group["taken"] += 1
            for p in group["params"]:
                state = self.state[p]
                state["count"] = state.get("count", 0) + 1
                momentum = state.setdefault("momentum", torch.zeros_like(p))
                p.add_((0.9 * momentum + 0.1 * p.grad).sign(), alpha=-group["lr"])
                momentum.lerp_(p.grad, 0.01)


def test_4_lion_as_a_list(dataset: Dataset) -> None:
    model = GPT(SHAPE)
    optimizers = [Lion(model.parameters(), lr=3e-3)]
    run = Trainer(model, dataset, CONFIG, out="runs/mine", optimizers=optimizers).train()
    assert losses(run)[-1] < losses(run)[0]
    assert optimizers[0].param_groups[0]["lr"] == 3e-3  # as before


def test_5_sgd_as_a_function_of_the_model(dataset: Dataset) -> None:
    def sgd(model: nn.Module) -> list[Optimizer]:
        return [SGD(model.parameters(), lr=0.5, momentum=0.9)]

    run = Trainer(GPT(SHAPE), dataset, CONFIG, out="runs/mine", optimizers=sgd).train()
    assert losses(run)[-1] < losses(run)[0]


def test_6_the_rates_of_groups_move_in_proportion(dataset: Dataset) -> None:
    rates: list[tuple[float, float]] = []

    class Watch:
        def on_step(self, trainer: Trainer, figures: dict[str, Any]) -> None:
            one, other = (group["lr"] for group in trainer.optimizers[0].param_groups)
            rates.append((one, other))

    def two_rates(model: GPT) -> list[Optimizer]:
        blocks = {"params": list(model.blocks.parameters()), "lr": 1e-3}
        return [AdamW([blocks, {"params": [model.token_embedding.weight], "lr": 1e-2}])]

    Trainer(GPT(SHAPE), dataset, CONFIG, optimizers=two_rates, callbacks=[Watch()]).train()
    assert all(other == pytest.approx(10 * one) for one, other in rates)
    assert max(rates)[0] <= 1e-3 and rates[-1][0] < 2e-4


# A schedule of one's own


class Rates:
    """The share that is done before each step, and the rates of the steps."""

    def __init__(self) -> None:
        self.done: list[float] = []
        self.rates: list[float] = []

    def __call__(self, done: float) -> float:
        self.done.append(done)
        return 1.0 - done / 2

    def on_step(self, trainer: Trainer, figures: dict[str, Any]) -> None:
        (group,) = {group["lr"] for group in trainer.optimizers[0].param_groups}
        assert figures["learning_rate"] == group
        self.rates.append(group)


def test_a_schedule_says_which_share_of_the_highest_rate_a_step_has(dataset: Dataset) -> None:
    config = replace(CONFIG, learning_rate=1e-3)
    seen = Rates()
    trainer = Trainer(GPT(SHAPE), dataset, config, schedule=seen, callbacks=[seen])
    trainer.train()
    assert seen.done == [step / 12 for step in range(12)]
    assert seen.rates == [1e-3 * (1.0 - done / 2) for done in seen.done]
    assert {group["lr"] for group in trainer.optimizers[0].param_groups} == {1e-3}  # afterwards


def test_a_constant_schedule_is_that_of_a_config_without_rise_and_fall(dataset: Dataset) -> None:
    def train(**changes: Any) -> Trainer:
        torch.manual_seed(0)
        config = replace(CONFIG, warmup_ratio=0.0, min_lr_ratio=changes.pop("min_lr_ratio", 0.0))
        trainer = Trainer(GPT(SHAPE), dataset, config, **changes)
        trainer.train()
        return trainer

    constant, usual = train(schedule=lambda done: 1.0), train(min_lr_ratio=1.0)
    assert_equal(bits(constant), bits(usual))


def test_a_training_with_a_schedule_is_resumed_bit_for_bit(dataset: Dataset) -> None:
    def train(out: str, *callbacks: object) -> Trainer:
        torch.manual_seed(0)
        own: Any = {"schedule": Rates(), "callbacks": callbacks}
        return Trainer(GPT(SHAPE), dataset, CONFIG, out=out, **own)

    whole, parts = train("runs/whole"), train("runs/parts")
    whole.train()
    with pytest.raises(ZeroDivisionError):
        train("runs/parts", Fails(5)).train()
    parts.resume()
    assert_equal(bits(parts), bits(whole))


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ("cosine", "schedule must be a function of the share that is done, got str"),
        (lambda done: None, "schedule must return a number, got NoneType"),
    ],
    ids=["a name", "None"],
)
def test_what_is_no_schedule_is_refused(schedule: Any, words: str, dataset: Dataset) -> None:
    with pytest.raises(UserError, match=words):
        Trainer(GPT(SHAPE), dataset, CONFIG, schedule=schedule).train()


# Resuming


KINDS: dict[str, Any] = {
    "Lion": lambda model: [Lion(model.parameters(), lr=3e-3)],
    "SGD": lambda model: [SGD(model.parameters(), lr=0.1, momentum=0.9)],
    "Adam": lambda model: [Adam(model.parameters(), lr=3e-3, amsgrad=True, fused=False)],
    "two": lambda model: [
        Lion(model.blocks.parameters(), lr=1e-3),
        SGD([model.token_embedding.weight], lr=0.1, momentum=0.9),
    ],
}


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_a_training_with_any_optimizers_is_resumed_bit_for_bit(kind: str, dataset: Dataset) -> None:
    def train(out: str, *callbacks: object) -> Trainer:
        torch.manual_seed(0)
        own: Any = {"optimizers": KINDS[kind], "callbacks": callbacks}
        return Trainer(GPT(SHAPE), dataset, CONFIG, out=out, **own)

    whole = train("runs/whole")
    whole.train()
    with pytest.raises(ZeroDivisionError):
        train("runs/parts", Fails(5)).train()
    parts = train("runs/parts")
    parts.resume()
    assert_equal(bits(parts), bits(whole))
    files = [load_file(f"runs/{name}/checkpoint/last.safetensors") for name in ("whole", "parts")]
    assert_equal(*files)
    for one, other in zip(whole.optimizers, parts.optimizers, strict=True):
        assert one.state_dict()["param_groups"] == other.state_dict()["param_groups"]


def test_7_a_frozen_embedding_stays_as_it_is_with_two_workers_and_resumed(
    dataset: Dataset,
) -> None:
    config = TrainConfig(**SHORT, precision="float32", num_workers=2)

    def frozen(**changes: Any) -> Trainer:
        torch.manual_seed(changes.pop("seed", 0))
        model = GPT(SHAPE)
        model.token_embedding.weight.requires_grad_(False)
        return Trainer(model, dataset, config, **changes)

    before = GPT(SHAPE).token_embedding.weight  # by the same seed
    whole, parts = frozen(), frozen(out="runs/parts", callbacks=[Fails(5)])
    whole.train()
    with pytest.raises(ZeroDivisionError):
        parts.train()
    again = frozen(out="runs/parts", seed=1)
    again.resume()
    assert_equal(bits(again), bits(whole))
    assert torch.equal(again.model.token_embedding.weight, before)
    assert not again.model.token_embedding.weight.requires_grad


def test_8_a_bigram_table_is_trained_saved_and_loaded(dataset: Dataset) -> None:
    model, again = Bigram(300), Bigram(300)
    run = Trainer(model, dataset, CONFIG, out="runs/bigram").train()
    assert losses(run)[-1] < losses(run)[0]
    minigpt.load("runs/bigram", model=again)
    assert torch.equal(again.table.weight, model.table.weight)  # the best ones
    with pytest.raises(
        UserError, match=r"holds a network that is not minigpt's GPT: Bigram; .*model="
    ):
        minigpt.load("runs/bigram")


def test_9_and_10_an_lstm_through_train_learns_writes_and_scores(dataset: Dataset) -> None:
    model = LSTM(300)
    own: Any = {"model": model, "tokenizer": dataset.tokenizer}
    run = minigpt.train("my.txt", **own, out="runs/lstm", **SHORT)
    assert losses(run)[-1] < losses(run)[0]
    writer = minigpt.load("runs/lstm", model=LSTM(300))
    text = writer.generate("the", max_new_tokens=8, seed=0)
    assert text == minigpt.load("runs/lstm", model=model).generate("the", max_new_tokens=8, seed=0)
    assert writer.score("the fox").bits_per_byte > 0


def test_11_a_subclass_with_one_more_parameter(dataset: Dataset) -> None:
    model = Warm(SHAPE)
    Trainer(model, dataset, CONFIG, out="runs/warm").train()
    assert model.log_temperature.item() != 0.0
    again = Warm(SHAPE)
    writer = minigpt.load("runs/warm", model=again)
    assert again.log_temperature.item() == model.log_temperature.item()
    assert writer.generate("the", max_new_tokens=3, seed=0).startswith("the")


def test_12_a_foreign_feed_forward_is_refused_without_the_model_and_right_with_it(
    dataset: Dataset,
) -> None:
    def squared() -> GPT:
        model = GPT(SHAPE)
        model.blocks[0].feed_forward = Square()
        return model

    model, again = squared(), squared()
    Trainer(model, dataset, CONFIG, out="runs/squared").train()
    with pytest.raises(
        UserError, match=r"minigpt's GPT: GPT with Square as blocks\.0\.feed_forward"
    ):
        minigpt.load("runs/squared")
    minigpt.load("runs/squared", model=again)
    ids = torch.arange(16)[None]
    assert torch.equal(again.eval()(ids), model.eval()(ids))


# Compiled networks


@pytest.mark.parametrize(
    "what",
    ["in parallel", *(pytest.param(what, marks=pytest.mark.long) for what in ("all", "a block"))],
)
def test_a_compiled_or_parallel_gpt_is_trained_and_read_as_a_gpt(
    what: str, dataset: Dataset
) -> None:
    config = replace(CONFIG, interpolate=True)
    plain, model = GPT(SHAPE), GPT(SHAPE)
    model.load_state_dict(plain.state_dict())
    given: nn.Module = model
    if what == "all":
        given = torch.compile(model, backend="eager")
    elif what == "in parallel":
        given = nn.DataParallel(model)
    else:
        model.blocks[0] = torch.compile(model.blocks[0], backend="eager")

    Trainer(given, dataset, config, out="runs/compiled").train()
    Trainer(plain, dataset, config, out="runs/plain").train()
    found, expected = (load_file(f"runs/{n}/model.safetensors") for n in ("compiled", "plain"))
    assert found.keys() == expected.keys()
    text = minigpt.load("runs/compiled").generate("the", max_new_tokens=5, seed=0)
    assert text.startswith("the")

    trainer = Trainer(given, dataset, replace(config, steps=16), out="runs/compiled")
    trainer.resume()
    assert trainer.state.step == 16
    resumed = Trainer(GPT(SHAPE), dataset, replace(config, steps=20), out="runs/compiled")
    resumed.resume()
    assert resumed.state.step == 20


@pytest.mark.long
def test_a_compiled_network_of_ones_own_is_loaded_into_the_plain_one(dataset: Dataset) -> None:
    model, again = Bigram(300), Bigram(300)
    Trainer(torch.compile(model, backend="eager"), dataset, CONFIG, out="runs/bigram").train()
    with pytest.raises(UserError, match="not minigpt's GPT: Bigram"):
        minigpt.load("runs/bigram")
    minigpt.load("runs/bigram", model=again)
    assert torch.equal(again.table.weight, model.table.weight)
    minigpt.load("runs/bigram", model=torch.compile(Bigram(300), backend="eager"))


# Callbacks


class Seen:
    """Notes the loss of every step."""

    def __init__(self) -> None:
        self.losses: list[float] = []

    def on_step(self, trainer: Trainer, figures: dict[str, Any]) -> None:
        self.losses.append(figures["loss"])


class Fails:
    def __init__(self, step: int):
        self.step = step

    def on_step(self, trainer: Trainer, figures: dict[str, Any]) -> None:
        if figures["step"] == self.step:
            _ = 1 / 0


def test_13_a_callback_stops_the_training_as_if_its_time_were_over(dataset: Dataset) -> None:
    class Enough:
        def on_step(self, trainer: Trainer, figures: dict[str, Any]) -> None:
            if figures["step"] == 7:
                raise StopTraining

    trainer = Trainer(GPT(SHAPE), dataset, CONFIG, out="runs/mine", callbacks=[Enough()])
    run = trainer.train()
    assert run is not None and run.about()["finished"]
    assert trainer.figures["step"] == 7 and trainer.figures["done"] == 1.0


def test_14_a_callback_writes_csv(dataset: Dataset) -> None:
    class CSV:
        def on_start(self, trainer: Trainer, figures: dict[str, Any]) -> None:
            self.file = open("loss.csv", "w", newline="")  # noqa: SIM115
            self.rows = csv.writer(self.file)

        def on_step(self, trainer: Trainer, figures: dict[str, Any]) -> None:
            self.rows.writerow([figures["step"], figures["loss"]])

        def on_end(self, trainer: Trainer, figures: dict[str, Any]) -> None:
            self.file.close()

    Trainer(GPT(SHAPE), dataset, CONFIG, callbacks=[CSV()]).train()
    rows = Path("loss.csv").read_text().splitlines()
    assert [int(row.split(",")[0]) for row in rows] == list(range(1, 13))


def test_15_without_out_nothing_is_written_and_the_model_has_the_best_weights(
    dataset: Dataset, here: Path
) -> None:
    before = sorted(here.rglob("*"))
    model, evaluated = GPT(SHAPE), list[dict[str, Tensor]]()

    class Keep:
        def on_evaluation(self, trainer: Trainer, figures: dict[str, Any]) -> None:
            if figures["is_kept"]:
                evaluated.append(bits(trainer))

    trainer = Trainer(model, dataset, CONFIG, callbacks=[Keep()])
    assert trainer.train() is None
    assert sorted(here.rglob("*")) == before
    assert_equal(bits(trainer), evaluated[-1])


def test_16_a_processor_bans_a_letter(tiny_run: Path) -> None:
    writer = minigpt.load(tiny_run)
    size = writer.tokenizer.vocab_size
    banned = [i for i in range(size) if b"e" in writer.tokenizer.token_bytes(i)]

    def without_e(ids: np.ndarray, logits: np.ndarray) -> np.ndarray:
        logits[:, banned] = -np.inf
        return logits

    text = "".join(writer.stream("a", processors=[without_e], max_new_tokens=40, seed=0))
    assert len(text) > 20 and "e" not in text


def test_17_the_llama_preset(dataset: Dataset) -> None:
    shape = GPTConfig(300, "llama", context_length=16, emb_dim=16, num_layers=1, num_heads=2)
    model = GPT(shape)
    run = Trainer(model, dataset, CONFIG, out="runs/llama").train()
    assert losses(run)[-1] < losses(run)[0]
    assert not any("query_norm" in name for name, _ in model.named_parameters())
    assert minigpt.load(run).generate("the", max_new_tokens=3, seed=0).startswith("the")


# What cannot be: one line says so


class Bad:
    """Fails in whichever method it is told."""

    def __init__(self, event: str, error: Exception):
        setattr(self, event, self.fail)
        self.error = error

    def fail(self, trainer: Trainer, figures: dict[str, Any]) -> None:
        raise self.error


@pytest.mark.parametrize("event", ["on_step", "on_evaluation", "on_save"])
def test_a_callback_that_fails_is_named_and_the_run_is_kept(
    event: str, dataset: Dataset, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = Bad(event, KeyError("val_los"))
    with pytest.raises(KeyError):
        Trainer(GPT(SHAPE), dataset, CONFIG, out="runs/mine", callbacks=[bad]).train()
    said = capsys.readouterr().err
    assert f"callback Bad.{event} failed: KeyError: 'val_los'; the run is kept in runs/" in said
    trainer = Trainer(GPT(SHAPE), dataset, CONFIG, out="runs/mine")
    trainer.resume()
    assert trainer.state.step == 12
    steps = Path("runs/mine/steps.jsonl").read_text().splitlines()
    assert len(steps) == 12


def test_a_callback_that_fails_at_the_start_leaves_nothing(dataset: Dataset) -> None:
    with pytest.raises(ValueError, match="no disk"):
        callbacks = [Bad("on_start", ValueError("no disk"))]
        Trainer(GPT(SHAPE), dataset, CONFIG, out="runs/mine", callbacks=callbacks).train()
    assert not Path("runs/mine").exists()


class Pairs(nn.Module):
    """Makes logits of a wrong shape."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(300, 299)

    def forward(self, ids: Tensor) -> Any:
        return self.table(ids)


def frozen_gpt() -> GPT:
    return GPT(SHAPE).requires_grad_(False)


def lbfgs(model: nn.Module) -> list[Optimizer]:
    return [torch.optim.LBFGS(model.parameters())]


def of_another(model: nn.Module) -> list[Optimizer]:
    return [SGD(GPT(SHAPE).parameters(), lr=0.1)]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no module": ({"model": 7}, "model must be a torch.nn.Module, got int"),
    "no dataset": ({"dataset": "my.txt"}, "dataset must be what minigpt.prepare returns, got str"),
    "no config": ({"config": {"steps": 3}}, "config must be a minigpt.TrainConfig, got dict"),
    "no function": ({"loss": "mse"}, "loss must be a function of model, inputs and targets"),
    "no callbacks": ({"callbacks": 7}, "callbacks is a list: put the callback in brackets"),
    "no optimizers": ({"optimizers": lambda model: None}, "optimizers must be a list of them"),
    "no context": (
        {"model": lambda: Bigram(300), "context_length": 0},
        "context_length must be a whole number, at least 1, got 0",
    ),
    "nothing trained": ({"model": frozen_gpt}, "the model has no parameter that is trained"),
    "other tokens": (
        {"model": Pairs},
        r"returns \(2, 8, 299\); it must return logits \(2, 8, 300\)",
    ),
    "a larger GPT": (
        {"model": lambda: GPT(GPTConfig(301, emb_dim=16))},
        "the model has 301 tokens, but the dataset's tokenizer has 300",
    ),
    "two contexts": ({"context_length": 8}, "own context_length is 16; leave context_length out"),
    "a long context": (
        {"model": lambda: Bigram(300), "context_length": 5000},
        "too few for context_length 5,000",
    ),
    "a closure": ({"optimizers": lbfgs}, "LBFGS computes the loss several times in a step"),
    "no list": (
        {"optimizers": lambda model: SGD(model.parameters(), lr=0.1)},
        "optimizers is a list",
    ),
    "none": ({"optimizers": []}, "optimizers is empty"),
    "of another": (
        {"optimizers": of_another},
        "SGD has a parameter that does not belong to the model",
    ),
    "no number": (
        {"loss": lambda model, x, y: model(x).mean(-1)},
        r"loss must return one number, a tensor of shape \(\), got \(4, 16\)",
    ),
    "no tensor": ({"loss": lambda model, x, y: 1.0}, "loss must return a tensor, got float"),
    "constant": (
        {"loss": lambda model, x, y: torch.ones(())},
        "does not depend on any parameter that is trained",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_fit_is_refused_in_one_line(what: str, dataset: Dataset) -> None:
    changes, words = REFUSED[what]
    usual = {"model": lambda: GPT(SHAPE), "dataset": dataset, "config": CONFIG, "out": "runs/mine"}
    given: dict[str, Any] = usual | changes
    model = given.pop("model")
    with pytest.raises(UserError, match=words):
        Trainer(model() if callable(model) else model, **given).train()
    assert not Path("runs/mine").exists()


def test_a_model_in_evaluation_mode_is_trained_and_stays_in_it(dataset: Dataset) -> None:
    """And so does a part of it that is, as a batch norm that is not to change."""
    model = GPT(SHAPE).eval()
    modes: list[bool] = []
    model.register_forward_hook(lambda *_: modes.append(model.training))
    Trainer(model, dataset, CONFIG, loss=lambda m, x, y: m(x).logsumexp(-1).mean()).train()
    assert True in modes and not model.training

    model.train().blocks[0].eval()
    Trainer(model, dataset, CONFIG).train()
    assert model.training and not model.blocks[0].training


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("on_steps", "callback Mistyped has the method on_steps"),
        ("step", "has none of the methods"),
    ],
)
def test_a_callback_that_would_never_be_called_is_refused(
    name: str, refused: str, dataset: Dataset
) -> None:
    mistyped = type("Mistyped", (), {name: lambda *_: None})()
    with pytest.raises(UserError, match=refused):
        Trainer(GPT(SHAPE), dataset, CONFIG, callbacks=[mistyped])


@pytest.mark.long
def test_a_network_in_bfloat16_is_resumed_bit_for_bit(dataset: Dataset) -> None:
    def trainer(out: str, *callbacks: object) -> Trainer:
        torch.manual_seed(0)
        return Trainer(LSTM(300).bfloat16(), dataset, CONFIG, out=out, callbacks=callbacks)

    whole = trainer("runs/whole")
    whole.train()
    with pytest.raises(ZeroDivisionError):
        trainer("runs/parts", Fails(5)).train()
    parts = trainer("runs/parts")
    parts.resume()
    assert_equal(bits(parts), bits(whole))
    assert all(tensor.dtype == torch.bfloat16 for tensor in bits(parts).values())
