"""A text to the tokens of somebody else's tokenizer, which are used once and never kept."""

import json
from pathlib import Path
from typing import Any

import pytest

from minigpt import UserError
from minigpt.config import TextConfig, TrainConfig
from minigpt.data.batches import Dataset, make_batches
from minigpt.data.source import check_short_text, find_source
from minigpt.data.token_cache import prepare_tokens
from minigpt.data.token_files import FOLDER
from minigpt.tokenizer import ForeignTokenizer, TokenizerLike, as_tokenizer
from tests.tokenizer.words import CapitalWords, Words, WordsAndEnd

from .texts import json_lines, one_line, write

FABLE = "The cat sat on the mat; it's the cat's mat. There the cat eats dates.\n\n" * 20


def prepared(
    folder: Path, tokenizer: TokenizerLike, *texts: str, say: Any = print, **config: Any
) -> Dataset:
    file = write(folder / "a.jsonl", json_lines(texts))
    text = TextConfig(files=(str(file),), **config)
    return prepare_tokens(
        find_source(text),
        text,
        tokenizer=as_tokenizer(tokenizer),
        cache=folder / "cache",
        say=say,
    )


def ids_of(data: Dataset) -> list[int]:
    return [*data.train[:].tolist(), *data.validation[:].tolist()]


def test_a_text_becomes_the_tokens_of_an_object_with_four_members(tmp_path: Path) -> None:
    words, said = Words(FABLE), []
    data = prepared(tmp_path, words, FABLE, say=said.append)
    assert isinstance(data.tokenizer, ForeignTokenizer) and data.tokenizer.given is words
    assert words.decode(ids_of(data)) == FABLE
    assert len(data.validation) >= 2
    assert said == []

    batches = make_batches(data, TrainConfig(batch_size=2), context_length=8)
    inputs, targets = batches.batch(step=0, done=0.0)
    assert inputs.shape == (2, 8)
    assert inputs[:, 1:].equal(targets[:, :-1])


def test_a_long_text_is_cut_where_a_word_ends(tmp_path: Path) -> None:
    """Each of its words, and each run of white space, is still one token."""
    text = "one  two \n three\nfour \t\t five\n\n" * 15_000
    words = Words(text)
    assert words.vocab_size == 10
    data = prepared(tmp_path, words, text)
    assert ids_of(data) == words.encode(text)


def test_its_end_of_text_stands_between_documents_if_it_has_one(tmp_path: Path) -> None:
    texts = ["a b", "b a", "a a"]
    with_end = prepared(tmp_path, WordsAndEnd("a b"), *texts, split="end", validation_fraction=0.4)
    assert ids_of(with_end).count(3) == 2
    without = prepared(tmp_path, Words("a b"), *texts, split="end", validation_fraction=0.4)
    assert ids_of(without) == [i for i in ids_of(with_end) if i != 3]


def test_tokens_of_one_object_are_never_taken_for_those_of_another(tmp_path: Path) -> None:
    """Of two with the same tokens, of which the second writes all words alike."""
    text = "on On oN " * 50
    first = prepared(tmp_path, Words(text), text)
    other = CapitalWords("")
    other.words = Words(text).words
    other.vocab_size = len(other.words)
    second = prepared(tmp_path, other, text, say=lambda line: None)
    assert as_tokenizer(other).fingerprint == first.tokenizer.fingerprint
    assert ids_of(first) != ids_of(second)
    assert list((tmp_path / "cache" / FOLDER).iterdir()) == []  # nothing is kept of either


def test_tokens_that_leave_out_some_of_the_text_are_said(tmp_path: Path) -> None:
    """Bits per byte are then those of the rest."""
    words = Words(FABLE.replace("cat", "heron"))
    words.encode = lambda text: [  # type: ignore[method-assign]
        words.words.index(word) for word in words.cut(text) if word in words.words
    ]
    said: list[str] = []
    data = prepared(tmp_path, words, FABLE, say=said.append)
    share = len(words.decode(ids_of(data))) / len(FABLE)
    problem = f"stand for {share:.1%} of the bytes of the text; bits per byte count these"
    assert said == [f"the tokens of Words {problem}"]


@pytest.mark.parametrize("text", ["a", "a a"])
def test_a_text_that_gives_too_few_tokens_is_refused(text: str, tmp_path: Path) -> None:
    words = Words("a a")
    with pytest.raises(UserError, match="the text is too short"):
        prepared(tmp_path, words, text)
    file = write(tmp_path / "a.txt", text)
    config = TextConfig((str(file),))
    with pytest.raises(UserError, match="the text is too short"):
        check_short_text(find_source(config), config, tokenizer=as_tokenizer(words))


def test_a_word_that_it_does_not_know_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        prepared(tmp_path, Words("a"), "a b" * 5)
    assert one_line(refused).startswith("the tokenizer Words cannot encode 'a ba b")


def test_what_is_no_tokenizer_is_refused_before_the_text_is_encoded(tmp_path: Path) -> None:
    nothing: Any = json
    with pytest.raises(UserError, match="the tokenizer module has no encode"):
        prepared(tmp_path, nothing, FABLE)
