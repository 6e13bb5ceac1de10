"""Whether a text is long enough: what is refused, and that a short text is refused at once."""

from pathlib import Path
from typing import Any

import pytest
import tiktoken

from minigpt import UserError
from minigpt.config import TextConfig
from minigpt.data.source import check_context, check_counts, check_short_text, find_source
from minigpt.data.token_cache import prepare_tokens

from ..conftest import some_text


def check(file: Path, context_length: int | None = None, **fields: Any) -> None:
    config = TextConfig(files=(str(file),), **fields)
    check_short_text(find_source(config), config, context_length)


def test_a_context_longer_than_the_text_is_refused_with_one_that_would_do() -> None:
    with pytest.raises(UserError, match=r"1,500 tokens.*2,048.*--context-length 1499"):
        check_context(1500, 2048)
    with pytest.raises(UserError):
        check_context(1500, 1500)
    check_context(1500, 1499)


@pytest.mark.parametrize(
    ("training", "validation", "fields", "remedy"),
    [
        (1, 9, {}, "1 token to train on and 9 to validate on.* use a longer text"),
        (9, 1, {"validation": ("held.txt",)}, "use a longer --validation text"),
        (1, 9, {"validation": ("held.txt",)}, "use a longer text"),
        (0, 9, {"max_characters": 100}, "use a larger --max-characters"),
    ],
)
def test_the_refusal_says_what_to_do(
    training: int, validation: int, fields: dict[str, Any], remedy: str
) -> None:
    with pytest.raises(UserError, match=remedy):
        check_counts(training, validation, TextConfig(**fields))


@pytest.mark.parametrize("tokenizer", ["bpe", "char", "gpt2"])
def test_a_short_text_is_refused_before_its_tokens_are_made_just_if_it_would_be_then(
    tokenizer: str, tmp_path: Path, small_gpt2: tiktoken.Encoding
) -> None:
    outcomes = set()
    for text in (
        "a",
        "ab",
        "abc",
        "a b",
        "the the the",
        "a\n\n\nb",
        40 * "a",
        "word " * 8,
        "日本語",
    ):
        file = tmp_path / "my.txt"
        file.write_text(text, encoding="utf-8")
        config = TextConfig(
            files=(str(file),), tokenizer=tokenizer, vocab_size=320, validation_fraction=0.4
        )
        refusals = []
        for refuses in (
            lambda config=config: check_short_text(find_source(config), config),
            lambda config=config: prepare_tokens(
                find_source(config), config, cache=tmp_path / "cache"
            ),
        ):
            try:
                refuses()
                refusals.append("")
            except UserError as error:
                refusals.append(str(error))

        assert refusals[0] == refusals[1]
        outcomes.add(refusals[0])
    assert "" in outcomes and len(outcomes) > 1


def test_a_short_text_knows_how_long_a_context_it_allows(tmp_path: Path) -> None:
    file = tmp_path / "my.txt"
    file.write_text(some_text())
    with pytest.raises(UserError, match=r"too few for context_length 9,000; .*--context-length"):
        check(file, 9000)
    check(file, 500)
    check(file)


def test_of_a_long_text_only_the_validation_text_can_be_too_short(tmp_path: Path) -> None:
    file, held = tmp_path / "my.txt", tmp_path / "held.txt"
    file.write_text(some_text(words=20_000))
    held.write_text("x")
    with pytest.raises(UserError, match=r"1 to validate on.*longer --validation text"):
        check(file, validation=(str(held),))
    held.write_text("it is judged by this\n")
    check(file, validation=(str(held),))
    with pytest.raises(UserError, match="larger --max-characters"):
        check(file, max_characters=1)
