"""What is measured of the base: the parts of benchmarks/ that could be wrong without a sign."""

import argparse
import gzip
import importlib
import random
from pathlib import Path
from typing import Any

import pytest

from minigpt.data.copies import shared_stretches
from minigpt.data.corpus import Piece

pytestmark = pytest.mark.figures

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
SEA = "the grey boat sailed slowly over a cold sea and its old captain slept".split()
TOWN = "her new lamp shone brightly in every narrow street while loud carts passed".split()
BOTH = "he said that it was not so and they went away with him at night".split()


def benchmark(name: str) -> Any:
    """A program of benchmarks/, imported."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.syspath_prepend(BENCHMARKS)
        return importlib.import_module(name)


classifier = benchmark("classifier")
copied_by_base = benchmark("copied_by_base")
judging = benchmark("judging")
staying_names = benchmark("staying_names")
tuning = benchmark("tuning")
written_texts = benchmark("written_texts")


# The classifier of voices


def pieces(style: list[str], count: int, seed: int, share: float = 0.3) -> list[str]:
    """Pieces of 40 words, a share of them of a style and the others of everybody."""
    draw = random.Random(seed)
    texts = []
    for _ in range(count):
        words = [draw.choice(style if draw.random() < share else BOTH) for _ in range(40)]
        texts.append(" ".join(words))
    return texts


def test_two_styles_are_told_apart_in_pieces_that_are_new() -> None:
    told = classifier.fit(pieces(SEA, 100, seed=1), pieces(TOWN, 100, seed=2))
    assert told.share(pieces(SEA, 100, seed=3)) > 0.95
    assert told.share(pieces(TOWN, 100, seed=4)) < 0.05


def test_a_style_is_not_told_apart_from_itself() -> None:
    told = classifier.fit(pieces(SEA, 200, seed=1), pieces(SEA, 200, seed=2))
    assert 0.35 < told.share(pieces(SEA, 200, seed=3)) < 0.65


def test_a_text_of_both_styles_is_between_them() -> None:
    told = classifier.fit(pieces(SEA, 100, seed=1), pieces(TOWN, 100, seed=2))
    assert 0.2 < told.share(pieces(SEA + TOWN, 200, seed=3)) < 0.8


def test_neither_capitals_nor_punctuation_tell_styles_apart() -> None:
    assert classifier.features("Don’t go, TOM!") == classifier.features("don't go tom")
    assert classifier.features("go to sea") == {"go", "to", "sea", "go to", "to sea"}


def test_kinds_of_different_size_are_refused() -> None:
    with pytest.raises(ValueError, match="3 pieces of the first kind, 2 of the second"):
        classifier.fit(pieces(SEA, 3, seed=1), pieces(TOWN, 2, seed=2))


# Names


def test_names_are_capitalised_words_within_a_sentence() -> None:
    text = 'Old men sleep. Then Tom\'s dog saw Anna. "Come," said Mr. Brown, "I\'m here and NEW."'
    assert [word for word, is_name in staying_names.words(text) if is_name] == [
        "Tom",
        "Anna",
        "Mr",
        "Brown",
    ]


def test_names_after_the_first_stay_if_they_were_there_before() -> None:
    stays = "Here Tom sat. Here Anna sat with Tom and Anna."  # of Anna, Tom, Anna two stay
    assert staying_names.share_that_stays([stays]) == pytest.approx(2 / 3)
    assert staying_names.share_that_stays([stays, "So Eve met Ida."]) == pytest.approx(2 / 4)


def test_a_name_that_began_a_sentence_was_there_before() -> None:
    assert staying_names.share_that_stays(["Anna met Tom. Then came Anna."]) == 1.0


def test_a_text_of_one_name_counts_for_nothing() -> None:
    assert staying_names.share_that_stays(["Here sat Tom."]) == 0.0


# Texts


def test_a_text_is_cut_to_whole_characters() -> None:
    assert judging.cut("aéé", 4) == "aé"
    assert judging.cut("aéé", 5) == "aéé"
    assert judging.cut("aéé", None) == "aéé"


def test_a_text_that_is_not_named_ends_the_program_with_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "MANUALS", tmp_path)
    nothing = argparse.Namespace(judge=None, german=None)
    assert not judging.is_there("diary", nothing) and not judging.is_there("german", nothing)
    with pytest.raises(SystemExit, match=r"holds diary\.txt with --judge FOLDER"):
        judging.find_text("diary", nothing)
    with pytest.raises(SystemExit, match="with --german FILE"):
        judging.find_text("german", nothing)


def test_manual_pages_in_a_language_are_a_text_without_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "MANUALS", tmp_path)
    page = tmp_path / "de/man1/ls.1.gz"
    page.parent.mkdir(parents=True)
    page.write_bytes(gzip.compress(".SH NAME\nführt \\fBls\\fR mit \\-l aus\n".encode()))
    assert judging.find_text("german", argparse.Namespace(german=None)) == "führt ls mit -l aus"


def test_a_judging_text_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"cannot read .*letters\.txt: No such file"):
        judging.find_text("letters", argparse.Namespace(judge=tmp_path))


def test_items_are_chosen_from_all_over() -> None:
    assert written_texts.spread(list("abcdefgh"), 4) == list("aceg")
    assert written_texts.spread(list("ab"), 4) == list("ab")


# Copies


def test_texts_with_long_copies_are_counted_one_by_one() -> None:
    corpus = "It was a dark night, and nobody but the old sailor had seen the boat come into port."
    copies = (
        "He knew that nobody but the old sailor had seen the boat come into port. Then he left."
    )
    own = "Nothing in this text has been written before by anybody else, as far as we know of it."
    stretches = shared_stretches([copies, own], [Piece(0, corpus, Path(), 0)])
    found = copied_by_base.copied([copies, own], stretches)

    assert found.longest == " nobody but the old sailor had seen the boat come into port."
    assert found.long == 0.5
    assert found.many_words == 0.0  # it has eleven words, of which ten are surely whole
    assert found.share == pytest.approx(len(found.longest) / len(copies + own))


# The table of trainings


def line(text: str, seed: int, init: str, bits: float, **more: Any) -> dict[str, Any]:
    return {
        "row": "prose-5",
        "text": text,
        "minutes": 0.5,
        "seed": seed,
        "init": init,
        "weights": "" if init == "none" else "abc",
        "began_with": None if init == "none" else "base",
        "before": None if init == "none" else 3.0,
        "bits": bits,
        "forecast": 2.0,
        "seconds": 30.0,
    } | more


def test_a_ratio_is_the_mean_of_pairs_of_the_same_text_and_seed() -> None:
    row = next(row for row in tuning.ROWS if row.name == "prose-5")
    lines = [
        line("diary", 0, "none", 4.0),
        line("diary", 0, "plan", 1.0),
        line("letters", 0, "plan", 3.0),
        line("letters", 0, "none", 4.0),
        line("children", 0, "none", 2.0),
        line("children", 0, "plan", 2.2),
    ]
    table = tuning.summary(row, lines)
    ratios = {title: figures["ratio"] for title, figures in table.items()}
    assert ratios == {
        "English prose, 5 KB, 0.5 minutes: diary": "0.250",
        "English prose, 5 KB, 0.5 minutes: letters": "0.750",
        "English prose, 5 KB, 0.5 minutes: children": "1.100",
        "English prose, 5 KB, 0.5 minutes": "0.700",
    }

    together = table["English prose, 5 KB, 0.5 minutes"]
    assert together["from nothing"] == "3.333"
    assert together["with the base"] == "2.067"
    assert together["forecast missed by at most"] == "50%"
    assert together["at most"] == "0.52"


def test_several_bases_have_columns_of_their_own() -> None:
    lines = [
        line("diary", 0, "none", 4.0),
        line("diary", 0, "runs/6h", 2.0),
        line("diary", 0, "runs/12h", 1.0),
    ]
    figures = tuning.figures_of(lines)
    assert figures == {
        "from nothing": "4.000",
        "with the base, runs/6h": "2.000",
        "ratio, runs/6h": "0.500",
        "with the base, runs/12h": "1.000",
        "ratio, runs/12h": "0.250",
    }


def test_a_training_is_kept_only_for_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "train", lambda line, text: {"bits": 1.0, **SHOWN})
    asked = {"row": "tales", "text": "tales", "minutes": 2, "seed": 0, "init": "base"}
    out = tmp_path / "lines.jsonl"
    for weights in ("first", "first", "second"):
        known = tuning.read_lines(out)
        tuning.trained(asked | {"weights": weights}, "a text", known, out)
    assert [row["weights"] for row in tuning.read_lines(out)] == ["first", "second"]


SHOWN = {"began_with": "base", "before": 2.0, "forecast": 1.0, "seconds": 1.0}
