"""How well a text can be predicted, and what loss is expected of a run on it."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigpt
from minigpt.cli import main
from minigpt.config import TextConfig
from minigpt.data.source import find_source, split
from minigpt.recipe.forecast import expected_bits_per_byte, is_like_those_tried
from minigpt.recipe.resume import expected_of_run
from minigpt.recipe.text_stats import Predictability, measure_predictability, with_copies
from minigpt.runs.folder import read_config
from minigpt.training.checkpoint import read_state
from tests.conftest import some_text

few = settings(max_examples=40, deadline=None)
Measure = Callable[[str], Predictability]


@pytest.fixture
def measured(tmp_path: Path) -> Measure:
    def measure(text: str) -> Predictability:
        file = tmp_path / "text.txt"
        file.write_text(text, encoding="utf-8")
        config = TextConfig((str(file),))
        return measure_predictability(*split(find_source(config), config))

    return measure


# What a text is like


def test_a_regular_text_is_easier(measured: Measure) -> None:
    regular, latin = measured("again and again " * 250), measured(some_text(words=5000))
    assert regular.counting < 0.2 < latin.counting < 3.0
    assert regular.copying < 0.2 < latin.copying < 3.0


def test_noise_takes_the_bits_that_it_has(measured: Measure) -> None:
    noise = "".join(random.Random(0).choices("abcdefghijklmnop", k=40_000))  # 4 bits each
    found = measured(noise)
    assert 3.9 < found.copying <= found.counting < 4.5


def test_the_validation_text_counts_and_not_what_the_text_begins_with(measured: Measure) -> None:
    noise = "".join(random.Random(1).choices("abcdefghijklmnop", k=300_000))
    assert 3.9 < measured("again and again " * 20_000 + noise).counting < 4.6


def test_letters_of_two_bytes_are_no_harder(measured: Measure) -> None:
    latin = some_text(words=5000)
    cyrillic = latin.translate({ord("a") + i: 0x430 + i for i in range(26)})
    size, bits = len(latin), measured(latin).counting
    assert measured(cyrillic).counting * len(cyrillic.encode()) / size == pytest.approx(bits, 0.02)


def test_what_stood_a_little_before_can_be_copied(measured: Measure) -> None:
    draw = random.Random(2)
    lines = ("".join(draw.choices("abcdefghijklmnop", k=60)) + "\n" for _ in range(1000))
    found = measured("".join(2 * line for line in lines))
    assert found.copying < 2.8 < 3.9 < found.counting


@pytest.mark.parametrize("text", ["one two three four five six", "ab\n" * 5, "日本語のテキスト"])
def test_the_shortest_texts_have_figures_within_limits(measured: Measure, text: str) -> None:
    found = measured(text)
    assert 0.1 <= found.counting <= 8.0 and 0.1 <= found.copying <= 8.0


@few
@given(tokens=st.lists(st.integers(0, 3), max_size=80), data=st.data())
def test_copying_gives_what_followed_the_same_tokens_a_share(tokens: list[int], data: Any) -> None:
    """The rest of the probability stays as it was, so that all of it is still 1."""
    ids = np.array(tokens, np.int64)
    p = np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=len(ids), max_size=len(ids))))
    mixed = with_copies(ids, p)
    assert mixed.shape == ids.shape and ((mixed > 0.0) & (mixed <= 1.0 + 1e-12)).all()

    shares: dict[tuple[int, bool], set[float]] = {}  # of each length of match
    for i in range(len(tokens)):
        for length in (6, 4, 3, 2, 1):
            ends = [j for j in range(length, i) if tokens[j - length : j] == tokens[i - length : i]]
            if i >= length and ends:
                break
        else:
            assert mixed[i] == p[i]  # nothing to copy
            continue
        is_right = tokens[ends[-1]] == tokens[i]
        if is_right:
            assert mixed[i] >= p[i] - 1e-12
        else:
            shares.setdefault((length, is_right), set()).add(round(mixed[i] / p[i], 9))
    assert all(len(found) == 1 for found in shares.values())


def test_copies_come_from_no_further_back_than_a_context() -> None:
    near, far = [1, 2, 3, *range(10, 700), 1, 2, 3], [1, 2, 3, *range(10, 800), 1, 2, 3]
    for tokens, is_copied in ((near, True), (far, False)):
        p = np.full(len(tokens), 0.1)
        mixed = with_copies(np.array(tokens, np.int64), p)
        assert (mixed[-1] > p[-1]) == is_copied


# What is expected


texts = st.builds(Predictability, st.floats(0.1, 8), st.floats(0.1, 8))
sizes, works = st.floats(1e2, 1e11), st.floats(1e3, 1e22)


@few
@given(text=texts, known=st.integers(0, 10**11), read=sizes, work=works)
def test_more_of_anything_never_makes_the_forecast_worse(
    text: Predictability, known: int, read: float, work: float
) -> None:
    bits = expected_bits_per_byte(text, known, read, work)
    assert 0.0 < bits <= 8.0
    assert expected_bits_per_byte(text, known, read, 2 * work) <= bits
    assert expected_bits_per_byte(text, known, 2 * read, work) <= bits


# Texts of 5 KB to 20 MB, half a minute to five (docs/decisions.md): what the samples tell; bytes to
# train on and bytes read; parameters times tokens; bits per byte.
Run = tuple[tuple[float, float], int, float, float, float]
RUNS: dict[str, Run] = {
    "licence, 0.5 min": ((5.151, 4.590), 5_500, 3.31e05, 3.78e10, 5.259),
    "verdict, 0.5 min": ((2.453, 2.407), 18_431, 1.03e06, 1.17e11, 2.347),
    "verdict, 2 min": ((2.453, 2.407), 18_431, 1.11e06, 1.26e11, 2.346),
    "fables, 0.5 min": ((1.891, 1.836), 185_859, 1.67e06, 1.37e11, 1.758),
    "fables, 2 min": ((1.891, 1.836), 185_859, 3.05e06, 1.04e12, 1.685),
    "dpkg, 0.5 min": ((1.617, 0.650), 305_048, 2.25e06, 1.85e11, 0.887),
    "dpkg, 2 min": ((1.617, 0.650), 305_048, 5.56e06, 1.10e12, 0.812),
    "diary, 0.5 min": ((2.169, 2.139), 341_715, 1.67e06, 1.37e11, 2.151),
    "man-ru, 1 min": ((0.817, 0.758), 536_742, 2.30e06, 4.57e11, 0.782),
    "languages, 0.5 min": ((0.746, 0.570), 787_304, 1.79e06, 1.62e11, 0.617),
    "languages, 2 min": ((0.746, 0.570), 787_304, 3.37e06, 1.11e12, 0.552),
    "shakespeare, 0.5 min": ((2.255, 2.081), 1_003_855, 1.79e06, 1.62e11, 2.163),
    "shakespeare, 5 min": ((2.255, 2.081), 1_003_855, 8.80e06, 2.91e12, 1.991),
    "novels, 0.5 min": ((1.923, 1.886), 1_283_626, 1.79e06, 1.62e11, 1.871),
    "novels, 2 min": ((1.923, 1.886), 1_283_626, 3.37e06, 1.11e12, 1.749),
    "tales, 0.5 min": ((1.516, 1.503), 1_843_982, 1.79e06, 1.62e11, 1.307),
    "tales, 2 min": ((1.516, 1.503), 1_843_982, 3.37e06, 1.11e12, 1.223),
    "man-de, 0.5 min": ((1.320, 1.179), 2_016_471, 1.79e06, 1.62e11, 1.368),
    "man-de, 2 min": ((1.320, 1.179), 2_016_471, 3.37e06, 1.11e12, 1.095),
    "javascript, 0.5 min": ((1.732, 1.428), 2_262_928, 2.18e06, 2.53e11, 1.391),
    "javascript, 2 min": ((1.732, 1.428), 2_262_928, 5.83e06, 1.34e12, 1.101),
    "vim, 0.5 min": ((2.107, 1.935), 4_500_000, 1.79e06, 1.62e11, 1.894),
    "vim, 5 min": ((2.107, 1.935), 4_500_000, 8.87e06, 3.24e12, 1.483),
    "python20, 0.5 min": ((2.395, 1.578), 18_039_596, 2.18e06, 2.53e11, 1.715),
    "python20, 2 min": ((2.395, 1.578), 18_039_596, 5.83e06, 1.34e12, 1.391),
}


def test_each_text_that_was_tried_is_of_a_known_kind() -> None:
    for found, known, *_ in RUNS.values():
        assert is_like_those_tried(Predictability(*found), known)


@pytest.mark.parametrize(
    ("found", "known", "is_known"),
    [
        ((2.45, 2.41), 27_000, True),
        ((0.50, 0.40), 27_000, False),  # much is repeated
        ((2.45, 1.60), 27_000, False),  # and copied
        ((2.48, 2.26), 25_800, False),  # a table of numbers
        ((2.45, 1.60), 18_000_000, True),  # as in large programs
        ((6.50, 6.50), 10**9, False),
    ],
)
def test_of_a_text_like_none_of_its_size_nothing_is_known(
    found: tuple[float, float], known: int, is_known: bool
) -> None:
    assert is_like_those_tried(Predictability(*found), known) == is_known


@pytest.mark.long
def test_a_training_on_a_small_text_of_an_untried_kind_says_that_it_expects_nothing(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows of a table: hardly anything in them is new."""
    rows = "".join(f"row;the {name};of;{i % 9};\n" for i, name in enumerate(["red", "blue"] * 700))
    Path("table.txt").write_text(rows)
    tiny = ["--emb-dim=16", "--num-layers=1", "--steps=2"]
    assert main(["train", "--plan", "table.txt", *tiny]) == 0
    said = capsys.readouterr().out
    assert "expected: not known, since no text of this size and kind was tried\n" in said
    run = minigpt.train("table.txt", emb_dim=16, num_layers=1, steps=2)
    plan = json.loads((run / "plan.json").read_text())
    assert plan["bits_per_byte"] is None and plan["from_nothing"] is None
    assert expected_of_run(run, read_state(run), read_config(run)) is None


@pytest.mark.parametrize("run", RUNS)
def test_the_forecast_fits_what_came(run: str) -> None:
    found, known, read, work, came = RUNS[run]
    forecast = expected_bits_per_byte(Predictability(*found), known, read, work)
    assert forecast == pytest.approx(came, rel=0.18)


def test_the_forecast_fits_within_a_tenth_most_of_the_time() -> None:
    errors = []
    for found, known, read, work, came in RUNS.values():
        forecast = expected_bits_per_byte(Predictability(*found), known, read, work)
        errors.append(abs(forecast / came - 1.0))
    assert np.mean(errors) < 0.06
    assert sorted(errors)[int(0.8 * len(errors))] < 0.1
