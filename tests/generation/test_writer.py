"""A trained model that writes: the prompt first, whole characters only, the same text for the same
seed, up to where it should stop; that says how likely a text is; and clear words for what cannot be
done.
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
from minigpt import UserError
from minigpt.config import GPTConfig, SampleConfig
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
        model: GPT, prompt: list[int], choose: object, *, samples: int, predict: object
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


# Stopping


@given(
    text=st.text("ab cé🦊", max_size=20),
    stop=st.lists(st.text("ab cé🦊", min_size=1, max_size=3), max_size=2),
    count=st.integers(0, 40),
)
@few
def test_a_text_ends_before_its_first_stop_string(text: str, stop: list[str], count: int) -> None:
    """Token by token as the tokenizer cuts it; what tokens the model writes is not asked here."""
    tokenizer = bytewise()
    ids = tokenizer.encode(text)
    with pytest.MonkeyPatch.context() as monkeypatch:
        say(monkeypatch, [*ids, tokenizer.end_of_text])
        one = writer(tokenizer)
        (sample,) = one.samples("a", stop=tuple(stop), max_new_tokens=count)
        pieces = list(one.stream("a", stop=tuple(stop), max_new_tokens=count))
    whole = tokenizer.decode(ids[:count])
    found = [whole.index(s) + len(s) for s in stop if s in whole]
    if found:
        longest = max(len(s) for s in stop if whole[: min(found)].endswith(s))
        assert sample.text == whole[: min(found) - longest] and sample.stop_reason == "stop"
    else:
        assert sample.text == whole
        assert sample.stop_reason == ("length" if count <= len(ids) else "end_of_text")
    assert "".join(pieces) == "a" + sample.text and "" not in pieces


def test_a_stop_string_does_not_begin_in_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    one = writer()
    say(monkeypatch, one.tokenizer.encode("bcab"))
    assert one.generate("a", stop=("ab",)) == "abc"


@pytest.mark.parametrize("tokenizer", [CharacterTokenizer("\n abcdefgh"), bytewise()])
def test_banned_strings_are_not_written(tokenizer: Tokenizer) -> None:
    """Strings that the model writes when it may, shorter and shorter ones, one after the other."""
    one, banned = writer(tokenizer), ("\n",)
    given: dict[str, Any] = {"temperature": 1.0, "seed": 1, "max_new_tokens": 30, "samples": 10}
    for length in (3, 3, 2, 2, 1, 1):
        texts = [sample.text for sample in one.samples("", banned=banned, **given)]
        assert not any(string in text for string in banned for text in texts)
        usual = [string for text in texts for string in windows(text, length)]
        banned = (*banned, next(string for string in usual if "\ufffd" not in string))


def windows(text: str, length: int) -> list[str]:
    return [text[i : i + length] for i in range(len(text) - length + 1)]


def test_where_all_that_could_follow_is_banned_the_text_ends() -> None:
    banned = ("a", "b", "c", "d", "e", "f", "g", " ", "\n", "hh")
    samples = writer().samples("", samples=8, banned=banned, seed=0)
    ends = {(sample.text, sample.stop_reason) for sample in samples}
    assert ends == {("", "end_of_text"), ("h", "banned")}
    assert all(len(s.token_ids) == 1 for s in samples if s.stop_reason == "banned")


# Several samples


def in_double(one: Writer) -> Writer:
    """In float64, where rounding, which differs with the size of a batch, decides nothing."""
    return Writer(one.model.double(), one.tokenizer)


@pytest.mark.parametrize("samples", [2, 5])
def test_a_sample_depends_on_the_seed_and_its_index_alone(samples: int) -> None:
    one = in_double(writer(bytewise()))
    given: dict[str, Any] = {"seed": 3, "max_new_tokens": 30, "temperature": 1.0}
    given |= {"presence_penalty": 0.5, "repetition_penalty": 1.2, "banned": ("e", "th")}
    many = one.samples("the", samples=samples, **given)
    more = one.samples("the", samples=samples + 3, **given)
    for sample, same in zip(many, more, strict=False):
        assert (sample.text, sample.token_ids) == (same.text, same.token_ids)
    assert len({sample.text for sample in many}) == samples
    assert "the" + many[0].text == one.generate("the", **given)
    assert one.generate("the", samples=4, **given) == one.generate("the", **given)


def test_each_sample_stops_by_itself() -> None:
    one = in_double(writer())
    given: dict[str, Any] = {"seed": 1, "max_new_tokens": 60, "stop": ("a",)}
    samples = one.samples("ab", samples=6, **given)
    assert len({len(sample.token_ids) for sample in samples}) > 1
    for sample in samples:
        assert sample.prompt == "ab" and "a" not in sample.text
        text = one.tokenizer.decode(sample.token_ids)
        if sample.stop_reason == "stop":
            assert text == sample.text + "a"
        else:
            assert text == sample.text
            ended = sample.token_ids[-1] == one.tokenizer.end_of_text
            assert sample.stop_reason == ("end_of_text" if ended else "length")
        assert sample.seconds > 0 and sample.tokens_per_second > 0


def test_when_all_have_ended_nothing_more_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    one = writer()
    ids = iter([*one.tokenizer.encode("ab"), one.tokenizer.end_of_text, 0, 0])
    say(monkeypatch, ids)
    assert [sample.text for sample in one.samples("", samples=2)] == ["ab", "ab"]
    assert list(ids) == [0, 0]


def test_no_tokens_at_all_are_samples_too() -> None:
    for sample in writer().samples("ab", samples=2, max_new_tokens=0, log_probabilities=True):
        assert (sample.text, sample.token_ids, sample.log_probabilities) == ("", (), ())
        assert sample.stop_reason == "length"


# Step by step


def test_steps_are_the_samples_token_by_token() -> None:
    one = writer(bytewise())
    config = SampleConfig(seed=2, samples=3, max_new_tokens=25, stop=("th",))
    samples = one.samples("the", samples=3, seed=2, max_new_tokens=25, stop=("th",))
    steps = list(one.steps("the", config))
    for i, sample in enumerate(samples):
        mine = [step for step in steps if step.sample == i]
        assert tuple(step.token_id for step in mine) == sample.token_ids
        assert "".join(step.text for step in mine) == sample.text
        assert [step.stop_reason for step in mine[:-1]] == [None] * (len(mine) - 1)
        assert mine[-1].stop_reason == sample.stop_reason
        assert all(step.log_probability is None and step.alternatives == () for step in mine)


def test_probabilities_are_the_model_s_own_whatever_the_filters() -> None:
    one = in_double(writer())
    config = SampleConfig(
        seed=2, samples=2, max_new_tokens=4, top_k=2, temperature=3.0, logit_bias={"a": 5.0}
    )
    texts = {0: one.tokenizer.encode("b"), 1: one.tokenizer.encode("b")}
    for step in one.steps("b", config, log_probabilities=True, alternatives=3):
        ids = texts[step.sample]
        with torch.no_grad():
            expected = one.model(torch.tensor([ids]))[0, -1].log_softmax(-1)
        assert step.token_id is not None and step.log_probability is not None
        assert math.isclose(step.log_probability, expected[step.token_id], rel_tol=1e-5)
        best = expected.argsort(descending=True)[:3].tolist()
        assert [token.id for token in step.alternatives] == best
        for token in step.alternatives:
            assert math.isclose(token.log_probability, expected[token.id], rel_tol=1e-5)
        ids.append(step.token_id)


def test_samples_know_the_probabilities_of_their_tokens_if_asked() -> None:
    one = writer()
    given: dict[str, Any] = {"samples": 2, "seed": 4, "max_new_tokens": 5, "temperature": 0.5}
    assert all(sample.log_probabilities is None for sample in one.samples("", **given))
    for sample in one.samples("", log_probabilities=True, **given):
        assert sample.log_probabilities is not None
        assert len(sample.log_probabilities) == len(sample.token_ids)
        if sample.stop_reason == "length":
            expected = one.score(sample.text).log_probability
            assert math.isclose(math.fsum(sample.log_probabilities), expected, rel_tol=1e-4)


# How likely a text is


@given(text=st.text("abcdefgh \n", max_size=40))
@few
def test_each_token_is_scored_after_at_least_half_a_context(text: str) -> None:
    """After all of it, as far as a window reaches back; the context here is 6 tokens."""
    one = in_double(writer())
    ids = one.tokenizer.encode(text)
    read = [one.tokenizer.encode("\n")[0], *ids]
    score, total = one.score(text), 0.0
    assert b"".join(token.bytes for token in score.tokens).decode() == text
    for i, token in enumerate(score.tokens):
        candidates = []
        for seen in range(min(i + 1, 4), min(i + 1, 6) + 1):
            with torch.no_grad():
                logits = one.model(torch.tensor([read[i + 1 - seen : i + 1]]))[0, -1]
            candidates.append(float(logits.log_softmax(-1)[ids[i]]))
        assert any(math.isclose(token.log_probability, c, rel_tol=1e-5) for c in candidates)
        total += token.log_probability
    assert math.isclose(score.log_probability, total, rel_tol=1e-9)
    bits = -total / math.log(2) / max(len(text.encode()), 1)
    assert math.isclose(score.bits_per_byte, bits, rel_tol=1e-9)


def test_the_probabilities_of_all_texts_of_a_length_sum_to_one() -> None:
    """With those of texts that end before."""
    one = in_double(writer(CharacterTokenizer("ab\n")))

    def end(text: str) -> float:
        """Behind the new line from which an empty prompt is continued."""
        tokens = {token.id: token for token in one.next_tokens("\n" + text)}
        return tokens[one.tokenizer.end_of_text].probability

    def probability(text: str) -> float:
        return math.exp(one.score(text).log_probability)

    shorter = end("") + sum(probability(a) * end(a) for a in "ab\n")
    pairs = [a + b for a in "ab\n" for b in "ab\n"]
    assert math.isclose(shorter + sum(map(probability, pairs)), 1.0, rel_tol=1e-5)


def test_an_empty_text_is_certain() -> None:
    score = writer().score("")
    assert (score.tokens, score.log_probability, score.bits_per_byte) == ((), 0.0, 0.0)


@given(text=st.text("abcdefgh \n", max_size=12), k=st.integers(1, 20))
@few
def test_next_tokens_are_the_likeliest_in_order(text: str, k: int) -> None:
    one = writer()
    tokens = one.next_tokens(text, k)
    everything = one.next_tokens(text, one.tokenizer.vocab_size)
    assert math.isclose(math.fsum(t.probability for t in everything), 1.0, rel_tol=1e-5)
    assert tokens == everything[:k]
    probabilities = [token.probability for token in everything]
    assert probabilities == sorted(probabilities, reverse=True)
    assert {token.id for token in everything} == set(range(one.tokenizer.vocab_size))
    for token in tokens:
        assert token.bytes == one.tokenizer.token_bytes(token.id)
    greedy = one.generate(text, temperature=0.0, max_new_tokens=1)
    assert greedy == text + tokens[0].text


def test_a_token_that_is_part_of_a_character_has_bytes_but_no_text() -> None:
    tokens = writer(bytewise()).next_tokens("a", 300)
    first = next(token for token in tokens if token.bytes == "é".encode()[:1])
    assert first.text == "\ufffd"


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
        ({"stop": "end"}, "stop must be a list of texts, got 'end'"),
        ({"banned": ("",)}, "banned must be texts that are not empty"),
        ({"logit_bias": {"ab": 1.0}}, "logit_bias: 'ab' is not one token but 2: 'a', 'b'"),
        ({"logit_bias": {"€": 1.0}}, "'€' at position 0"),
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused_before_anything_is_written(
    setting: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        writer().stream("ab", **setting)


def test_what_cannot_be_scored_is_named() -> None:
    for judge in (writer().score, writer().next_tokens):
        with pytest.raises(UserError, match="'€' at position 2"):
            judge("ab€")
    with pytest.raises(UserError, match="k must be at least 1, got 0"):
        writer().next_tokens("ab", 0)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_weights_that_are_no_numbers_are_noticed(temperature: float) -> None:
    one = writer()
    nn.init.constant_(one.model.token_embedding.weight, math.nan)
    with pytest.raises(UserError, match="the model is damaged"):
        one.generate("ab", temperature=temperature)


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
