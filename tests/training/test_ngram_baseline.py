"""How predictable a text is: the formula, written a second time in dictionaries, and its limits."""

import math
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt.data.corpus import Corpus
from minigpt.training.ngram_baseline import bits_per_byte, predictability
from tests.conftest import some_text

few = settings(max_examples=60, deadline=None)
few_letters = st.text(alphabet="abж\n\U0001f600", min_size=1, max_size=60)
any_letters = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20
)
texts = few_letters | any_letters


def by_dictionaries(known: str, rest: str) -> float:
    """Witten and Bell's formula, one character after the other; \\0 is before the first ones."""
    text, bits = "\0" * 4 + known + rest, 0.0
    inside, alphabet = range(4, 4 + len(known)), len(set(known + rest))
    for place in range(4 + len(known), len(text)):
        chance = 1 / alphabet
        for order in range(5):
            before = text[place - order : place]
            counts = Counter(text[i] for i in inside if text[i - order : i] == before)
            if counts:
                n, kinds = counts.total(), len(counts)
                chance = (counts[text[place]] + kinds * chance) / (n + kinds)
        bits -= math.log2(chance)
    return bits / len(rest.encode())


@given(known=texts, rest=texts)
@few
def test_it_is_the_formula(known: str, rest: str) -> None:
    assert bits_per_byte(known, rest) == pytest.approx(by_dictionaries(known, rest))


def test_noise_takes_what_its_letters_take_and_repetition_nothing() -> None:
    draw = random.Random(0)
    noise = "".join(draw.choices("abcdefghijklmnop", k=40_000))  # 4 bits each
    assert 3.9 < bits_per_byte(noise[:36_000], noise[36_000:]) < 5
    assert bits_per_byte("the same again. " * 2000, "the same again. " * 200) < 0.01


@pytest.mark.parametrize(("known", "rest"), [("", ""), ("", "abc"), ("abc", "")])
def test_where_there_is_nothing_to_count_a_byte_is_a_byte(known: str, rest: str) -> None:
    assert bits_per_byte(known, rest) == 8.0


def test_a_regular_text_is_seen_to_be_one(tmp_path: Path) -> None:
    def bits(text: str, sample_size: int = 100_000) -> float:
        (tmp_path / "text.txt").write_text(text)
        return predictability(Corpus((tmp_path / "text.txt",)), 0.1, sample_size)

    words, regular = some_text(words=5000), "again and again " * 250
    assert 0.0 < bits("a" * 1000) < 0.2 < bits(words) < 3
    assert 0.0 < bits("abc") <= 8.0
    assert bits(regular + words, sample_size=len(regular)) == bits(regular)
