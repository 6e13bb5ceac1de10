"""Text to token ids and back: what every tokenizer promises, what each kind adds, and tiktoken's
encodings without a network. What holds for any text is tried on generated text.
"""

import json
import os
import signal
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import tiktoken
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from minigpt import UserError
from minigpt.tokenizer import (
    END_OF_TEXT,
    CharacterTokenizer,
    as_tokenizer,
    load_tokenizer,
    make_tokenizer,
    tiktoken_tokenizer,
    train_bpe,
)
from minigpt.tokenizer.chunked_encoding import GPT2_PATTERN
from minigpt.tokenizer.library import LibraryTokenizer

from ..conftest import unix_only
from .examples import ALPHABET, FABLE, KINDS, law, texts, tokenizer

HARD_TEXTS = [
    "",
    "👩\u200d👩\u200d👧 🙂🏽 🇫🇷",
    "  \t\t \n\n\n   \u00a0\u2003 x    \n ",
    "one\r\ntwo\rthree\n\rfour",
    "a\0b\x00\x1f\x7f\x85",
    "e\u0301 Z\u0351\u036b\u0343 \u0301alone",
    "\ufeffthe\ufeff",
    f"{END_OF_TEXT}the {END_OF_TEXT} <|fim_prefix|> <|im_start|>",
    "\ud7ff\ue000\uffff\U00010000\U0010ffff",
    "ab" * 3000,
]


# Every tokenizer


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@law
def test_tokens_stand_for_the_bytes_of_the_text(kind: str, data: st.DataObject) -> None:
    text = data.draw(texts(kind))
    encoder = tokenizer(kind)
    ids, lengths = encoder.encode(text), encoder.byte_lengths()
    assert encoder.decode(ids) == text
    assert b"".join(map(encoder.token_bytes, ids)) == text.encode()
    assert sum(lengths[i] for i in ids) == len(text.encode())


@pytest.mark.parametrize("text", HARD_TEXTS, ids=ascii)
@pytest.mark.parametrize("kind", KINDS)
def test_hard_texts_come_back_without_special_tokens(kind: str, text: str) -> None:
    encoder = CharacterTokenizer(sorted(set(text))) if kind == "char" else tokenizer(kind)
    ids = encoder.encode(text)
    assert encoder.decode(ids) == text
    assert encoder.end_of_text not in ids


@pytest.mark.parametrize("kind", KINDS)
def test_ids_run_from_zero_and_only_the_end_of_text_stands_for_no_text(kind: str) -> None:
    encoder = tokenizer(kind)
    assert len(encoder.byte_lengths()) == encoder.vocab_size
    assert all(encoder.token_bytes(i) for i in range(encoder.end_of_text))
    assert encoder.token_bytes(encoder.end_of_text) == b""
    assert 0 <= min(encoder.encode(ALPHABET)) <= max(encoder.encode(ALPHABET)) < encoder.vocab_size


def test_half_a_character_decodes_to_a_replacement_character() -> None:
    encoder = tokenizer("bpe")
    ids = encoder.encode("a🙂b")
    assert len(ids) == 6
    assert encoder.decode(ids[:3]) == "a\ufffd"
    assert encoder.decode(ids[3:]) == "\ufffd\ufffdb"


# Characters


def test_characters_are_numbered_in_order_and_the_end_of_text_comes_last() -> None:
    encoder = make_tokenizer("char", None, ["cab", "", "né"])
    assert encoder.encode("abcné") == [0, 1, 2, 3, 4]
    assert (encoder.end_of_text, encoder.vocab_size) == (5, 6)


def test_an_unknown_character_is_named_with_its_position() -> None:
    with pytest.raises(UserError, match="'ß' at position 3 is not in the vocabulary"):
        make_tokenizer("char", None, ["abc"]).encode("abcßabcß")


# Byte-pair encoding


@pytest.mark.parametrize(
    ("text", "asked", "size"),
    [(FABLE, 257, 257), (FABLE, 258, 258), (FABLE, 330, 330), ("", 1000, 257), ("abab", 1000, 259)],
)
def test_a_bpe_vocabulary_has_the_size_asked_for_unless_the_text_is_tiny(
    text: str, asked: int, size: int
) -> None:
    encoder = train_bpe([text], asked)
    assert (encoder.vocab_size, encoder.end_of_text) == (size, size - 1)


def test_training_a_bpe_again_gives_the_same_tokenizer() -> None:
    assert train_bpe([FABLE], 320).to_json() == train_bpe([FABLE], 320).to_json()


@pytest.mark.parametrize("name", ["my.txt", "tales.txt", "Chinese", "code"])
def test_words_of_usual_length_are_learned_from_whole(name: str) -> None:
    """The same vocabulary as the library learns by itself."""
    samples = {
        "my.txt": FABLE * 3,
        "tales.txt": Path("data/tales.txt").read_text()[:100_000],
        "Chinese": "「我是猫。」他说：没有名字！\n" * 20,
        "code": Path(tiktoken.__file__).with_name("core.py").read_text(),
    }
    library = tokenizers.Tokenizer(tokenizers.models.BPE())
    words = tokenizers.pre_tokenizers.Split(tokenizers.Regex(GPT2_PATTERN), "isolated")
    printable = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    library.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([words, printable])
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=599, initial_alphabet=printable.alphabet(), show_progress=False
    )
    library.train_from_iterator([samples[name]], trainer)
    ours = json.loads(train_bpe([samples[name]], 600).to_json())["model"]["vocab"]
    assert ours == library.get_vocab() | {END_OF_TEXT: len(ours) - 1}


def test_a_word_without_end_is_learned_from_in_parts() -> None:
    """Else every merge would go through all of it. Of 'aaaa...', no token is longer than a part."""
    encoder = train_bpe(["a" * 100_000], 600)
    assert max(encoder.byte_lengths()) == 128
    assert len(encoder.encode("a" * 100_000)) < 1_000


@unix_only
def test_ctrl_c_is_heard_while_a_vocabulary_is_learned() -> None:
    """Also while the library does not return; its thread then reads nothing more and ends."""
    goes_on, said = threading.Event(), []

    def texts() -> Iterator[str]:
        yield FABLE
        os.kill(os.getpid(), signal.SIGINT)
        goes_on.wait(timeout=30)
        said.append("the next text")
        yield FABLE
        said.append("one more text")
        yield FABLE

    with pytest.raises(KeyboardInterrupt):
        train_bpe(texts(), 600)
    said.append("interrupted")
    goes_on.set()
    for thread in threading.enumerate():
        if thread.name == "learning a BPE":
            thread.join(timeout=30)
    assert said == ["interrupted", "the next text"]


def test_an_error_in_a_text_that_is_learned_from_is_raised_as_it_is() -> None:
    def texts() -> Iterator[str]:
        yield FABLE
        raise UserError("the text changed")

    with pytest.raises(UserError, match="the text changed"):
        train_bpe(texts(), 600)


def test_the_characters_of_a_text_are_found_in_constant_memory() -> None:
    """Each text is let go before the next one is read."""

    class Text(str):
        alive = 0

        def __init__(self, content: str):
            Text.alive += 1

        def __del__(self) -> None:
            Text.alive -= 1

    def texts() -> Iterator[str]:
        for i in range(20):
            yield Text("ab" * (i + 1))
            assert Text.alive <= 2

    assert make_tokenizer("char", None, texts()).encode("ab") == [0, 1]


def test_no_token_reaches_over_two_words() -> None:
    encoder = train_bpe(["the cat\n" * 100], 400)
    assert all(b" " not in encoder.token_bytes(i)[1:] for i in range(encoder.vocab_size))


# tiktoken's encodings


def no_network(*args: Any, **kwargs: Any) -> Any:
    raise requests.ConnectionError("Max retries exceeded with url: /vocab.bpe\n(no route)")


def log_in_page(url: str) -> Any:
    """As a network answers that wants a log-in first."""
    return types.SimpleNamespace(content=b"<html>log in</html>", raise_for_status=lambda: None)


@pytest.mark.parametrize("answer", [no_network, log_in_page])
def test_an_encoding_that_cannot_be_downloaded_is_answered_with_what_to_do(
    answer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("tiktoken.registry.ENCODINGS", {})  # none in memory
    monkeypatch.setattr(requests, "get", answer)
    with pytest.raises(UserError) as refusal:
        make_tokenizer("gpt2", None, ["text"])
    assert "\n" not in str(refusal.value)
    for part in ("'gpt2'", f"TIKTOKEN_CACHE_DIR (now {tmp_path})", "bpe", "char"):
        assert part in str(refusal.value)


def test_an_unknown_tokenizer_is_answered_with_those_there_are() -> None:
    with pytest.raises(UserError) as refusal:
        make_tokenizer("gpt-2", None, ["text"])
    for name in ("'gpt-2'", "char", "bpe", *tiktoken.list_encoding_names()):
        assert name in str(refusal.value)


def test_an_encoding_of_tiktoken_gives_its_ids_here_and_in_its_file(
    small_gpt2: tiktoken.Encoding, tmp_path: Path
) -> None:
    gpt2 = tiktoken_tokenizer("gpt2")
    path = tmp_path / "tokenizer.json"
    path.write_text(gpt2.to_json(), encoding="utf-8")
    ours, theirs = load_tokenizer(path), tokenizers.Tokenizer.from_file(str(path))
    assert (ours.vocab_size, ours.end_of_text) == (small_gpt2.n_vocab, small_gpt2.eot_token)
    assert ours.token_bytes(gpt2.encode("Hello")[0]) == b"Hello"
    for text in ["Hello world", FABLE, *HARD_TEXTS]:
        ids = small_gpt2.encode_ordinary(text)
        assert gpt2.encode(text) == ours.encode(text) == ids
        assert ours.decode(ids) == text
        if END_OF_TEXT not in text:
            assert theirs.encode(text).ids == ids


@pytest.mark.parametrize("kind", [*KINDS, "library", "foreign"])
def test_half_a_character_is_refused_in_one_line(kind: str) -> None:
    if kind == "library":
        bpe = tokenizer("bpe")
        tokens = {i: bpe.token_bytes(i) for i in range(bpe.vocab_size)}
        encode = LibraryTokenizer(json.loads(bpe.to_json()), tokens).encode
    elif kind == "foreign":
        given = types.SimpleNamespace(
            encode=lambda text: text.encode(errors="replace"),
            decode=lambda ids: bytes(ids).decode(),
            vocab_size=256,
            token_bytes=lambda token_id: bytes([token_id]),
        )
        encode = as_tokenizer(given).encode
    else:
        encode = tokenizer(kind).encode
    for text in ("cat\ud83d", "cat\udce9 sat"):
        with pytest.raises(UserError, match=r"character '\\ud[8c][3e][d9]' at position 3 "):
            encode(text)
