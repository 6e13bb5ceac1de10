"""What we write as GGUF, llama.cpp runs alike: the same ids for a text, the same greedy text.

Runs where llama-cpp-python is installed, which takes minutes to build: pytest -m llama_cpp.
"""

from pathlib import Path
from typing import Any

import pytest

from minigpt import Writer
from minigpt.generation.torch_gpt import glass_of
from minigpt.interop.gguf import write_gguf
from minigpt.tokenizer import Tokenizer

from .examples import CONFIGS, HARD_TEXT, PROMPT, byte_pairs, characters, random_model, weights_of
from .test_tokenizer_import import SMOLLM, tokenizer_of

pytestmark = pytest.mark.llama_cpp
llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")


def llama(folder: Path, name: str, tokenizer: Tokenizer) -> tuple[Any, Writer]:
    """The same model in llama.cpp and here."""
    model = random_model(name, vocab_size=tokenizer.vocab_size)
    write_gguf(folder / "model.gguf", model.config, weights_of(model), tokenizer, name)
    context = llama_cpp.Llama(
        str(folder / "model.gguf"),
        n_ctx=model.config.context_length,
        n_threads=1,
        type_k=llama_cpp.GGML_TYPE_F32,
        type_v=llama_cpp.GGML_TYPE_F32,
        verbose=False,
    )
    return context, Writer(glass_of(model), tokenizer)


def encode(context: Any, text: str) -> list[int]:
    return context.tokenize(text.encode(), add_bos=False, special=False)


def greedy(context: Any, number: int) -> list[int]:
    tokens: list[int] = []
    for token in context.generate(encode(context, PROMPT), temp=0.0, top_k=1, repeat_penalty=1.0):
        if len(tokens) == number or token == context.token_eos():
            return tokens
        tokens.append(token)
    return tokens


@pytest.mark.parametrize("name", CONFIGS)
def test_greedy_text_is_the_same(name: str, tmp_path: Path) -> None:
    context, writer = llama(tmp_path, name, byte_pairs())
    ours = writer.generate(PROMPT, temperature=0, max_new_tokens=100)
    assert PROMPT + writer.tokenizer.decode(greedy(context, 100)) == ours


def smollms() -> Tokenizer:
    return tokenizer_of(SMOLLM["all bytes"])


@pytest.mark.parametrize("make", [byte_pairs, characters, smollms])
def test_a_hard_text_has_the_same_ids(make: Any, tmp_path: Path) -> None:
    context, writer = llama(tmp_path, "qwen3", make())
    ids = writer.tokenizer.encode(HARD_TEXT)
    assert encode(context, HARD_TEXT) == ids
    assert context.detokenize(ids) == HARD_TEXT.encode()


def test_an_unknown_character_is_left_out(tmp_path: Path) -> None:
    context, writer = llama(tmp_path, "qwen3", characters())
    assert encode(context, "The € crow") == writer.tokenizer.encode("The  crow")
