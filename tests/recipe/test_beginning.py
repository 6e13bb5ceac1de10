"""What a training begins with: the base where it is expected to end lower, else nothing; what was
given always wins, and a base that cannot be read stops nobody.
"""

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from safetensors.numpy import load_file

import minigpt
from minigpt import UserError
from minigpt.cli import main
from minigpt.config import GPTConfig, TextConfig
from minigpt.data.source import find_source, split
from minigpt.model import GPT
from minigpt.recipe.choose_plan import choose_plan
from minigpt.recipe.machine import Speed
from minigpt.recipe.plan import Planned
from minigpt.recipe.text_stats import TextStats, seen_by
from minigpt.recipe.told_at_start import reasons
from minigpt.runs.base import read_base
from minigpt.runs.find import find_model
from minigpt.runs.folder import CONFIG, PLAN, WEIGHTS, read_config
from tests.conftest import TINY, some_text, train_tiny
from tests.training.runs import resume

from .plans import measured_for, plan_of

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("known_kind")]

SHORT: dict[str, Any] = {"steps": 2, "num_evals": 1, "device": "cpu", "precision": "float32"}
FOREIGN = {
    "German": "Es war einmal ein Müller, der hatte drei Söhne und eine Mühle. " * 80,
    "Russian": "Жили-были старик да старуха. Была у них курочка ряба.\n" * 100,
    "Python": "def gcd(a: int, b: int) -> int:\n    return a if b == 0 else gcd(b, a % b)\n\n" * 80,
}


@pytest.fixture(autouse=True)
def here(workplace: Path) -> Path:
    return workplace


def planned(
    text: dict[str, Any] | None = None, model: dict[str, Any] | None = None, **training: Any
) -> Planned:
    """For my.txt, in a minute."""
    fields = {"files": ("my.txt",), "minutes": 1.0, **(text or {}), **(model or {}), **training}
    return plan_of(**fields)


def expect_of_the_base(monkeypatch: pytest.MonkeyPatch, bits_per_byte: float) -> None:
    monkeypatch.setattr(
        "minigpt.recipe.forecast.expected_after_tuning", lambda *_, **__: bits_per_byte
    )


# What is chosen


def test_a_text_like_those_that_the_base_has_read_is_begun_with_it(tiny_base: Path) -> None:
    plan = planned()
    base = read_base()
    assert plan.init == "base" and plan.text.loss_before is not None
    assert replace(plan.model, dropout=base.glass.config.dropout) == base.glass.config
    assert plan.with_base is not None and plan.from_nothing is not None
    assert plan.with_base < plan.from_nothing

    (line,) = [line for line in reasons(plan) if line.startswith("begins with")]
    assert "which has read 0 MB of English" in line
    assert f"{plan.text.loss_before:.3g} bits/byte on this text before the first step" in line
    assert f"about {plan.with_base:.3g} at the end" in line
    assert f"from nothing about {plan.from_nothing:.3g}" in line


@pytest.mark.parametrize("language", FOREIGN)
def test_a_text_that_the_base_knows_nothing_of_is_begun_from_nothing(
    language: str, tiny_base: Path
) -> None:
    Path("my.txt").write_text(FOREIGN[language], encoding="utf-8")
    plan = planned()
    assert plan.init is None and plan.text.loss_before is None
    assert plan.with_base is not None and plan.from_nothing is not None
    assert plan.with_base > plan.from_nothing

    told = f"about {plan.from_nothing:.3g} bits/byte"
    other = f"the base would not end clearly lower (about {plan.with_base:.3g})"
    assert f"begins from nothing: {told}; {other}" in reasons(plan)


def test_what_is_expected_to_end_lower_decides_and_both_forecasts_are_kept(
    tiny_base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for expected, init in ((0.2, "base"), (7.9, None)):
        expect_of_the_base(monkeypatch, expected)
        run = minigpt.train("my.txt", minutes=1e-3, **{**SHORT, "steps": None})
        kept = json.loads((run / PLAN).read_text())
        assert kept["init"] == read_config(run).text.init == init
        assert kept["with_base"] == expected
        assert expected == kept["bits_per_byte"] or kept["from_nothing"] is not None


def test_from_nothing_all_is_planned_as_if_there_were_no_base(
    tiny_base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expect_of_the_base(monkeypatch, 7.9)
    beside = planned()
    alone = planned({"init": "none"})
    assert alone.with_base is None and alone.from_nothing is None
    forecasts = {"with_base": None, "from_nothing": None}
    assert beside.settings.network == alone.settings.network
    assert beside.settings.training == alone.settings.training
    assert reasons(replace(beside, **forecasts)) == reasons(alone)

    run = minigpt.train("my.txt", out="beside", **SHORT)
    same = minigpt.train("my.txt", out="alone", init="none", **SHORT)
    assert read_config(run) == read_config(same)
    assert (run / WEIGHTS).read_bytes() == (same / WEIGHTS).read_bytes()


def test_one_measurement_serves_for_plans_of_any_minutes(
    tiny_base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    minutes = (0.05, 1.0, 60.0)
    one_by_one = [planned(minutes=m) for m in minutes]
    measured = measured_for(files=("my.txt",))
    for measuring in (
        "choose_plan.measure_speed",
        "choose_plan.measure_text",
        "beginning.read_base",
    ):
        monkeypatch.setattr(f"minigpt.recipe.{measuring}", lambda *_, **__: 1 // 0)
    plans = [choose_plan(measured.with_minutes(m)) for m in minutes]
    assert [vars(plan) for plan in plans] == [vars(plan) for plan in one_by_one]


def test_a_machine_whose_speed_is_stored_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minigpt.recipe.choose_plan.measure_speed", lambda *_: 1 // 0)
    stored = Speed(flops=3e10, start=1e-3)
    measured = measured_for(lambda *_: stored, files=("my.txt",), device="cpu")
    assert choose_plan(measured).machine.speed == stored


# What was given


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ({"init": "none"}, {}),
        ({"tokenizer": "char"}, {}),
        ({"vocab_size": 300}, {}),
        ({"embedding_init": "random"}, {}),
        ({}, {"emb_dim": 16}),
        ({}, {"num_layers": 1}),
        ({}, {"architecture": "gpt2"}),
        ({}, {"norm": "layer"}),
        ({}, {"tie_embeddings": True}),
    ],
    ids=str,
)
def test_with_a_shape_or_tokens_that_were_given_the_base_is_not_even_read(
    text: dict[str, Any], model: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minigpt.recipe.beginning.read_base", lambda: 1 // 0)
    plan = planned(text, model)
    assert plan.init is None
    assert not [line for line in reasons(plan) if line.startswith("begins")]


def test_nor_is_it_with_a_network_or_a_tokenizer_of_ones_own(
    tiny_base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = find_model(tiny_base).tokenizer
    shape = GPTConfig(tokenizer.vocab_size, context_length=8, emb_dim=8, num_layers=1, num_heads=1)
    monkeypatch.setattr("minigpt.recipe.beginning.read_base", lambda: 1 // 0)
    for parts in ({"model": GPT(shape), "vocab_size": 300}, {"tokenizer": tokenizer}):
        run = minigpt.train("my.txt", **SHORT, **parts)
        assert read_config(run).text.init is None


def test_a_context_or_dropout_that_was_given_is_the_base_s_too(tiny_base: Path) -> None:
    plan = planned(model={"context_length": 8, "dropout": 0.25}, learning_rate=0.5)
    assert plan.init == "base"
    assert (plan.model.context_length, plan.model.dropout) == (8, 0.25)
    assert plan.settings["learning_rate"] == 0.5

    run = minigpt.train("my.txt", context_length=8, dropout=0.25, init="base", **SHORT)
    assert read_config(run).model == plan.model


def test_a_context_longer_than_the_base_s_is_for_a_new_model(tiny_base: Path) -> None:
    plan = planned(model={"context_length": 40})
    assert plan.init is None and plan.with_base is None
    plan = planned({"vocab_size": None}, {"context_length": 16, "num_kv_heads": None})
    assert plan.init == "base"


def test_init_base_insists(tiny_base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expect_of_the_base(monkeypatch, 7.9)
    plan = planned({"init": "base"})
    assert plan.init == "base" and plan.with_base is None
    (line,) = [line for line in reasons(plan) if line.startswith("begins with the base")]
    assert "from nothing" not in line


def test_a_plan_can_be_typed_back(tiny_base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for init in ("", "--init none"):
        assert main(["train", "my.txt", "--plan", "--minutes", "0.01", *init.split()]) == 0
        *_, options = capsys.readouterr().out.splitlines()
        assert options.startswith(init or "--init base ")
        assert main(["train", "my.txt", "--plan", "--minutes", "0.01", *shlex.split(options)]) == 0
        assert capsys.readouterr().out.splitlines()[-1] == options


# A base that cannot be read


@pytest.mark.parametrize("damage", ["missing", "damaged", "cannot be read"])
def test_without_a_whole_base_a_training_says_so_in_a_line_and_goes_on_from_nothing(
    damage: str,
    tiny_base: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if damage == "missing":
        (tiny_base / WEIGHTS).unlink()
    elif damage == "cannot be read":
        refusal = PermissionError(13, "Permission denied", str(tiny_base / WEIGHTS))
        monkeypatch.setattr("minigpt.runs.base.checksums", Mock(side_effect=refusal))
    else:
        (tiny_base / CONFIG).write_text("{}")
    run = minigpt.train("my.txt", **SHORT)
    assert read_config(run).text.init is None
    said = capsys.readouterr().err.splitlines()
    (line,) = [line for line in said if "base" in line]
    assert damage in line and line.endswith("this training begins from nothing")

    with pytest.raises(UserError, match=damage):
        minigpt.train("my.txt", init="base", **SHORT)


# The run


def test_a_run_that_began_with_the_base_has_its_tokens_and_learns_on_from_its_weights(
    tiny_base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = minigpt.train("my.txt", learning_rate=1e-9, **SHORT)
    assert "  begins     with the base" in capsys.readouterr().err
    config = read_config(run)
    assert config.text.init == "base"

    begun_with = read_base()
    now = load_file(run / WEIGHTS)
    for name, before in begun_with.glass.weights.items():
        np.testing.assert_allclose(now[name], before, atol=1e-6)
    assert find_model(run).tokenizer.to_json() == begun_with.tokenizer.to_json()


def test_it_goes_on_when_the_base_is_gone(tiny_base: Path) -> None:
    whole = minigpt.train("my.txt", out="whole", **{**SHORT, "steps": 4})
    parts = minigpt.train("my.txt", out="parts", **{**SHORT, "steps": 4, "max_characters": None})
    (tiny_base / WEIGHTS).unlink()
    assert (parts / WEIGHTS).read_bytes() == (whole / WEIGHTS).read_bytes()
    longer = resume(parts, steps=6)
    assert read_config(longer).text.init == "base"
    assert minigpt.load(longer).generate("the", max_new_tokens=3, seed=0).startswith("the")


def test_a_short_text_has_a_shorter_context_of_the_base(tiny_base: Path) -> None:
    Path("my.txt").write_text("the fox asked a crow for bread and said no then flew to old mill\n")
    plan = planned({"init": "base"})
    assert plan.model.context_length < read_base().glass.config.context_length
    run = minigpt.train("my.txt", init="base", **SHORT)
    of_few_steps = replace(plan.model, dropout=0.0)
    assert read_config(run).model == of_few_steps


def test_a_text_of_which_the_plan_expects_more_tokens_than_there_are_is_trained_on(
    tiny_base: Path,
) -> None:
    """Those of the validation text, by which the plan guesses, are shorter."""
    Path("my.txt").write_text("the fox asked the crow")
    Path("other.txt").write_text("ЖЗЯЩ" * 40, encoding="utf-8")
    run = minigpt.train("my.txt", validation="other.txt", init="base", **SHORT)
    made = read_config(run).gpt
    planned_for = json.loads((run / PLAN).read_text())
    assert (
        made.context_length
        == planned_for["settings"]["context_length"]["value"]
        == planned_for["tokens"] - 1
    )


# The loss before the first step


def test_the_first_loss_is_that_of_an_evaluation(tiny_base: Path) -> None:
    """Of the whole validation text, if that is short."""
    Path("my.txt").write_text(some_text(seed=3))
    config = TextConfig(files=("my.txt",), split="end")
    source = find_source(config)
    _, validation = split(source, config)
    found = seen_by(read_base(), TextStats(1), validation, clock=lambda: 0.0)

    Path("end.txt").write_text("".join(piece.text for piece in validation.pieces()))
    evaluated = minigpt.evaluate(tiny_base, "end.txt", device="cpu")
    assert found is not None
    assert found.loss_before == pytest.approx(evaluated.bits_per_byte, rel=1e-4)
    tokens = evaluated.tokens + 1
    assert found.bytes_per_token == pytest.approx(validation.size / tokens, rel=1e-6)


def test_of_a_long_text_a_sample_is_read(tiny_base: Path) -> None:
    """As many tokens as can be computed in half a second, but no more than 4,096, and on a slow
    machine fewer."""
    Path("my.txt").write_text(some_text(words=200_000))
    config = TextConfig(files=("my.txt",), split="end")
    _, validation = split(find_source(config), config)
    base = read_base()

    read: list[int] = []
    plain = type(base.glass).__call__

    def counted(glass: Any, ids: Any) -> Any:
        read.append(ids.size)
        return plain(glass, ids)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(base.glass), "__call__", counted)
        found = seen_by(base, TextStats(1), validation, clock=lambda: 0.0)
        assert 2_000 < sum(read) <= 4_096

        read.clear()
        slow = seen_by(base, TextStats(1), validation, clock=lambda: float(len(read)))
        assert len(read) == 2

    assert found is not None and slow is not None
    assert found.loss_before == pytest.approx(slow.loss_before, rel=0.2)
    assert found.bytes_per_token == slow.bytes_per_token


def test_a_lesson_reads_the_same_sample_however_slow_the_computer_is(
    tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def losses_before(**given: Any) -> list[float | None]:
        losses = []
        for limit in (1e9, 0.0):  # seconds
            monkeypatch.setattr("minigpt.recipe.text_stats._LIMIT", limit)
            losses.append(planned({"init": str(tiny_run)}, **given).text.loss_before)
        return losses

    in_time, slow = losses_before(lesson=True)
    assert in_time == slow is not None
    in_time, slow = losses_before()
    assert in_time != slow


def test_a_run_is_begun_with_by_its_path(tiny_run: Path) -> None:
    """As `minigpt.train` returns it."""
    run = minigpt.train("my.txt", init=minigpt.Run(tiny_run), **SHORT)
    assert read_config(run).text.init == str(tiny_run)


def test_a_run_of_ones_own_is_trained_further_by_the_same_rules(tiny_run: Path) -> None:
    near = planned({"init": str(tiny_run)})
    Path("my.txt").write_text(FOREIGN["Russian"], encoding="utf-8")
    far = planned({"init": str(tiny_run)})
    assert near.init == far.init == str(tiny_run)
    assert near.text.loss_before is not None and far.text.loss_before is not None
    assert near.text.loss_before < far.text.loss_before
    assert near.settings["learning_rate"] < far.settings["learning_rate"]
    assert any(line.startswith(f"begins with {tiny_run}: ") for line in reasons(near))


def test_a_shape_that_is_given_trains_as_without_a_base(tiny_base: Path) -> None:
    assert read_config(train_tiny()).text.init is None
    assert TINY["emb_dim"] == read_config(Path("runs/my")).gpt.emb_dim


# The base that comes with minigpt


@pytest.mark.parametrize("language", FOREIGN)
def test_the_base_is_not_chosen_for_what_is_not_english(language: str, real_base: Path) -> None:
    Path("my.txt").write_text(FOREIGN[language], encoding="utf-8")
    assert planned().init is None


def test_the_base_is_chosen_for_a_short_english_text_and_trained_on_it(real_base: Path) -> None:
    fables = (Path(__file__).parents[2] / "data/fables.txt").read_text(encoding="utf-8")
    Path("my.txt").write_text(fables[:60_000], encoding="utf-8")
    small = {"context_length": 32, "batch_size": 2, "eval_tokens": 256, "learning_rate": 1e-9}
    run = minigpt.train("my.txt", **SHORT, **small)
    assert read_config(run).text.init == "base"

    before = json.loads((run / PLAN).read_text())["text"]["loss_before"]
    assert before < 2.5
    written = minigpt.load(run).generate("Once upon a time", max_new_tokens=20, seed=0)
    assert written == minigpt.load("base").generate("Once upon a time", max_new_tokens=20, seed=0)
