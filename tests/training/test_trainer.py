"""A training from text to run folder: the same seed gives the same weights, the best are kept, a
loss that diverges is tried again, and a training by time ends in time.
"""

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import minigpt
from minigpt import UserError
from minigpt.config import TextConfig, TrainConfig
from minigpt.data.batches import Dataset, TokenSequence, make_batches, windows_side_by_side
from minigpt.data.counting import CountingModel, fit_in_time
from minigpt.data.source import find_source
from minigpt.data.token_cache import prepare_tokens
from minigpt.measure.yardstick import Counting
from minigpt.model import GPT
from minigpt.runs.folder import (
    CHECKPOINT,
    METRICS,
    STEPS,
    WEIGHTS,
    read_config,
    read_metrics,
    read_steps,
)
from minigpt.runs.journal import Journal
from minigpt.runs.read_model import load_run
from minigpt.runs.state import is_training, state_of, texts_of_evaluations
from minigpt.runs.weights import read_best
from minigpt.training import workers
from minigpt.training.checkpoint import LAST, Learner, read_state
from minigpt.training.evaluation import evaluate_windows
from minigpt.training.gradients import BatchResult, set_gradients
from minigpt.training.loss import Loss
from minigpt.training.optimizer import chosen_optimizers
from minigpt.training.step import GradientDescent, StartedStep
from minigpt.training.trainer import Trainer
from tests.conftest import TINY, move_into, some_text, tiny_settings, train_tiny
from tests.training.runs import after_step, resume

TRAINING = {"train_loss", "train_bits_per_byte"}
VALIDATION = {"val_loss", "val_bits_per_byte", "val_right"}
OTHERS = {"step", "seconds", "done", "tokens_per_second", "counting_bits_per_byte"}
FIELDS = OTHERS | TRAINING | VALIDATION


def rows(folder: Path) -> list[dict[str, Any]]:
    return read_metrics(folder / METRICS)


# What a training leaves


def test_a_run_holds_every_file_but_its_picture_and_a_row_and_a_sample_for_every_evaluation(
    tiny_run: Path,
) -> None:
    names = {"config.json", "model.safetensors", "tokenizer.json", "metrics.jsonl"}
    names |= {"plan.json", "generation.json", "checkpoint/last.safetensors"}
    names |= {"checkpoint/previous.safetensors", ".lock", "steps.jsonl"}
    names |= {"journal/state.json", "journal/samples.jsonl"}
    found = {str(f.relative_to(tiny_run)) for f in tiny_run.rglob("*") if f.is_file()}
    assert found | {".lock"} == names
    assert [row["step"] for row in rows(tiny_run)] == [10, 20, 30]
    for row in rows(tiny_run):
        assert row.keys() == FIELDS
        assert all(math.isfinite(row[name]) and row[name] > 0 for name in FIELDS)
    assert all(a["seconds"] < b["seconds"] for a, b in pairwise(rows(tiny_run)))
    assert list(texts_of_evaluations(tiny_run)) == [10, 20, 30]


@pytest.mark.long
@pytest.mark.parametrize("is_there", [False, True])
def test_while_the_files_of_a_run_are_made_no_other_takes_its_place_and_a_failure_leaves_nothing(
    is_there: bool, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = Path("runs/mine")
    if is_there:
        out.mkdir(parents=True)

    def fail(place: Path, *_: Any, **__: Any) -> None:
        assert is_training(place)
        with pytest.raises(UserError, match="another process is training"), Journal(place):
            pass
        raise UserError("there is no room")

    monkeypatch.setattr("minigpt.training.folder.begin_run", fail)
    with pytest.raises(UserError, match="no room"):
        minigpt.train("my.txt", out=out, **tiny_settings())
    assert not out.exists()


def test_the_loss_falls(workplace: Path) -> None:
    folder = train_tiny(steps=60, num_evals=3, embedding_init="random")
    losses = [(row["train_loss"], row["val_loss"]) for row in rows(folder)]
    assert losses[0][0] > losses[1][0] > losses[2][0]
    assert losses[2][1] < losses[0][1] < math.log(300)


def test_the_weights_kept_are_those_of_the_best_evaluation(workplace: Path) -> None:
    """Judged by a text written backwards, learning to write forwards soon makes it worse."""
    Path("backwards.txt").write_text(some_text(200)[::-1])
    other = {"tokenizer": "char", "embedding_init": "random", "dropout": 0.0, "learning_rate": 5e-3}
    folder = train_tiny(validation="backwards.txt", steps=32, num_evals=8, emb_dim=32, **other)
    losses = [row["val_loss"] for row in rows(folder)]
    assert min(losses) < min(losses[0], losses[-1]) - 0.005
    run = load_run(folder)
    dataset = prepare_tokens(find_source(run.config.text), run.config.text)
    lengths = torch.tensor(run.tokenizer.byte_lengths())
    windows = windows_side_by_side(dataset.validation, 16, 10**6)
    result = evaluate_windows(run.model, windows, lengths, context_length=16)
    assert result.loss == pytest.approx(min(losses), rel=1e-6)
    state, best = read_state(folder), rows(folder)[losses.index(min(losses))]
    assert (state.step, state.best_loss, state.best_step) == (32, best["val_loss"], best["step"])
    assert read_best(folder / WEIGHTS) == {
        name: best[name] for name in ("val_loss", "val_bits_per_byte", "step")
    }


def test_the_same_seed_ends_with_the_same_weights_and_another_with_others(workplace: Path) -> None:
    """However often it is evaluated."""
    one, same, other = (
        load_file(train_tiny(seed=seed, num_evals=evals, dropout=0.2) / CHECKPOINT / LAST)
        for seed, evals in ((1, 1), (1, 4), (2, 1))
    )
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not any(torch.equal(one[name], other[name]) for name in one if "step" not in name)
    assert {f.name for f in (workplace / "runs").iterdir()} == {"my", "my-2", "my-3"}


def test_each_step_draws_other_random_numbers_for_dropout(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: list[int] = []
    after_step(monkeypatch, lambda at: True, lambda: seeds.append(torch.initial_seed()))
    train_tiny(dropout=0.2)
    assert len(seeds) == len({*seeds}) == TINY["steps"]


# What counting gives


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that each fit of the counting model was given."""
    seconds: list[float] = []

    def noted(tokens: TokenSequence, vocab_size: int, given: float) -> CountingModel:
        seconds.append(given)
        return fit_in_time(tokens, vocab_size, given)

    monkeypatch.setattr("minigpt.measure.yardstick.fit_in_time", noted)
    return seconds


@pytest.mark.parametrize("eval_tokens", [10**6, 50])
def test_counting_is_measured_on_the_tokens_that_the_model_is_evaluated_on(
    workplace: Path, eval_tokens: int
) -> None:
    folder = train_tiny(eval_tokens=eval_tokens)
    config = read_config(folder).text
    dataset = prepare_tokens(find_source(config), config)
    windows = list(windows_side_by_side(dataset.validation, 16, eval_tokens))
    assert sum(len(inputs) for inputs, _ in windows) <= eval_tokens
    counting = CountingModel(dataset.train[:], 300)
    bits = counting.bits_per_byte(windows, dataset.tokenizer.byte_lengths())
    found = [row["counting_bits_per_byte"] for row in rows(folder)]
    assert found == pytest.approx([bits, bits])


@pytest.mark.long
def test_counting_changes_nothing_that_is_learned(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = load_file(train_tiny(dropout=0.2) / CHECKPOINT / LAST)
    monkeypatch.setattr(Counting, "on_step", lambda *_: None)
    uncounted = load_file(train_tiny(dropout=0.2) / CHECKPOINT / LAST)
    assert all(torch.equal(counted[name], uncounted[name]) for name in counted)


@pytest.mark.long
@pytest.mark.parametrize("num_evals", [1, 8])
def test_it_counts_once_after_the_first_step_and_before_the_first_evaluation(
    workplace: Path, fits: list[float], monkeypatch: pytest.MonkeyPatch, num_evals: int
) -> None:
    before: list[int] = []
    after_step(monkeypatch, lambda step: True, lambda: before.append(len(fits)))
    run = train_tiny(num_evals=num_evals)
    assert before == [0] + [1] * 7
    assert all(row["counting_bits_per_byte"] > 0 for row in rows(run))
    resume(run, steps=12)
    assert len(fits) == 2
    assert len({row["counting_bits_per_byte"] for row in rows(run)}) == 1


@pytest.mark.long
def test_counting_takes_little_of_the_minutes(
    workplace: Path, fits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    train_by_time(monkeypatch, 100.0, tick=1.0, minutes=10.0)
    train_tiny()
    by_time, by_steps = fits
    assert 1.0 <= by_time <= 0.02 * 600
    assert 1.0 <= by_steps <= 1.5


# Batches


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_the_loss_in_training_is_for_a_byte_however_tokens_are_split(
    workplace: Path, share: float
) -> None:
    """Of a first step: nats a token, times the tokens, over the bytes that they decode to."""
    folder = train_tiny(token_split_prob=share, steps=1, num_evals=1)
    (row,), config = rows(folder), read_config(folder)
    dataset = prepare_tokens(find_source(config.text), config.text)
    _, targets = make_batches(dataset, config.training, 16).batch(step=0, done=0.0)
    size = sum(len(dataset.tokenizer.decode(ids).encode()) for ids in targets.tolist())
    bits = row["train_loss"] / math.log(2) * targets.numel() / size
    assert row["train_bits_per_byte"] == pytest.approx(bits)


# Parts of a batch


def tokens_of_text() -> Dataset:
    text = TextConfig(("my.txt",), vocab_size=300)
    return prepare_tokens(find_source(text), text)


def descent(model: GPT, **changes: Any) -> GradientDescent:
    """On my.txt, six windows of eight tokens in a step."""
    dataset = tokens_of_text()
    config = TrainConfig(**({"batch_size": 6, **ON_CPU} | changes))
    return GradientDescent(
        Learner.of(model, chosen_optimizers(None, model, config), config),
        make_batches(dataset, config, context_length=8),
        config,
        loss=None,
        schedule=lambda done: 1.0 - done,
        byte_lengths=torch.tensor(dataset.tokenizer.byte_lengths()),
    )


def gradients(count: int, **changes: Any) -> tuple[list[Tensor], BatchResult]:
    """Of an early step, by `count` workers."""
    model = small_gpt()
    torch.manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    parameters = list(model.parameters())
    with workers.team(count):
        figures = set_gradients(
            Loss(model),
            parameters,
            descent(model, **changes).parts(step=3, done=0.0),
            torch.tensor(tokens_of_text().tokenizer.byte_lengths()),
            grad_clip=1e5,
            precision=torch.float32,
        )
    result = BatchResult.of(figures)
    found = [p.grad for p in parameters if p.grad is not None]
    assert len(found) == len(parameters)
    norm = torch.cat([g.flatten() for g in found]).norm().item()
    assert result.gradient_norm == pytest.approx(norm, rel=1e-5)
    return found, result


@pytest.mark.parametrize("warmup_context", [None, 3])
def test_parts_of_any_sizes_have_the_gradients_of_the_whole_batch(
    workplace: Path, warmup_context: int | None
) -> None:
    """Six windows in parts of four and of two, say, by so many workers."""
    expected, whole = gradients(1, warmup_context=warmup_context)
    for micro in (1, 4, 5, 6, 100):
        for count in (1, 2, 3):
            found, same = gradients(count, warmup_context=warmup_context, micro_batch_size=micro)
            assert same.loss == pytest.approx(whole.loss, rel=1e-6), (micro, count)
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("done", [0.0, 1.0])
def test_a_batch_is_the_same_in_parts(workplace: Path, done: float) -> None:
    """Of windows that are cut into three pieces at first, two windows in each part."""
    kind: dict[str, Any] = {"token_split_prob": 0.3, "warmup_context": 3}
    (whole,) = descent(small_gpt(), **kind).parts(step=3, done=done)
    parts = descent(small_gpt(), micro_batch_size=2, **kind).parts(step=3, done=done)
    assert [len(inputs) for inputs, _ in parts] == [2 if done == 1.0 else 6] * 3
    for i in (0, 1):
        assert torch.equal(torch.cat([part[i] for part in parts]), whole[i])


def test_parts_are_never_fewer_than_the_workers_because_a_part_could_be_larger(
    workplace: Path,
) -> None:
    with workers.team(2):
        parts = descent(small_gpt(), micro_batch_size=100).parts(step=0, done=1.0)
        assert [len(inputs) for inputs, _ in parts] == [3, 3]


def test_the_share_of_a_part_in_float64_is_not_rounded_to_float32() -> None:
    """A seventh of the targets are in the first part."""
    torch.manual_seed(0)
    model = torch.nn.Embedding(9, 9).double()
    inputs = torch.arange(7)[:, None]  # (7, 1)
    parts = [(inputs[:1], inputs[:1] + 1), (inputs[1:], inputs[1:] + 1)]
    settings = {"grad_clip": 1e5, "precision": torch.float32}
    set_gradients(Loss(model), [model.weight], parts, torch.ones(9, dtype=torch.int64), **settings)
    expected = (model.weight.detach().softmax(1) - torch.eye(9).roll(1, 1)) / 7
    expected[7:] = 0.0
    torch.testing.assert_close(model.weight.grad, expected, rtol=0, atol=1e-15)


# Steps whose figures come late, as those of a GPU


class Late(StartedStep):
    """A step that a device goes on computing by itself."""

    is_computed_later = True

    def __init__(self, number: int, learning_rate: float, figures: Tensor):
        self.number = number
        self.learning_rate = learning_rate
        self._late = figures

    def result(self) -> BatchResult:
        return BatchResult.of(self._late)


class Seen:
    """The steps that a callback is told of, and those that have been taken by then."""

    def __init__(self, hears_late: bool):
        self.hears_late = hears_late
        self.steps: list[tuple[int, int]] = []

    def on_step(self, trainer: Trainer, figures: dict[str, Any]) -> None:
        self.steps.append((figures["step"], trainer.state.step))


@pytest.mark.parametrize("hears_late", [True, False])
def test_a_step_is_told_while_the_next_is_computed_if_all_callbacks_agree(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, hears_late: bool
) -> None:
    """All are told, in order, and before each evaluation and checkpoint all that were taken."""
    usual, late = Path("usual"), Path("late")
    settings: dict[str, Any] = {"steps": 8, "num_evals": 2, "batch_size": 2, "seed": 1}
    config = TrainConfig(**settings, **ON_CPU)
    for folder in (usual, late):
        torch.manual_seed(0)
        seen = Seen(hears_late)
        Trainer(small_gpt(), tokens_of_text(), config, out=folder, callbacks=[seen]).train()
        monkeypatch.setattr("minigpt.training.step.StartedStep", Late)

    assert [told for told, _ in seen.steps] == list(range(1, 9))
    behind = [taken - told for told, taken in seen.steps]
    # After the first step there is a checkpoint, after the fourth and the last an evaluation.
    assert behind == ([0, 1, 1, 0, 1, 1, 1, 0] if hears_late else [0] * 8)

    losses = [[row["loss"] for row in read_steps(folder / STEPS)] for folder in (usual, late)]
    assert losses[0] == losses[1] and len(losses[0]) == 8
    assert [row["train_loss"] for row in rows(late)] == [row["train_loss"] for row in rows(usual)]
    weights = [load_file(folder / CHECKPOINT / LAST) for folder in (usual, late)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_a_step_knows_whether_a_callback_may_have_changed_what_it_computes_with(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that hears late looks at figures alone; any other may change the model at its events."""

    class Evaluated:
        def on_evaluation(self, trainer: Trainer, figures: dict[str, Any]) -> None:
            pass

    usual = GradientDescent.step
    unchanged: list[bool] = []

    def noting(self: GradientDescent, *args: Any, is_unchanged: bool, **rest: Any) -> StartedStep:
        unchanged.append(is_unchanged)
        return usual(self, *args, is_unchanged=is_unchanged, **rest)

    monkeypatch.setattr(GradientDescent, "step", noting)
    config = TrainConfig(steps=8, num_evals=2, batch_size=2, **ON_CPU)
    expected = {
        "none": (None, [False] + [True] * 7),
        "of figures": (Seen(hears_late=True), [False] + [True] * 7),
        "of steps": (Seen(hears_late=False), [False] * 8),
        "of evaluations": (Evaluated(), [False] + [True] * 3 + [False] + [True] * 3),
    }
    for callback, is_unchanged in expected.values():
        unchanged.clear()
        callbacks = [] if callback is None else [callback]
        Trainer(small_gpt(), tokens_of_text(), config, callbacks=callbacks).train()
        assert unchanged == is_unchanged


# A loss that diverges


def assert_all_finite(folder: Path) -> None:
    assert all(tensor.isfinite().all() for tensor in load_file(folder / WEIGHTS).values())
    for line in (folder / METRICS).read_text().splitlines():
        json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


def test_a_loss_that_is_no_number_ends_the_training_and_keeps_the_best(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, calls = GPT.loss, iter(range(100))

    def spoiled(self: GPT, inputs: Tensor, targets: Tensor) -> Tensor:
        return plain(self, inputs, targets) * (math.nan if next(calls) == 7 else 1.0)

    monkeypatch.setattr(GPT, "loss", spoiled)
    rate = r"train again with --learning-rate 0.001 or less"
    with pytest.raises(UserError, match=f"loss became nan at step 7; .*runs/my; {rate}"):
        train_tiny(learning_rate=4e-3, num_workers=1)
    assert [row["step"] for row in rows(Path("runs/my"))] == [4]
    assert_all_finite(Path("runs/my"))


@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_a_step_that_diverges_on_a_processor_changes_no_weight(
    precision: str, workplace: Path
) -> None:
    model = small_gpt()
    config = TrainConfig(**ON_CPU | {"precision": precision, "steps": 4, "batch_size": 2})
    weights: list[list[Tensor]] = []  # after each step

    def spoiled(model: torch.nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
        return model(inputs).square().mean() * (math.nan if weights else 1.0)

    class Noted:
        def on_step(self, trainer: Trainer, figures: Any) -> None:
            weights.append([p.detach().clone() for p in model.parameters()])

    trainer = Trainer(model, tokens_of_text(), config, loss=spoiled, callbacks=[Noted()])
    with pytest.raises(UserError, match="the loss became nan at step 1"):
        trainer.train()
    assert len(weights) == 1
    assert all(map(torch.equal, model.parameters(), weights[0]))


@pytest.mark.parametrize("step", [0, 3])
def test_weights_that_become_nan_in_the_step_before_an_evaluation_are_not_kept(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """The loss of that step was still a number; that of the evaluation is none."""
    rates = iter([1e-3] * step + [math.inf] * 100)
    monkeypatch.setattr("minigpt.training.step.rise_and_fall", lambda done, **_: next(rates))
    with pytest.raises(UserError, match="--learning-rate"):
        train_tiny(num_evals=8)
    folder = Path("runs/my")
    assert folder.exists() == (step > 0)  # nothing was learned in the first step
    if step:
        assert all(w.isfinite().all() for w in load_file(folder / WEIGHTS).values())
        assert len(rows(folder)) == step


TALES = Path(__file__).parents[2] / "data" / "tales.txt"
FASTER: dict[str, Any] = {"steps": 80, "num_evals": 1, "emb_dim": 32, "learning_rate": 0.02}


@pytest.fixture(scope="module")
def english(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learned from tales, to train further."""
    folder = tmp_path_factory.mktemp("english")
    with pytest.MonkeyPatch.context() as patch:
        move_into(folder, patch)
        Path("tales.txt").write_text(TALES.read_text()[:100_000])
        return folder / train_tiny("tales.txt", out="english", **FASTER)


FURTHER: dict[str, Any] = {"steps": 24, "num_evals": 4, "batch_size": 4, "device": "cpu"}
FOREIGN = {
    "Russian": "Жили-были старик да старуха. Была у них курочка ряба.\n" * 100,
    "Python": "def gcd(a: int, b: int) -> int:\n    return a if b == 0 else gcd(b, a % b)\n\n" * 80,
}


@pytest.mark.long
@pytest.mark.parametrize("language", FOREIGN)
def test_a_model_is_trained_further_on_what_it_does_not_know_yet(
    language: str, english: Path, workplace: Path
) -> None:
    """Its loss begins far above that of guessing, but it falls."""
    Path("foreign.txt").write_text(FOREIGN[language])
    run = minigpt.train("foreign.txt", init=str(english), **FURTHER)
    losses = [row["train_loss"] for row in rows(run)]
    assert losses == sorted(losses, reverse=True)
    if language == "Russian":
        assert read_state(run).first_loss > math.log(300) + 2.0


@pytest.mark.parametrize("begins", ["from nothing", "from a model that knows the text"])
def test_a_loss_that_grows_ends_the_training(begins: str, english: Path, workplace: Path) -> None:
    init = {} if begins == "from nothing" else {"init": str(english)}
    shape = TINY if begins == "from nothing" else FURTHER
    grew = (
        r"the loss grew from \d+\.\d to \d+\.\d nats a token at step \d; .*--learning-rate 2e\+02"
    )
    with pytest.raises(UserError, match=grew):
        minigpt.train("my.txt", **shape, **init, learning_rate=1000.0)


@pytest.mark.long
def test_a_loss_that_grows_from_far_above_guessing_ends_the_training_also_once_resumed(
    english: Path, workplace: Path
) -> None:
    """It is compared with the loss of the first step, before the interruption."""
    Path("foreign.txt").write_text(FOREIGN["Russian"])
    run = minigpt.train("foreign.txt", init=str(english), **FURTHER)
    first_loss = read_state(run).first_loss
    grew = f"the loss grew from {first_loss:.1f} to "
    with pytest.raises(UserError, match=grew):
        resume(run, steps=60, learning_rate=1000.0)


def trainer(model: GPT, config: TrainConfig, **changes: Any) -> Trainer:
    """A training of a model in the folder run."""
    dataset = tokens_of_text()
    return Trainer(model, dataset, config, out="run", **changes)


ON_CPU: dict[str, Any] = {"device": "cpu", "precision": "float32"}


def small_gpt() -> GPT:
    return GPT(minigpt.GPTConfig(300, context_length=8, emb_dim=8, num_layers=1, num_heads=1))


def test_weights_that_are_not_finite_are_refused_before_the_first_step(workplace: Path) -> None:
    model = small_gpt()
    model.final_norm.weight.data.fill_(math.nan)
    with pytest.raises(UserError, match="cannot train from these weights"):
        trainer(model, TrainConfig(steps=1, batch_size=2, device="cpu")).train()
    assert not Path("run").exists()


def test_gradients_that_the_caller_has_left_are_not_learned_from(workplace: Path) -> None:
    config = TrainConfig(steps=1, num_evals=1, batch_size=2, **ON_CPU)
    clean, used = small_gpt(), small_gpt()
    used.load_state_dict(clean.state_dict())
    for parameter in used.parameters():
        parameter.grad = torch.ones_like(parameter)
    for model in (clean, used):
        Trainer(model, tokens_of_text(), config).train()
    assert all(map(torch.equal, clean.parameters(), used.parameters()))


def test_a_trainer_that_goes_on_tells_its_journal_how_that_ended_too(workplace: Path) -> None:
    config = TrainConfig(steps=2, num_evals=1, batch_size=2, **ON_CPU)
    goes_on = trainer(small_gpt(), config)
    goes_on.train()
    first = state_of(Path("run"))
    goes_on.resume()
    second = state_of(Path("run"))
    assert (first.state, second.state) == ("done", "done")
    assert second.facts.said["began"] > first.facts.said["began"]


def test_a_callback_that_fails_after_the_end_leaves_the_last_checkpoint_as_it_is(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model has its best weights by then, and the optimizer the state of the last ones."""
    last = Path("run") / CHECKPOINT / LAST
    seen: list[bytes] = []

    class Fails:
        def on_end(self, *_: Any) -> None:
            seen.append(last.read_bytes())
            raise ZeroDivisionError

    config = TrainConfig(steps=2, num_evals=1, batch_size=2, **ON_CPU)
    with pytest.raises(ZeroDivisionError):
        trainer(small_gpt(), config, callbacks=[Fails()]).train()
    assert seen == [last.read_bytes()] and read_state(Path("run")).finished
    said = capsys.readouterr().err
    assert "the run is kept in run\n" in said and "can be resumed" not in said


@pytest.mark.parametrize("ratio", [0.0, 1.0])  # at the end the weights hardly move, or still do
def test_the_better_of_last_weights_and_average_are_kept(workplace: Path, ratio: float) -> None:
    """And the model has them at the end."""
    config = TrainConfig(steps=40, num_evals=1, batch_size=2, min_lr_ratio=ratio, **ON_CPU)
    one = trainer(small_gpt(), config)
    one.train()

    def loss() -> float:
        lengths = torch.ones(300, dtype=torch.int64)
        validation = one.dataset.validation
        windows = windows_side_by_side(validation, 8, 10**6)
        found = evaluate_windows(one.model, windows, lengths, context_length=8)
        return found.loss

    kept, losses = loss(), []
    tensors = load_file(Path("run") / CHECKPOINT / LAST)
    for kind in ("model", "average"):
        names = [name for name in tensors if name.startswith(f"{kind}.")]
        state = {name.removeprefix(f"{kind}."): tensors[name] for name in names}
        one.model.load_state_dict(state, strict=False)
        losses.append(loss())
    assert one.state.best_loss == pytest.approx(min(losses), rel=1e-6)
    assert kept == pytest.approx(min(losses), rel=1e-6) != pytest.approx(max(losses))
    one.model.load_state_dict(load_file(Path("run") / WEIGHTS), strict=False)
    assert loss() == kept


@pytest.mark.parametrize(("changes", "at_once"), [({}, 3), ({"micro_batch_size": 2}, 2)])
def test_an_evaluation_is_tried_at_the_start_and_takes_as_many_windows_at_once_as_a_step(
    workplace: Path, changes: dict[str, Any], at_once: int
) -> None:
    """Memory that does not suffice is missed before the first step, not at the first evaluation."""
    config = TrainConfig(steps=4, num_evals=2, batch_size=3, device="cpu", **changes)
    one = trainer(small_gpt(), config)
    seen: list[tuple[int, int]] = []  # step and windows of each part of an evaluation

    def look(_: Any, inputs: tuple[Tensor]) -> None:
        if not one.model.training:
            seen.append((one.state.step, len(inputs[0])))

    one.model.token_embedding.register_forward_pre_hook(look)
    one.train()
    for step in (0, 2, 4):
        assert max(windows for at, windows in seen if at == step) == at_once


# Training by time, with a clock that goes on only when it is read


def train_by_time(
    monkeypatch: pytest.MonkeyPatch, deadline: float, tick: float, minutes: float = 5.0
) -> Trainer:
    """A training at its end, which began at second 0; reading the clock takes a tick."""
    ticks = iter(range(10_000))  # or it does not end
    config = TrainConfig(minutes=minutes, num_evals=5, batch_size=2, device="cpu")
    reserve = 60 * minutes - deadline
    with monkeypatch.context() as patch:
        patch.setattr("minigpt.training.pace.now", lambda: tick * next(ticks))
        one = trainer(small_gpt(), config, started=0.0, reserve=reserve, callbacks=[Counting()])
        one.train()
    return one


@pytest.mark.long
def test_a_training_by_time_ends_in_time_with_its_evaluations_spread_over_it(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = train_by_time(monkeypatch, 200.0, tick=1.0).state
    steps = [row["step"] for row in rows(Path("run"))]
    assert len(steps) == state.evaluations == 5
    assert 60 < state.step == steps[-1] and state.seconds <= 200
    gaps = [b - a for a, b in pairwise([0, *steps])]
    assert max(gaps) - min(gaps) <= 5


@pytest.mark.parametrize(("minutes", "seconds"), [(5.0, 5.0), (0.5, 3.0)])
def test_a_training_that_starts_too_late_still_learns_a_little(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, minutes: float, seconds: float
) -> None:
    """Reading the text may have taken all the time, on a busy machine say."""
    state = train_by_time(monkeypatch, -60.0, 0.1, minutes).state
    assert state.step >= 8 and seconds <= state.seconds <= seconds + 1.0
    assert rows(Path("run"))[-1]["step"] == state.step
    assert state.best_loss is not None and load_file(Path("run") / WEIGHTS)


@pytest.mark.long
def test_at_most_half_a_minute_of_learning_is_in_no_checkpoint(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the usual settings, of steps that take a second each."""
    time = [0.0]
    saved = [0.0]

    class Clock:
        def on_step(self, trainer: Trainer, figures: dict[str, Any]) -> None:
            time[0] += 1.0

        def on_save(self, trainer: Trainer, figures: dict[str, Any]) -> None:
            saved.append(time[0])

    monkeypatch.setattr("minigpt.training.pace.now", lambda: time[0])
    config = TrainConfig(steps=70, num_evals=1, batch_size=2, device="cpu")
    trainer(small_gpt(), config, callbacks=[Clock()]).train()
    gaps = [b - a for a, b in pairwise(saved)]
    assert max(gaps) == pytest.approx(30, abs=1.5), saved
