"""Two models on the same text: their figures, where they differ; refusals."""

import dataclasses
import json
import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minigpt
from minigpt import Comparison, UserError
from minigpt.generation.numpy_gpt import NumpyGPT
from minigpt.measure import compare as compare_module
from minigpt.measure.common_pieces import CommonPiece, PredictedToken, common_pieces
from minigpt.runs.folder import METRICS
from minigpt.runs.read_model import load_run

from ..conftest import some_text, train_tiny

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def where_they_lie(tiny_run: Path, letters_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tiny_run.parents[1])


@pytest.fixture
def text(tmp_path: Path) -> Path:
    file = tmp_path / "new.txt"
    file.write_text(some_text(300, seed=1))
    return file


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> list[CommonPiece]:
    """Those in which a text is compared, noted as they come."""
    noted = []

    def noting(
        first: Iterable[PredictedToken], second: Iterable[PredictedToken]
    ) -> Iterator[CommonPiece]:
        for piece in common_pieces(first, second):
            noted.append(piece)
            yield piece

    monkeypatch.setattr(compare_module, "common_pieces", noting)
    return noted


def assert_as_evaluated(comparison: Comparison, *files: Path, **settings: Any) -> None:
    for side in comparison.sides:
        if side.name != "counting":
            result = minigpt.evaluate(side.name, *files, **settings)
            assert (side.loss, side.bits_per_byte) == (result.loss, result.bits_per_byte)
            assert (side.tokens, side.bytes) == (result.tokens, result.bytes)


def last_row(run: Path) -> dict[str, float]:
    row: dict[str, float] = json.loads((run / METRICS).read_text().splitlines()[-1])
    return row


def test_the_figures_are_those_of_evaluate_for_a_bpe_beside_characters(
    tiny_run: Path, letters_run: Path, text: Path, pieces: list[CommonPiece]
) -> None:
    """With contexts of 16 tokens and of 24 characters; also with windows that overlap."""
    for settings in ({}, {"stride": 5}):
        pieces.clear()
        result = minigpt.compare(tiny_run, letters_run, text, device="cpu", **settings)
        assert_as_evaluated(result, text, device="cpu", **settings)
        assert [side.context_length for side in result.sides] == [16, 24]
        assert [side.parameters > 0 for side in result.sides] == [True, True]

    assert "".join(piece.text for piece in pieces) == text.read_text()
    bits = [piece.bits for piece in pieces if piece.bits]
    assert result.pieces == len(bits)
    assert np.sum(bits, axis=0) == pytest.approx(result.bits)
    assert result.likelier[0] == sum(second - first >= 1 for first, second in bits)
    assert result.likelier[1] == sum(first - second >= 1 for first, second in bits)


def test_with_one_tokenizer_a_piece_is_a_token_and_the_same_bytes_are_compared(
    tiny_run: Path, text: Path
) -> None:
    result = minigpt.compare(tiny_run, tiny_run, text)
    assert result.pieces == result.sides[0].tokens and result.bytes == result.sides[0].bytes
    assert result.bits_per_byte[0] == pytest.approx(result.sides[0].bits_per_byte)


def test_a_run_is_like_itself_everywhere(tiny_run: Path) -> None:
    result = minigpt.compare(tiny_run, tiny_run)
    assert result.bits[0] == result.bits[1]
    assert (result.places, result.likelier) == ((), (0, 0))
    assert "equally well" in result.verdict()


def test_runs_on_one_text_are_compared_on_what_both_were_validated_on(
    tiny_run: Path, letters_run: Path, pieces: list[CommonPiece]
) -> None:
    """The figures are those of the last evaluation of each training."""
    result = minigpt.compare("my", "letters", device="cpu")
    assert result.text == "the validation text of my and letters"
    assert [side.has_read_it for side in result.sides] == [False, False]
    for side, run in zip(result.sides, (tiny_run, letters_run), strict=True):
        best = min(
            json.loads(row)["val_bits_per_byte"]
            for row in (run / METRICS).read_text().split("\n")
            if row
        )
        assert side.bits_per_byte == pytest.approx(best, rel=1e-5)
    whole = (tiny_run.parents[1] / "my.txt").read_text()
    assert whole.endswith("".join(piece.text for piece in pieces))


@pytest.mark.parametrize("order", [("my", "counting"), ("counting", "my")])
def test_counting_is_what_training_and_evaluate_print(
    order: tuple[str, str], tiny_run: Path, text: Path
) -> None:
    place = order.index("counting")
    on_new = minigpt.compare(*order, text)
    expected = minigpt.evaluate(tiny_run, text).counting_bits_per_byte
    assert on_new.sides[place].bits_per_byte == expected
    assert_as_evaluated(on_new, text)

    counted = minigpt.compare(*order).sides[place]
    assert counted.bits_per_byte == pytest.approx(last_row(tiny_run)["counting_bits_per_byte"])
    assert (counted.name, counted.parameters) == ("counting", 0)


def test_counting_beside_windows_that_overlap_sees_all_that_it_needs(
    tiny_run: Path, text: Path
) -> None:
    result = minigpt.compare("my", "counting", text, stride=4)
    expected = minigpt.evaluate(tiny_run, text, stride=4).counting_bits_per_byte
    assert result.sides[1].bits_per_byte == expected


def test_a_run_called_counting_is_that_run(letters_run: Path, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    os.symlink(letters_run, tmp_path / "runs/counting")
    os.chdir(tmp_path)
    result = minigpt.compare("counting", letters_run, letters_run.parent / "my.txt")
    assert result.sides[0].parameters > 0


def test_a_place_says_how_likely_each_found_it_and_what_it_expected_instead(
    tiny_run: Path, text: Path
) -> None:
    result = minigpt.compare(tiny_run, "counting", text)
    assert 5 <= len(result.places) <= 20
    content = text.read_text()
    writer = minigpt.load(tiny_run)
    for place in result.places:
        assert content[place.start :].startswith(place.text + place.after)
        assert content[: place.start].endswith(place.before)
        assert place.probabilities == pytest.approx([2**-bits for bits in place.bits])
        for guesses, probability in zip(place.instead, place.probabilities, strict=True):
            assert sum(guess.probability for guess in guesses) + probability <= 1 + 1e-5
            assert place.text.replace(" ", "␣") not in [guess.text for guess in guesses]

    near_the_start = [place for place in result.places if place.start < 30]
    for place in near_the_start:  # in the first window
        likeliest = writer.next_tokens(content[: place.start], k=300)
        (same,) = [token for token in likeliest if token.text == place.text]
        assert same.probability == pytest.approx(place.probabilities[0], rel=1e-3)


def test_text_that_a_run_has_learned_from_is_called_so(tiny_run: Path, letters_run: Path) -> None:
    result = minigpt.compare(tiny_run, "counting", "my.txt")
    assert [side.has_read_it for side in result.sides] == [True, True]
    assert len(result.warnings()) == 2


def test_documents_and_dialogue_are_read_as_in_training(
    talking_run: Path,
    monkeypatch: pytest.MonkeyPatch,
    tiny_base: Path,
    pieces: list[CommonPiece],
) -> None:
    """A model with marks for turns beside one without, on the turns of a chat and on its lines."""
    monkeypatch.chdir(talking_run.parents[1])
    for settings in ({}, {"plain": True}):
        pieces.clear()
        result = minigpt.compare(talking_run, "base", "chat.txt", **settings)
        text = "".join(piece.text for piece in pieces)
        assert ("08:0" in text) == bool(settings)
        assert "Otto" in text
        assert_as_evaluated(result, Path("chat.txt"), **settings)

    own = minigpt.compare(talking_run, "base")
    assert own.text == f"the validation text of {talking_run}"
    assert [side.has_read_it for side in own.sides] == [False, None]


@pytest.mark.parametrize(
    ("pair", "files", "problem"),
    [
        (("counting", "counting"), (), "counting can be only one of the two"),
        (("base", "counting"), ("my.txt",), "nothing can be counted in them"),
        (("base", "base"), (), "name a text as well"),
        (("my", "nowhere"), (), "no such run: nowhere"),
        (("my", "letters"), ("no.txt",), "no such file: no.txt"),
        (("my", "letters"), ("short.txt",), "too short to compare"),
        (("my", "letters"), ("strange.txt",), "letters: character 'Z' .*strange.txt, line 2"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    pair: tuple[str, str], files: tuple[str, ...], problem: str, tiny_base: Path
) -> None:
    Path("short.txt").write_text("a")
    Path("strange.txt").write_text("the fox\naZkZ\n")
    with pytest.raises(UserError, match=problem):
        minigpt.compare(*pair, *files)


def test_without_a_common_text_one_must_be_named(
    tiny_run: Path, talking_run: Path, workplace: Path
) -> None:
    with pytest.raises(UserError, match="were not validated on the same text"):
        minigpt.compare(tiny_run, talking_run)

    run = train_tiny(validation_fraction=0.2, steps=1, num_evals=1)
    same_text = train_tiny(steps=1, num_evals=1)
    with pytest.raises(UserError, match="were not validated on the same text"):
        minigpt.compare(run, same_text)

    (workplace / "my.txt").unlink()
    with pytest.raises(UserError, match=r"no such file: my.txt.*name a text as well"):
        minigpt.compare(run, run)
    (workplace / "new.txt").write_text(some_text(100, seed=2))
    with pytest.raises(UserError, match=r"counting needs the text of .*: no such file: my.txt"):
        minigpt.compare(run, "counting", "new.txt")


def test_a_damaged_run_is_named(tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = load_run(tiny_run)
    spoiled = {"final_norm.weight": np.full(16, math.nan, np.float32)}
    glass = NumpyGPT(found.glass.config, {**found.glass.weights, **spoiled})
    damaged = dataclasses.replace(found, glass=glass)
    monkeypatch.setattr(compare_module, "find_model", lambda _: damaged)
    with pytest.raises(UserError, match="my is damaged: its loss is nan"):
        minigpt.compare("my", "counting", "my.txt")
