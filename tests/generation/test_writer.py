"""A trained model that writes: the prompt first, whole characters only, the same text for the same
seed, and clear words for what cannot be done.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import minigpt
from minigpt.config import GPTConfig, UserError
from minigpt.generation.writer import Writer
from minigpt.model import GPT
from minigpt.tokenizer import BytePairTokenizer, CharacterTokenizer, Tokenizer, train_bpe

few = settings(max_examples=25, deadline=None)


def writer(tokenizer: Tokenizer | None = None) -> Writer:
    """With a random model, whose context is shorter than what it writes here."""
    tokenizer = tokenizer or CharacterTokenizer("\n abcdefgh")
    torch.manual_seed(0)
    shape: dict[str, Any] = {"context_length": 6, "emb_dim": 8, "num_layers": 1, "num_heads": 1}
    model = GPT(GPTConfig(tokenizer.vocab_size, **shape)).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return Writer(model, tokenizer)


def bytewise() -> BytePairTokenizer:
    """Learned from plain ASCII, so that é is two tokens and 🦊 four."""
    return train_bpe(["the fox and the crow"], 270)


def say(monkeypatch: pytest.MonkeyPatch, ids: Sequence[int] | Iterator[int]) -> list[list[int]]:
    """Have the model write these ids; returns the prompts it is given."""
    prompts: list[list[int]] = []

    def decode(
        model: GPT, prompt: list[int], choose: object, *, samples: int
    ) -> Iterator[torch.Tensor]:
        prompts.append(prompt)
        return (torch.full((samples,), token) for token in ids)

    monkeypatch.setattr("minigpt.generation.writer.decode", decode)
    return prompts


# What is written


@given(
    prompt=st.text("abc \n", max_size=10),
    seed=st.integers(0, 2**63 - 1),
    temperature=st.floats(0, 5).filter(lambda t: t == 0 or t > 0.01),
    top_k=st.none() | st.integers(1, 20),
)
@few
def test_a_text_is_its_stream_joined_and_begins_with_the_prompt(
    prompt: str, seed: int, temperature: float, top_k: int | None
) -> None:
    given: dict[str, Any] = {"seed": seed, "temperature": temperature, "top_k": top_k}
    pieces = list(writer().stream(prompt, max_new_tokens=15, **given))
    text = writer().generate(prompt, max_new_tokens=15, **given)
    assert "".join(pieces) == text
    assert text.startswith(prompt) and pieces[:1] == ([prompt] if prompt else pieces[:1])
    assert "" not in pieces


def test_the_same_seed_writes_the_same_text_and_another_another() -> None:
    texts = [writer().generate("abc", seed=seed, max_new_tokens=40) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_without_a_seed_every_text_is_another() -> None:
    one = writer()
    assert len({one.generate("abc", max_new_tokens=40) for _ in range(10)}) > 1


def test_writing_draws_nothing_from_torch_s_own_randomness() -> None:
    before = torch.get_rng_state()
    writer().generate("abc", max_new_tokens=5)
    assert torch.equal(torch.get_rng_state(), before)


def test_temperature_zero_needs_no_seed() -> None:
    one = writer()
    texts = {one.generate("abc", temperature=0.0, max_new_tokens=20) for _ in range(3)}
    assert len(texts) == 1
    assert one.generate("abc", temperature=1.0, top_k=1, max_new_tokens=20) in texts


@pytest.mark.parametrize("count", [0, 1, 7, 100])
def test_as_many_tokens_are_written_as_allowed(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    one = writer()
    say(monkeypatch, itertools.repeat(one.tokenizer.encode("c")[0]))
    assert one.generate("ab", max_new_tokens=count) == "ab" + "c" * count


def test_no_tokens_at_all_give_the_prompt() -> None:
    assert writer().generate("abc", max_new_tokens=0) == "abc"
    assert writer().generate("", max_new_tokens=0) == ""


def test_it_stops_where_the_text_ends_and_does_not_write_that_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for tokenizer in (CharacterTokenizer("abcd"), bytewise()):
        ids = tokenizer.encode("bc")
        say(monkeypatch, [*ids, tokenizer.end_of_text, *ids])
        assert writer(tokenizer).generate("a") == "abc"


# Characters of several tokens


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
@few
def test_a_character_is_never_broken(text: str) -> None:
    """Each piece is whole characters; nothing waits longer than for its own bytes."""
    tokenizer = bytewise()
    with pytest.MonkeyPatch.context() as monkeypatch:
        say(monkeypatch, tokenizer.encode(text))
        pieces = list(writer(tokenizer).stream("", max_new_tokens=200))
    assert "".join(pieces) == text
    assert "" not in pieces
    assert all(len(piece) == 1 for piece in pieces if not piece.isascii())


def test_a_character_comes_as_soon_as_it_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = bytewise()
    assert [len(tokenizer.encode(c)) for c in "é🦊"] == [2, 4]
    given = iter(tokenizer.encode("é🦊"))
    say(monkeypatch, given)
    stream = writer(tokenizer).stream("a")
    assert [next(stream), next(stream)] == ["a", "é"]
    assert len(list(given)) == 4


def test_a_character_that_is_never_finished_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = bytewise()
    say(monkeypatch, tokenizer.encode("b🦊"))
    assert writer(tokenizer).generate("a", max_new_tokens=3) == "ab\ufffd"


def test_bytes_that_are_no_character_are_marked_and_what_follows_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tokenizer = bytewise()
    say(monkeypatch, [*tokenizer.encode("é")[:1], *tokenizer.encode("ok")])
    assert writer(tokenizer).generate("a") == "a\ufffdok"


# Prompts


@pytest.mark.parametrize(
    ("tokenizer", "first"), [(CharacterTokenizer("a\n"), 1), (CharacterTokenizer("ab"), 2)]
)
def test_an_empty_prompt_begins_after_a_new_line_or_at_the_end_of_a_text(
    monkeypatch: pytest.MonkeyPatch, tokenizer: CharacterTokenizer, first: int
) -> None:
    prompts = say(monkeypatch, tokenizer.encode("aa"))
    assert writer(tokenizer).generate("") == "aa"
    assert prompts == [[first]]


@pytest.mark.parametrize("tokenizer", [CharacterTokenizer("ab"), bytewise()])
def test_an_empty_prompt_works_with_every_tokenizer(tokenizer: Tokenizer) -> None:
    assert isinstance(writer(tokenizer).generate(max_new_tokens=20, seed=0), str)


def test_a_prompt_that_cannot_be_encoded_is_refused_before_anything_is_written() -> None:
    with pytest.raises(UserError, match="'€' at position 2"):
        writer().stream("ab€")


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"max_new_tokens": -1}, "max_new_tokens must be at least 0, got -1"),
        ({"temperature": -0.5}, "temperature must be .* got -0.5"),
        ({"temperature": math.nan}, "temperature must be .* got nan"),
        ({"temperature": math.inf}, "temperature must be .* got inf"),
        ({"top_k": 0}, "top_k must be at least 1, got 0"),
        ({"seed": -1}, "seed must be between 0 and .* got -1"),
        ({"seed": 2**63}, "seed must be between 0 and .* got 9223372036854775808"),
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused_before_anything_is_written(
    setting: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        writer().stream("ab", **setting)


# From a run


def test_a_run_made_by_training_can_be_loaded_and_writes(tiny_run: Path) -> None:
    one = minigpt.load(tiny_run, device="cpu")
    assert one.generate("the fox", max_new_tokens=20, seed=1).startswith("the fox")
    assert one.generate("é🦊", max_new_tokens=0) == "é🦊"
    logits = one.model(torch.tensor([one.tokenizer.encode("the fox")]))
    assert logits.shape[-1] == one.tokenizer.vocab_size and not one.model.training


def test_loading_twice_writes_the_same(tiny_run: Path) -> None:
    texts = {minigpt.load(tiny_run).generate("the", max_new_tokens=30, seed=5) for _ in range(2)}
    assert len(texts) == 1


def test_what_cannot_be_loaded_is_named(tiny_run: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no such run: .*nowhere"):
        minigpt.load(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"is not a run: it has no config\.json"):
        minigpt.load(tmp_path)
    with pytest.raises(UserError, match="no device 'abacus'"):
        minigpt.load(tiny_run, device="abacus")
