"""What a plan is made from, how it is told, and that a run follows it."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import torch

import minigpt
from minigpt import UserError, cli
from minigpt.config import TextConfig
from minigpt.data.corpus import FABLES, find_files, find_source
from minigpt.tokenizer.bpe import train_bpe
from minigpt.training.checkpoint import read_state
from minigpt.training.plan import TextStats, make_plan
from minigpt.training.planning import PlannedRun, text_stats
from minigpt.training.speed import Speed, measure_speed
from tests.conftest import TINY, some_text, train_tiny

FREE = {name: value for name, value in TINY.items() if name not in ("steps", "vocab_size")}


def facts(folder: Path, text: str, **settings: Any) -> TextStats:
    (folder / "text.txt").write_text(text)
    config = TextConfig(files=(str(folder / "text.txt"),), **settings)  # type: ignore[arg-type]
    return text_stats(find_source(config), config)


def test_the_part_to_train_on_is_what_counts(tmp_path: Path) -> None:
    text = some_text(words=2000)
    usual, half = facts(tmp_path, text), facts(tmp_path, text, validation_fraction=0.5)
    assert (usual.size, half.size) == (round(0.9 * len(text)), round(0.5 * len(text)))
    assert usual.size + usual.validation == half.size + half.validation == len(text)
    (tmp_path / "other.txt").write_text("what it is judged by\n")
    apart = facts(tmp_path, text, validation=(str(tmp_path / "other.txt"),))
    assert (apart.size, apart.validation) == (len(text), 21)


def test_a_regular_text_is_seen_to_be_one(tmp_path: Path) -> None:
    words = facts(tmp_path, some_text(words=5000)).ngram_bits_per_byte
    assert 0.0 < facts(tmp_path, "a" * 1000).ngram_bits_per_byte < 0.2 < words < 3


def test_of_a_long_text_a_part_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minigpt.training.planning._SAMPLE", 4000)
    text = "again and again " * 250
    longer = facts(tmp_path, text + some_text(words=2000))
    assert longer.ngram_bits_per_byte == facts(tmp_path, text).ngram_bits_per_byte


@pytest.mark.parametrize("vocab_size", [320, 512, 2048])
def test_the_tokens_of_an_english_text_are_guessed_within_an_eighth(vocab_size: int) -> None:
    text = find_files((FABLES,))[0].read_text(encoding="utf-8")
    tokens = len(train_bpe([text], vocab_size).encode(text))
    given = {"vocab_size": vocab_size, "steps": 1}
    guessed = make_plan(TextStats(len(text.encode())), Speed(1e11, 0.0), given).tokens
    assert 7 / 8 < guessed / tokens < 9 / 8


def test_a_text_of_a_few_letters_has_facts_too(tmp_path: Path) -> None:
    assert 0.0 < facts(tmp_path, "abc").ngram_bits_per_byte <= 8.0


def test_the_speed_is_a_sensible_one_and_measuring_it_draws_no_random_numbers() -> None:
    before = torch.get_rng_state()
    speed = measure_speed(torch.device("cpu"), torch.float32)
    assert torch.equal(torch.get_rng_state(), before)
    assert 1e7 < speed.flops < 1e14
    assert 0.0 <= speed.start < 1.0


def test_plan_tells_what_would_be_done_and_does_nothing(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(workplace.rglob("*"))
    assert cli.train_main(["my.txt", "--plan", "--minutes", "3", "--emb-dim", "64"]) == 0
    out, _ = capsys.readouterr()
    assert "GFLOP/s" in out and "3 minutes" not in out and "bits/byte" in out
    options = shlex.split(out.splitlines()[-1])
    assert options[options.index("--emb-dim") + 1] == "64"
    assert cli.train_main(["my.txt", *options, "--plan"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == shlex.join(options)
    assert sorted(workplace.rglob("*")) == before


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        (
            {"token_split_prob": 0.15, "warmup_context": 8},
            "respelled and windows are cut to 8 tokens;",
        ),
        ({"token_split_prob": 0.15, "warmup_context": 64}, "15% of the tokens are respelled;"),
        (
            {"token_split_prob": 0.0, "warmup_context": 8},
            "until the last fifth windows are cut to 8 tokens;",
        ),
        ({"token_split_prob": 0.0, "warmup_context": 64}, None),
    ],
    ids=str,
)
def test_the_reasons_tell_what_is_different_before_the_end(
    fields: dict[str, Any], line: str | None
) -> None:
    plan = make_plan(TextStats(10**6), Speed(1e11, 0.0), {"context_length": 64, **fields})
    told = "\n".join(PlannedRun(plan, TextStats(10**6), None, 5.0).reasons()) + "\n"
    assert line in told if line else "last fifth" not in told


@pytest.mark.parametrize(
    ("given", "is_told"),
    [
        ({"minutes": 30}, True),
        ({"minutes": 30, "max_epochs": 0.1}, True),
        ({"minutes": 0.5, "max_epochs": 1000.0}, False),
        ({"minutes": 0.5, "max_epochs": 0.1, "steps": 1000}, False),
    ],
    ids=str,
)
def test_the_reasons_tell_of_an_early_end(given: dict[str, Any], is_told: bool) -> None:
    plan = make_plan(TextStats(10**5), Speed(1e11, 0.0), given)
    told = PlannedRun(plan, TextStats(10**5), None, given["minutes"]).reasons()
    assert any("ends early" in reason for reason in told) == is_told


def test_a_table_tells_what_more_minutes_would_give(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["plan", "my.txt", "--minutes", "0.5", "20", "--dropout", "0.3"]) == 0
    head, *rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert head[0] == "minutes" and [row[0] for row in rows] == ["0.5", "20"]
    figures = [float(row[-1]) for row in rows]
    assert figures[0] >= figures[1] > 0
    assert all(row[-2] == "0.3" for row in rows) and head[-2] == "dropout"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["my.txt", "--minutes", "0"], "minutes must be above 0"),
        (["none.txt"], "no such file: none.txt"),
        (["my.txt", "--num-heads", "7", "--emb-dim", "64"], "emb_dim must be a multiple"),
    ],
    ids=str,
)
def test_what_cannot_be_planned_is_refused_in_one_line(
    arguments: list[str], words: str, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["plan", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("error: ") and words in err


def test_a_run_keeps_its_plan_and_says_why(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = train_tiny()
    kept = json.loads((folder / "plan.json").read_text())
    config = json.loads((folder / "config.json").read_text())
    assert kept["plan"]["model"]["emb_dim"] == config["model"]["emb_dim"] == TINY["emb_dim"]
    assert kept["text"]["size"] > 0
    said = capsys.readouterr().err
    assert all(reason in said for reason in kept["reasons"])


def test_a_run_ends_when_it_has_read_the_text_often_enough(workplace: Path) -> None:
    folder = minigpt.train("my.txt", **FREE, minutes=5, max_epochs=3.0)
    kept = json.loads((folder / "plan.json").read_text())
    tokens = kept["plan"]["tokens"]
    assert kept["speed"]["flops"] > 0  # which decides how many steps there are
    state = read_state(folder)
    a_step = TINY["batch_size"] * TINY["context_length"]
    assert state.finished and state.seconds < 150
    assert 0.3 * tokens < state.step * a_step / 3.0 < 3 * tokens  # the plan only guesses them


def test_passes_must_be_some(workplace: Path) -> None:
    with pytest.raises(UserError, match="passes must be above 0"):
        minigpt.train("my.txt", **FREE, max_epochs=0.0)
