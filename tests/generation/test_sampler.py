"""What a SampleConfig asks for, in the order of transformers, whose `generate` is the reference."""

from typing import Any

import pytest
import torch
import transformers

from minigpt import UserError
from minigpt.config import SampleConfig
from minigpt.generation.sampler import Chooser
from minigpt.generation.sampling import filtered
from minigpt.tokenizer import CharacterTokenizer, train_bpe

LETTERS = CharacterTokenizer("abcdefghijklmnopqrstuvwxyz .,!?'-\n0123456789")
V = LETTERS.vocab_size


def ids(text: str) -> list[int]:
    return LETTERS.encode(text)


def chooser(prompt: list[int] | None = None, samples: int = 1, **settings: Any) -> Chooser:
    config = SampleConfig(samples=samples, **{"temperature": 1.0, "seed": 0} | settings)
    return Chooser(config, LETTERS, V, prompt or [])


# Parity

SETTINGS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"temperature": 0.6}, {}),
    ({"temperature": 1.0, "repetition_penalty": 1.7}, {}),
    ({"temperature": 1.0, "repetition_penalty": 0.6}, {}),
    ({"temperature": 0.7, "top_k": 9, "top_p": 0.8, "min_p": 0.02}, {}),
    ({"temperature": 2.5, "top_p": 0.7}, {}),
    ({"temperature": 2.5, "min_p": 0.2}, {}),
    (
        {"temperature": 0.9, "repetition_penalty": 2.0, "top_k": 12, "top_p": 0.9},
        {"logit_bias": {"e": 2.5, "t": -1.5, "\n": 4.0}, "banned": ("a", "th", "x y")},
    ),
]


@pytest.fixture(scope="module")
def gpt2() -> transformers.GPT2LMHeadModel:
    torch.manual_seed(0)
    shape: dict[str, Any] = {"n_positions": 64, "n_embd": 8, "n_layer": 1, "n_head": 1}
    config = transformers.GPT2Config(vocab_size=V, eos_token_id=None, bos_token_id=None, **shape)
    model = transformers.GPT2LMHeadModel(config).eval()
    torch.nn.init.normal_(model.transformer.wte.weight, std=0.6)
    return model


@pytest.mark.parametrize(("shared", "ours"), SETTINGS)
def test_tokens_are_as_probable_as_with_transformers(
    gpt2: transformers.GPT2LMHeadModel, shared: dict[str, Any], ours: dict[str, Any]
) -> None:
    """At each step of a text that it generates: from its logits its scores after all filters.
    And that often they are drawn, within five standard deviations of n draws.
    """
    theirs: dict[str, Any] = {"top_k": 0} | shared
    if "logit_bias" in ours:
        biases = ours["logit_bias"].items()
        theirs["sequence_bias"] = [[ids(text), float(bias)] for text, bias in biases]
    if "banned" in ours:
        theirs["bad_words_ids"] = [ids(text) for text in ours["banned"]]
    text = torch.tensor([ids("the fox, the x")])
    out = gpt2.generate(
        text,
        do_sample=True,
        max_new_tokens=12,
        pad_token_id=0,
        output_scores=True,
        output_logits=True,
        return_dict_in_generate=True,
        **theirs,
    )
    for i, (logits, scores) in enumerate(zip(out.logits, out.scores, strict=True)):
        before = out.sequences[0, : text.shape[1] + i].tolist()
        adjusted = chooser(before, **shared, **ours).adjusted(logits)
        filters = {name: value for name, value in shared.items() if "penalty" not in name}
        torch.testing.assert_close(filtered(adjusted, **filters), scores)
    n, p = 2000, scores[0].double().softmax(-1)
    choose = chooser(before, samples=n, **shared, **ours)
    counts = choose(logits.expand(n, -1)).bincount(minlength=V)
    assert ((counts - n * p).abs() <= 5 * (n * p * (1 - p)).sqrt()).all()


# Penalties


def test_the_repetition_penalty_is_for_what_was_written_too_but_once() -> None:
    choose = chooser(ids("c"), temperature=0.0, repetition_penalty=2.0)
    logits = torch.full((1, V), -9.0)
    logits[0, ids("abc")] = torch.tensor([3.0, 2.0, 3.5])  # at first 3, 2 and 1.75
    assert [int(choose(logits)) for _ in range(4)] == ids("abcc")


def test_presence_and_frequency_are_for_what_was_written_not_for_the_prompt() -> None:
    """By OpenAI's formula, logit - frequency * count - presence * [count > 0]."""
    choose = chooser(ids("aaabbb"), temperature=0.0, presence_penalty=1.0, frequency_penalty=0.25)
    logits = torch.full((1, V), -9.0)
    logits[0, ids("abc")] = torch.tensor([3.0, 2.0, 1.0])
    # a, b and c in turn are at: 3 2 1 | 1.75 2 1 | 1.75 .75 1 | 1.5 .75 1 | 1.25 .75 1 | 1 .75 1
    written = [int(choose(logits)) for _ in range(6)]
    assert written[:5] == ids("abaaa")
    assert written[5] in ids("ac")


def test_samples_are_penalised_each_for_its_own_tokens() -> None:
    choose = chooser(samples=2, temperature=0.0, presence_penalty=5.0)
    logits = torch.zeros(2, V)
    logits[0, ids("ab")] = torch.tensor([4.0, 3.0])
    logits[1, ids("bc")] = torch.tensor([4.0, 3.0])
    assert choose(logits).tolist() == ids("ab")
    assert choose(logits).tolist() == ids("bc")


def test_the_logits_of_the_model_are_left_as_they_were() -> None:
    logits = torch.randn(1, V)
    before = logits.clone()
    everything = {"repetition_penalty": 2.0, "presence_penalty": 1.0, "banned": ("a", "bc")}
    choose = chooser(ids("b"), logit_bias={"d": 1.0}, top_k=3, top_p=0.9, min_p=0.1, **everything)
    choose(logits)
    assert torch.equal(logits, before)


# Bias


@pytest.mark.parametrize("text", ["", "the", "th"])
def test_a_bias_is_for_one_token(text: str) -> None:
    with pytest.raises(UserError, match=f"logit_bias: '{text}' is not one token but {len(text)}"):
        chooser(logit_bias={text: 1.0})


def test_a_bias_may_be_for_a_token_of_several_characters() -> None:
    tokenizer = train_bpe(["the fox and the crow"] * 9, 300)
    assert len(tokenizer.encode(" the")) == 1
    config = SampleConfig(temperature=0.0, logit_bias={" the": 2.0})
    choose = Chooser(config, tokenizer, tokenizer.vocab_size, [])
    assert choose(torch.zeros(1, tokenizer.vocab_size)).tolist() == tokenizer.encode(" the")


# Banned


def test_banned_strings_are_not_written_token_by_token() -> None:
    banned, logits = ("abc", "cc", "bbab"), torch.full((1, V), -99.0)
    logits[0, ids("abc")] = 0.0
    free, bound = (chooser(ids("a"), banned=strings) for strings in ((), banned))
    for choose, expected in [(free, True), (bound, False)]:
        text = LETTERS.decode(int(choose(logits)) for _ in range(500))
        assert [string in text for string in banned] == [expected] * 3


def test_a_banned_string_may_not_be_completed_behind_the_prompt_either() -> None:
    logits = torch.zeros(1, V)
    logits[0, ids("c")] = 9.0
    for prompt, banned in [("ab", True), ("xb", False), ("abx", False)]:
        choose = chooser(ids(prompt), temperature=0.0, banned=("abc",))
        assert (int(choose(logits)) != ids("c")[0]) == banned


def test_where_all_is_banned_it_says_so_and_other_samples_go_on() -> None:
    banned = tuple(c for c in LETTERS.characters if c not in "ab")
    choose = chooser(samples=2, temperature=0.0, banned=(*banned, "aa", "ab", "bb"))
    logits = torch.zeros(2, V)
    logits[0, ids("a")] = logits[1, ids("b")] = 1.0
    assert choose(logits).tolist() == ids("ab")
    assert choose.stuck == [False, False]
    choose(logits)
    assert choose.stuck == [True, False]
