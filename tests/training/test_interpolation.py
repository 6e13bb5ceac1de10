"""At the end of a training the best weights on the line from the first to the trained ones are
kept, and time is kept for finding them.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import Tensor

import minigpt
from minigpt.config import GPTConfig
from minigpt.data.batches import windows_side_by_side
from minigpt.data.source import find_source
from minigpt.data.token_cache import prepare_tokens
from minigpt.model import GPT
from minigpt.runs.folder import CHECKPOINT, METRICS, NEARLY, WEIGHTS, kept_row, read_metrics
from minigpt.runs.read_model import load_run
from minigpt.training.checkpoint import LAST, TrainingState, read_state
from minigpt.training.evaluation import (
    SHARES_TRIED,
    Validation,
    best_share,
    evaluate_windows,
    tokens_to_search,
)
from minigpt.training.pace import Pace
from minigpt.training.weights import Weights
from tests.conftest import some_text

few = settings(max_examples=40, deadline=None)


# The line


def small_gpt(**changes: Any) -> GPT:
    torch.manual_seed(0)
    shape: dict[str, Any] = {"context_length": 4, "emb_dim": 8, "num_layers": 1, "num_heads": 2}
    return GPT(GPTConfig(7, **(shape | changes)))


def test_both_ends_of_the_line_are_exactly_the_first_and_the_trained_weights() -> None:
    one, other = torch.randn(1000), 100 * torch.randn(1000)
    first, trained = Weights({"w": one}), Weights({"w": other})
    assert torch.equal(first.lerp(trained, 0.0).tensors["w"], one)
    assert torch.equal(first.lerp(trained, 1.0).tensors["w"], other)
    quarter = first.lerp(trained, 0.25).tensors["w"]
    torch.testing.assert_close(quarter, 0.75 * one + 0.25 * other)


@pytest.mark.parametrize("is_tied", [True, False])
def test_every_weight_is_interpolated_once_and_comes_back(is_tied: bool) -> None:
    model = small_gpt(tie_embeddings=is_tied)
    first = Weights.trained(model).copy()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    trained = {name: weight.clone() for name, weight in model.state_dict().items()}

    quarter = first.lerp(Weights.trained(model), 0.25)
    for _ in range(2):
        with quarter.in_place(model):
            for name, parameter in model.named_parameters():
                torch.testing.assert_close(parameter.detach(), first.tensors[name] + 0.25)
        for name, weight in model.state_dict().items():
            assert torch.equal(weight, trained[name])


@given(minimum=st.integers(0, 80), slope=st.floats(0.1, 10.0))
@few
def test_the_largest_share_with_nearly_the_lowest_loss_is_found(minimum: int, slope: float) -> None:
    """Of a curve with a single minimum, by no more evaluations than time is kept for."""
    tried: list[float] = []

    def loss_at(share: float) -> float:
        tried.append(share)
        distance = share - minimum / 80
        return 1.0 + max(slope * distance, -distance)

    found = best_share(loss_at)
    assert len(set(tried)) <= SHARES_TRIED

    enough = (1 + NEARLY) * min(loss_at(eighth / 8) for eighth in range(1, 9))
    assert loss_at(found) <= enough
    assert all(loss_at(share) > enough for share in set(tried) if share > found)


@pytest.mark.parametrize("loss", [1.5, float("nan")])
def test_where_no_loss_is_lower_the_trained_weights_are_best(loss: float) -> None:
    assert best_share(lambda share: loss) == 1.0


def a_row(loss: float, **more: float) -> dict[str, float]:
    return {"val_loss": loss, **more}


def test_the_last_weights_are_kept_with_nearly_the_lowest_loss_too() -> None:
    """Only those on the line, and only if nothing before them is clearly better."""
    earlier = [a_row(1.0), a_row(0.9), a_row(0.95)]
    near, far = a_row(0.904, interpolation=1.0), a_row(0.905, interpolation=1.0)
    assert kept_row([*earlier, near]) is near
    assert kept_row([*earlier, far]) is earlier[1]
    assert kept_row([*earlier, a_row(0.9001)]) is earlier[1]
    assert kept_row([*earlier, near, a_row(0.903)])["val_loss"] == 0.903
    assert kept_row([]) == {}


# A training that uses it


def tuned(tiny_run: Path, out: str = "runs/new", **changes: Any) -> Path:
    """A run trained further on a text written backwards, at a rate that makes it forget how to
    write forwards; it is judged by a text with both."""
    Path("new.txt").write_text(some_text(300, seed=5)[::-1])
    Path("both.txt").write_text(some_text(300, seed=7) + some_text(300, seed=8)[::-1])
    usual: dict[str, Any] = {"steps": 40, "num_evals": 1, "batch_size": 4, "learning_rate": 0.03}
    usual |= {"device": "cpu", "precision": "float32", "token_split_prob": 0.0, "dropout": 0.0}
    usual["validation"] = "both.txt"
    return minigpt.train("new.txt", out=out, init=str(tiny_run), **(usual | changes))


def validation_loss(folder: Path) -> Callable[[dict[str, Tensor]], float]:
    """What the loss of a run's model is with other weights, on its whole validation text."""
    run = load_run(folder)
    tokens = prepare_tokens(find_source(run.config.text), run.config.text, tokenizer=run.tokenizer)
    lengths = torch.tensor(run.tokenizer.byte_lengths())

    def loss(weights: dict[str, Tensor]) -> float:
        run.model.load_state_dict(weights, strict=False)
        context_length = run.model.config.context_length
        found = evaluate_windows(
            run.model,
            windows_side_by_side(tokens.validation, context_length, 10**6),
            lengths,
            context_length=context_length,
        )
        return found.loss

    return loss


def of_checkpoint(folder: Path, kind: str) -> dict[str, Tensor]:
    tensors = load_file(folder / CHECKPOINT / LAST)
    prefix = f"{kind}."
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def test_the_weights_that_are_kept_lie_on_the_line_and_are_better_than_both_ends(
    workplace: Path, tiny_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is written of the end is said of them."""
    folder = tuned(tiny_run)
    told = capsys.readouterr()
    last, state = read_metrics(folder / METRICS)[-1], read_state(folder)
    share = last["interpolation"]
    assert 0.0 < share < 1.0
    assert f"lie {100 * share:g}% of the way from {tiny_run} to the trained ones" in told.err

    loss = validation_loss(folder)
    first, kept = of_checkpoint(folder, "first"), load_file(folder / WEIGHTS)
    ends = [of_checkpoint(folder, kind) for kind in ("model", "average")]
    trained = min(ends, key=loss)
    between = Weights(first).lerp(Weights(trained), share).tensors
    assert all(torch.equal(weight, kept[name]) for name, weight in between.items())
    assert loss(kept) < min(loss(first), loss(trained))
    assert loss(kept) == pytest.approx(last["val_loss"], rel=1e-6)
    assert (state.best_loss, state.best_step) == (last["val_loss"], 40)
    assert kept_row(read_metrics(folder / METRICS)) == last
    assert f"{last['val_bits_per_byte']:.4f} bits/byte" in told.out


@pytest.mark.long
def test_where_the_trained_weights_are_best_exactly_these_are_kept(
    workplace: Path, tiny_run: Path
) -> None:
    """As without interpolation, on which neither the training nor its other evaluations depend."""
    one = tuned(tiny_run, "runs/one", steps=8, num_evals=2, learning_rate=1e-4)
    other = tuned(
        tiny_run, "runs/other", steps=8, num_evals=2, learning_rate=1e-4, interpolate=False
    )
    rows = [read_metrics(folder / METRICS) for folder in (one, other)]
    assert rows[0][-1].pop("interpolation") == 1.0
    losses = [[row["val_loss"] for row in of_run] for of_run in rows]
    assert losses[0] == losses[1]
    kept, usual = (load_file(folder / WEIGHTS) for folder in (one, other))
    assert all(torch.equal(weight, usual[name]) for name, weight in kept.items())
    assert not of_checkpoint(other, "first")


@pytest.mark.long
def test_time_is_kept_for_the_evaluations_on_the_line(
    workplace: Path, tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As much as they take, and none without interpolation. Each share is tried on half the tokens
    of an evaluation, at most 4,096."""
    kept: list[float] = []
    begin_as_usual = Pace.begin

    def begin(pace: Pace, seconds_so_far: float, seconds_at_end: float, parameters: int) -> None:
        kept.append(seconds_at_end)
        begin_as_usual(pace, seconds_so_far, seconds_at_end, parameters)

    plan_as_usual = Validation.plan

    def plan(validation: Validation, state: TrainingState, *given: Any) -> None:
        plan_as_usual(validation, state, *given)
        validation._seconds_per_token = 1.0

    monkeypatch.setattr(Validation, "plan", plan)
    monkeypatch.setattr(Validation, "count", lambda _, tokens: tokens)
    monkeypatch.setattr(Pace, "begin", begin)
    tuned(tiny_run, "runs/one", steps=2, eval_tokens=4000)
    tuned(tiny_run, "runs/other", steps=2, eval_tokens=4000, interpolate=False)
    assert kept == [3 * 4000 + SHARES_TRIED * 2000, 2 * 4000]
    assert tokens_to_search(131_072) == 4096 and tokens_to_search(1) == 1024
