"""The page's engine is the glass engine, and its tokenizers are the package's."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt.generation.writer import Writer
from minigpt.tokenizer import make_tokenizer
from minigpt.tokenizer.chunked_encoding import PATTERNS

from ..interop.examples import CONFIGS, HARD_TEXT, TOKENIZERS, byte_pairs
from ..interop.test_tokenizer_import import content, read
from ..tokenizer.examples import ALPHABET, FABLE, bare_encoding
from .conftest import Open, random_found, until_read

pytestmark = pytest.mark.page
PROMPT = "The crow asked"
CRLF_AND_QUOTES = "“one 'two\r\n\r\nthree\" \u0645\u0631\u062d\u0628\u0627 日本語 e\u0301\u0323 🇩🇪"


@pytest.mark.parametrize("name", CONFIGS)
def test_logits_are_those_of_the_glass_engine(name: str, open_page: Open, tmp_path: Path) -> None:
    fields: dict[str, Any] = {"num_layers": 3, "context_length": 80} | CONFIGS[name]
    found = random_found(byte_pairs(), tmp_path, **fields)
    page = open_page(found)
    ids = np.random.default_rng(1).integers(found.tokenizer.vocab_size, size=70)
    rows = page.evaluate(
        "ids => minigpt.logits(ids).then(all => all.map(r => [...r]))", ids.tolist()
    )
    np.testing.assert_allclose(np.array(rows), found.glass(ids[None])[0], atol=1e-3)


@pytest.mark.parametrize("architecture", ["qwen3", "gpt2"])
def test_200_greedy_tokens_are_equal(architecture: str, open_page: Open, tmp_path: Path) -> None:
    """The context is shorter than that: the window moves as in the package."""
    shape = {"architecture": architecture, "emb_dim": 32, "num_heads": 2, "context_length": 60}
    found = random_found(byte_pairs(), tmp_path, seed=2, num_layers=2, **shape)
    page = open_page(found)
    writer = Writer(found.glass, found.tokenizer)
    for prompt, penalty, count in (PROMPT, 1.0, 200), ("", 1.3, 60), (PROMPT, 0.8, 60):
        settings = {"temperature": 0, "maxNewTokens": count, "repetitionPenalty": penalty}
        text = page.evaluate("([p, s]) => minigpt.generate(p, s)", [prompt, settings])
        options = {"temperature": 0, "max_new_tokens": count, "repetition_penalty": penalty}
        assert text == writer.generate(prompt, **options)


@pytest.mark.parametrize("name", ["qwen3", "qwen3 grouped, untied", "gpt2", "gpt2 untied"])
def test_a_token_is_explained_as_in_python(name: str, open_page: Open, tmp_path: Path) -> None:
    """Of a text longer than the context too: its window is the last tokens before the place."""
    fields: dict[str, Any] = {"num_layers": 2, "context_length": 20} | CONFIGS[name]
    found = random_found(byte_pairs(), tmp_path, **fields)
    page = open_page(found)
    writer = Writer(found.glass, found.tokenizer)
    text = "The crow asked the fox for bread, and the fox asked the mill."
    last = len(found.tokenizer.encode(text)) - 1

    for place in (1, 7, last):
        why = page.evaluate("([text, place]) => minigpt.explain(text, place)", [text, place])
        expected = writer.explain(text, place)
        assert why["logit"] == pytest.approx(expected.logit, abs=1e-3)
        assert sum(why["parts"].values()) == pytest.approx(why["logit"], abs=1e-3)
        assert why["probability"] == pytest.approx(expected.probability, abs=1e-3)
        assert why["parts"] == pytest.approx(expected.parts, abs=1e-3)
        assert why["heads"] == pytest.approx(expected.heads, abs=1e-3)
        words = {int(index): bits for index, bits in why["words"].items()}
        assert words == pytest.approx(expected.words, abs=1e-3)

    for wrong in (0, last + 1, "x"):
        ask = "([text, place]) => minigpt.explain(text, place).catch((e) => e.message)"
        assert "place must be between 1 and" in page.evaluate(ask, [text, wrong])


def _tokenizers() -> dict[str, Any]:
    learned = byte_pairs()
    tokens = ["th", "the", " t", " the", "at", "aa", "aaa", "'S", " 12", "\r\n"]
    specials = {"<|endoftext|>": 256}
    others: dict[str, Any] = {
        n: bare_encoding(tokens, specials, pattern) for n, pattern in PATTERNS.items()
    }
    turns = make_tokenizer("bpe", 320, [FABLE], has_turns=True)
    return {"bpe": learned, "turns": turns} | {n: t() for n, t in TOKENIZERS.items()} | others


@pytest.mark.parametrize("name", [*_tokenizers(), "with merges of its own"])
def test_tokenizers_give_the_same_ids(name: str, open_page: Open, tmp_path: Path) -> None:
    tokenizer = _tokenizers().get(name) or read(tmp_path, content())
    found = random_found(tokenizer, tmp_path, emb_dim=8, num_layers=1, num_heads=1)
    page = open_page(found)
    known = getattr(tokenizer, "characters", None)
    some = (
        st.just("a" * 3000)
        | st.sampled_from(["a: b\n\n", "\n\n\n\na\n\n\nb", "\n"])
        | st.just(FABLE)
        | st.text(ALPHABET)
        | st.text()
    )

    @given(st.lists(st.text(known) if known else some, max_size=8))
    @settings(max_examples=25, deadline=None)
    def test(texts: list[str]) -> None:
        texts = texts if known else [*texts, HARD_TEXT, CRLF_AND_QUOTES]
        ids = page.evaluate("all => all.map(t => minigpt.encode(t))", texts)
        assert ids == [tokenizer.encode(text) for text in texts]
        assert page.evaluate("all => all.map(t => minigpt.decode(t))", ids) == texts

    test()


def test_scripts_and_a_person_write_at_once_and_none_ends_another(
    open_page: Open, tmp_path: Path
) -> None:
    found = random_found(byte_pairs(), tmp_path, emb_dim=32, num_layers=2, num_heads=2)
    page = open_page(found, link="#prompt=The&maxNewTokens=300&temperature=1")
    settings = {"temperature": 1, "maxNewTokens": 300, "seed": 1}
    generate = (
        "([prompts, settings]) => Promise.all(prompts.map((p) => minigpt.generate(p, settings)))"
    )
    prompts = ["The", "A", "No", ""]
    alone = [page.evaluate(generate, [[prompt], settings])[0] for prompt in prompts]

    page.get_by_role("button", name="Write", exact=True).click()
    assert page.evaluate(generate, [prompts, settings]) == alone
    until_read(page)
    assert page.evaluate("minigpt.text()") == alone[0]
