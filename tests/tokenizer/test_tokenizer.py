"""Text to token ids and back: what every tokenizer promises, what each kind adds, the saved file
and damaged ones, tiktoken without a network. What holds for any text is tried on generated text.
"""

import copy
import json
import os
import random
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import requests
import tiktoken
import tokenizers
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from minigpt import UserError
from minigpt.tokenizer import (
    END_OF_TEXT,
    GPT2_PATTERN,
    BytePairTokenizer,
    CharacterTokenizer,
    Tokenizer,
    load_tokenizer,
    make_tokenizer,
    tiktoken_tokenizer,
    train_bpe,
)

law = settings(max_examples=50, deadline=None)

FABLE = """The cat sat on the mat; it's the cat's mat. There the cat eats 12 dates, 345 eels.

"Whose mat is that?" asked the heron, who had come down from the chimney to see the cat.
"The mat of whoever sits on it," said the cat, and sat on it. The heron thought about that.
When the rain came through the roof, the mat was wet, and the cat was gone. "Whose mat is
that?" asked the cat from the chimney. "It is yours," said the heron. "You have sat on it."
"""
ALPHABET = " \n\r\t\0 abcdehst.,!'0123é\u0301中🙂👩\u200d👧\ufeff" + END_OF_TEXT
KINDS = ["char", "bpe", "tiktoken"]
HARD_TEXTS = {
    "nothing": "",
    "emoji": "👩\u200d👩\u200d👧 🙂🏽 🇫🇷",
    "white space": "  \t\t \n\n\n   \u00a0\u2003 x    \n ",
    "line ends": "one\r\ntwo\rthree\n\rfour",
    "NUL and controls": "a\0b\x00\x1f\x7f\x85",
    "combining marks": "e\u0301 Z\u0351\u036b\u0343 \u0301alone",
    "byte-order mark": "\ufeffthe\ufeff",
    "special tokens": f"{END_OF_TEXT}the {END_OF_TEXT} <|fim_prefix|> <|im_start|>",
    "ends of Unicode": "\ud7ff\ue000\uffff\U00010000\U0010ffff",
    "a long word": "ab" * 3000,
}


def bare_encoding(tokens: list[str], **specials: int) -> BytePairTokenizer:
    """What tiktoken's encodings are: 256 bytes, some longer tokens, several special tokens."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    ranks |= {token.encode(): 256 + i for i, token in enumerate(tokens)}
    special_tokens = {f"<|{name}|>": token_id for name, token_id in specials.items()}
    return BytePairTokenizer(
        tiktoken.Encoding(
            "bare", pat_str=GPT2_PATTERN, mergeable_ranks=ranks, special_tokens=special_tokens
        )
    )


@cache
def tokenizer(kind: str) -> Tokenizer:
    if kind == "tiktoken":
        return bare_encoding(["th", "the", " t", " the", "at"], endoftext=261, fim_prefix=262)
    return make_tokenizer(kind, 320, [ALPHABET if kind == "char" else FABLE])


def texts(kind: str) -> st.SearchStrategy[str]:
    """Any text that a tokenizer of this kind can encode."""
    return st.text(sorted(set(ALPHABET))) if kind == "char" else st.text() | st.text(ALPHABET)


def saved(tokenizer: Tokenizer, folder: Path) -> Path:
    path = folder / "tokenizer.json"
    path.write_text(tokenizer.to_json(), encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=KINDS)
def saved_kind(request: pytest.FixtureRequest, tmp_path_factory: Any) -> tuple[str, Path]:
    """A kind of tokenizer, and the file of one."""
    return request.param, saved(tokenizer(request.param), tmp_path_factory.mktemp("saved"))


# Every tokenizer


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@law
def test_decoding_gives_back_the_text(kind: str, data: st.DataObject) -> None:
    text = data.draw(texts(kind))
    assert tokenizer(kind).decode(tokenizer(kind).encode(text)) == text


@pytest.mark.parametrize("text", HARD_TEXTS.values(), ids=HARD_TEXTS.keys())
@pytest.mark.parametrize("kind", KINDS)
def test_hard_texts_come_back(kind: str, text: str) -> None:
    encoder = CharacterTokenizer(sorted(set(text))) if kind == "char" else tokenizer(kind)
    ids = encoder.encode(text)
    assert encoder.decode(ids) == text
    assert encoder.end_of_text not in ids


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@law
def test_tokens_stand_for_the_bytes_of_the_text(kind: str, data: st.DataObject) -> None:
    text = data.draw(texts(kind))
    encoder = tokenizer(kind)
    ids, lengths = encoder.encode(text), encoder.byte_lengths()
    assert b"".join(map(encoder.token_bytes, ids)) == text.encode()
    assert sum(lengths[i] for i in ids) == len(text.encode())


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@law
def test_any_ids_decode_to_some_text(kind: str, data: st.DataObject) -> None:
    encoder = tokenizer(kind)
    ids = data.draw(st.lists(st.integers(0, encoder.vocab_size - 1)))
    encoder.decode(ids).encode("utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_ids_run_from_zero_to_the_vocabulary_size(kind: str) -> None:
    encoder = tokenizer(kind)
    assert len(encoder.byte_lengths()) == encoder.vocab_size
    assert all(encoder.token_bytes(i) for i in range(encoder.end_of_text))
    assert 0 <= min(encoder.encode(ALPHABET)) <= max(encoder.encode(ALPHABET)) < encoder.vocab_size


@pytest.mark.parametrize("kind", KINDS)
def test_the_end_of_text_stands_for_no_text(kind: str) -> None:
    encoder = tokenizer(kind)
    assert encoder.token_bytes(encoder.end_of_text) == b""
    assert encoder.decode([encoder.end_of_text, *encoder.encode("a"), encoder.end_of_text]) == "a"


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


@pytest.mark.parametrize("size", [257, 258, 300, 330])
def test_a_bpe_vocabulary_has_the_size_asked_for(size: int) -> None:
    assert train_bpe([FABLE], size).vocab_size == size


@pytest.mark.parametrize(("text", "size"), [("", 257), ("a", 257), ("ab", 258), ("abab", 259)])
def test_a_tiny_text_gives_a_smaller_bpe_vocabulary(text: str, size: int) -> None:
    encoder = train_bpe([text], 1000)
    assert (encoder.vocab_size, encoder.end_of_text) == (size, size - 1)


def test_a_bpe_vocabulary_has_room_for_all_bytes() -> None:
    with pytest.raises(UserError, match=r"vocab_size must be at least 257 .* got 256"):
        train_bpe([FABLE], 256)


def test_training_a_bpe_again_gives_the_same_tokenizer() -> None:
    """In another process too, where hashes have another seed."""
    code = "import sys; from minigpt.tokenizer import train_bpe as train\n"
    code += "sys.stdout.write(train([sys.argv[1]], 320).to_json())"
    again = subprocess.run(
        [sys.executable, "-c", code, FABLE],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": "7", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        check=True,
    )
    assert again.stdout.decode() == train_bpe([FABLE], 320).to_json()


def test_a_repeated_word_becomes_one_token() -> None:
    encoder = train_bpe([f"{word} wizard " for word in FABLE.split()], 300)
    (token_id,) = encoder.encode(" wizard")
    assert encoder.token_bytes(token_id) == b" wizard"


def test_a_larger_vocabulary_gives_fewer_tokens() -> None:
    lengths = [len(train_bpe([FABLE], size).encode(FABLE)) for size in (257, 300, 400)]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] == len(FABLE) > 2 * lengths[-1]


def test_no_token_reaches_over_two_words() -> None:
    encoder = train_bpe(["the cat\n" * 100], 400)
    assert all(b" " not in encoder.token_bytes(i)[1:] for i in range(encoder.vocab_size))


# The saved file


@given(data=st.data())
@law
def test_a_loaded_tokenizer_is_the_saved_one(
    saved_kind: tuple[str, Path], data: st.DataObject
) -> None:
    kind, path = saved_kind
    text = data.draw(texts(kind))
    original, loaded = tokenizer(kind), cached_load(path)
    assert loaded.encode(text) == original.encode(text)
    assert loaded.decode(loaded.encode(text)) == text
    assert (loaded.vocab_size, loaded.end_of_text) == (original.vocab_size, original.end_of_text)


cached_load = cache(load_tokenizer)


@given(data=st.data())
@law
def test_hugging_face_tokenizers_reads_the_file(
    saved_kind: tuple[str, Path], data: st.DataObject
) -> None:
    kind, path = saved_kind
    text = data.draw(texts(kind))
    assume(END_OF_TEXT not in text)
    theirs, ids = cached_hugging_face(path), tokenizer(kind).encode(text)
    assert theirs.encode(text, add_special_tokens=False).ids == ids
    assert theirs.decode(ids) == text


@cache
def cached_hugging_face(path: Path) -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_file(str(path))


@given(
    learned=st.text("abc ", min_size=5, max_size=300),
    size=st.integers(258, 330),
    text=st.text("abc ", max_size=60),
)
@law
def test_hugging_face_tokenizers_merges_in_the_same_order(
    learned: str, size: int, text: str
) -> None:
    """A few letters in any order give many overlapping ways to merge."""
    ours = train_bpe([learned], size)
    theirs = tokenizers.Tokenizer.from_str(ours.to_json())
    assert theirs.encode(text, add_special_tokens=False).ids == ours.encode(text)


@pytest.mark.parametrize("kind", ["char", "bpe"])
def test_transformers_reads_the_file(kind: str, tmp_path: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    text = "The  cat's\r\n\tcafe\u0301 \0 中 👩\u200d👧 ..!!  \n\n 'tis 0123 , .   "
    ours = make_tokenizer(kind, 300, [text])
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(saved(ours, tmp_path)))
    ids = ours.encode(text)
    assert theirs.encode(text, add_special_tokens=False) == ids
    assert theirs.decode(ids) == text
    assert len(theirs) == ours.vocab_size
    assert theirs.convert_tokens_to_ids(END_OF_TEXT) == ours.end_of_text


def test_hugging_face_tokenizers_can_be_told_that_a_special_token_is_text(tmp_path: Path) -> None:
    """Unless told, it takes what looks like one for one."""
    theirs = tokenizers.Tokenizer.from_file(str(saved(tokenizer("bpe"), tmp_path)))
    text = f"the {END_OF_TEXT} cat"
    assert tokenizer("bpe").end_of_text in theirs.encode(text).ids
    theirs.encode_special_tokens = True
    assert theirs.encode(text).ids == tokenizer("bpe").encode(text)


@pytest.mark.parametrize(
    "specials",
    [
        pytest.param({"endoftext": 260, "fim_prefix": 261}, id="after a gap, as in cl100k_base"),
        pytest.param({"endoftext": 258, "fim_prefix": 270}, id="two gaps, as in o200k_base"),
        pytest.param({"fim_prefix": 258, "endoftext": 259}, id="end of text last"),
    ],
)
def test_special_tokens_keep_their_ids_in_the_file(
    specials: dict[str, int], tmp_path: Path
) -> None:
    original = bare_encoding(["th", "the"], **specials)
    loaded = load_tokenizer(saved(original, tmp_path))
    assert (loaded.vocab_size, loaded.end_of_text) == (original.vocab_size, original.end_of_text)
    assert loaded.byte_lengths() == original.byte_lengths()


def test_a_special_token_among_the_others_keeps_its_id_in_the_file(tmp_path: Path) -> None:
    """As in p50k_base, which put new tokens behind the end of text."""
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"th": 257}
    original = BytePairTokenizer(
        tiktoken.Encoding(
            "p", pat_str=GPT2_PATTERN, mergeable_ranks=ranks, special_tokens={END_OF_TEXT: 256}
        )
    )
    loaded = load_tokenizer(saved(original, tmp_path))
    assert (loaded.encode("the"), loaded.end_of_text) == ([257, ord("e")], 256)


# Damaged files


def damaged(kind: str, *keys: Any, value: Any) -> Callable[[], bytes]:
    """The file of a tokenizer with one value replaced."""

    def make() -> bytes:
        data = json.loads(tokenizer(kind).to_json())
        place = data
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value
        return json.dumps(data).encode()

    return make


def renamed(kind: str, old: str, new: str) -> Callable[[], bytes]:
    """The file of a tokenizer with another name for one of its tokens."""

    def make() -> bytes:
        data = json.loads(tokenizer(kind).to_json())
        vocab = data["model"]["vocab"]
        vocab[new] = vocab.pop(old)
        return json.dumps(data).encode()

    return make


VOCAB = ("model", "vocab")
PATTERN = ("pre_tokenizer", "pretokenizers", 0, "pattern", "Regex")
DAMAGES: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "truncated": lambda: tokenizer("bpe").to_json().encode()[:-500],
    "not JSON": lambda: b"once upon a time",
    "not UTF-8": lambda: b'{"model": "\xff"}',
    "deep": lambda: b"[" * 100_000,
    "deep objects": lambda: b'{"model":' * 100_000,
    "a number": lambda: b"5",
    "null": lambda: b"null",
    "a list": lambda: b"[]",
    "an empty object": lambda: b"{}",
    "no vocab": damaged("bpe", "model", value={}),
    "vocab is a list": damaged("bpe", *VOCAB, value=["a"]),
    "vocab is empty": damaged("bpe", *VOCAB, value={}),
    "another kind of model": damaged("bpe", "model", "type", value="Unigram"),
    "a byte is missing": renamed("bpe", "a", "zzz"),
    "an id twice": damaged("bpe", *VOCAB, "a", value=5),
    "the end of text's id twice": damaged("bpe", *VOCAB, "a", value=319),
    "an id is a text": damaged("bpe", *VOCAB, "a", value="5"),
    "an id is a fraction": damaged("bpe", *VOCAB, "a", value=5.5),
    "an id is negative": damaged("bpe", *VOCAB, "a", value=-1),
    "an id needs 33 bits": damaged("bpe", *VOCAB, "a", value=1 << 32),
    "an id needs 65 bits": damaged("bpe", *VOCAB, "a", value=1 << 64),
    "a hole in the ids": damaged("bpe", *VOCAB, "a", value=5000),
    "no byte's character": damaged("bpe", *VOCAB, "中", value=64),
    "no end of text": damaged("bpe", "added_tokens", value=[]),
    "special tokens are no list": damaged("bpe", "added_tokens", value=5),
    "a special token is no object": damaged("bpe", "added_tokens", 0, value="x"),
    "a special token is a number": damaged("bpe", "added_tokens", 0, "content", value=5),
    "a special id needs 65 bits": damaged("bpe", "added_tokens", 0, "id", value=1 << 64),
    "no pattern": damaged("bpe", "pre_tokenizer", value=None),
    "pattern is a number": damaged("bpe", *PATTERN, value=5),
    "pattern is no regex": damaged("bpe", *PATTERN, value="("),
    "char: an id twice": damaged("char", *VOCAB, "a", value=0),
    "char: a hole in the ids": damaged("char", *VOCAB, "a", value=5000),
    "char: an id is a list": damaged("char", *VOCAB, "a", value=[]),
    "char: two characters": damaged("char", *VOCAB, "ab", value=len(set(ALPHABET))),
    "char: half a surrogate pair": renamed("char", "a", "\ud83d"),
    "char: end of text first": damaged("char", "added_tokens", 0, "id", value=0),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_file_is_refused_by_name(damage: Callable[[], bytes], tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(damage())
    with pytest.raises(UserError) as refusal:
        load_tokenizer(path)
    assert f"{path} is damaged" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read .*nowhere\.json: No such file"):
        load_tokenizer(tmp_path / "nowhere.json")
    with pytest.raises(UserError, match=r"cannot read .*: Is a directory"):
        load_tokenizer(tmp_path)


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value."""
    yield path
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from places(value, (*path, key))


def with_another_value(draw: random.Random, data: Any) -> bytes:
    data = copy.deepcopy(data)
    where = [p for p in places(data) if p]
    # most places are tokens and merges: choose the others as often
    few = [p for p in where if p[1:2] not in [("vocab",), ("merges",)]]
    *path, last = draw.choice(draw.choice([where, few]))
    place = data
    for key in path:
        place = place[key]
    numbers, others = [-1, 0, 7, 300, 2**31, 2**32, 2**64], ["", "a", "é", "BPE", [], {}, [[]]]
    place[last] = draw.choice([*numbers, *others, None, True, 1.5, {"a": 1}])
    return json.dumps(data).encode()


def with_other_bytes(draw: random.Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(draw.randrange(1, 4)):
        at = draw.randrange(len(changed))
        length, put = draw.choice([(1, 1), (1, 0), (0, 1), (30, 0)])
        changed[at : at + length] = draw.randbytes(put)
    return bytes(changed)


@pytest.mark.parametrize("kind", ["char", "bpe"])
def test_any_damage_is_refused_or_harmless(kind: str, tmp_path: Path) -> None:
    draw = random.Random(1)
    content = make_tokenizer(kind, 262, [FABLE]).to_json()
    data, path = json.loads(content), tmp_path / "tokenizer.json"
    results = []
    for change in range(300):
        if change % 2:
            path.write_bytes(with_another_value(draw, data))
        else:
            path.write_bytes(with_other_bytes(draw, content.encode()))
        try:
            results.append(isinstance(load_tokenizer(path), Tokenizer))
        except UserError:
            results.append(False)
    assert 0 < sum(results) < 300


# tiktoken's encodings


def no_network(*args: Any, **kwargs: Any) -> Any:
    raise requests.ConnectionError("Max retries exceeded with url: /vocab.bpe\n(no route)")


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No encoding in tiktoken's memory nor in its folder, and no network."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("tiktoken.registry.ENCODINGS", {})
    monkeypatch.setattr(requests, "get", no_network)
    return tmp_path


def assert_offline_advice(message: str, cache: str) -> None:
    assert "\n" not in message
    for part in ("'gpt2'", f"TIKTOKEN_CACHE_DIR (now {cache})", "bpe", "char"):
        assert part in message


def test_an_unknown_tokenizer_is_answered_with_those_there_are() -> None:
    with pytest.raises(UserError) as refusal:
        make_tokenizer("gpt-2", None, ["text"])
    for name in ("'gpt-2'", "char", "bpe", *tiktoken.list_encoding_names()):
        assert name in str(refusal.value)


def test_without_a_network_the_user_hears_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    monkeypatch.setattr(tiktoken, "get_encoding", no_network)
    with pytest.raises(UserError) as refusal:
        make_tokenizer("gpt2", None, ["text"])
    assert_offline_advice(str(refusal.value), "unset")


def test_an_empty_cache_without_a_network_is_named(empty_cache: Path) -> None:
    with pytest.raises(UserError) as refusal:
        tiktoken_tokenizer("gpt2")
    assert_offline_advice(str(refusal.value), str(empty_cache))


def test_a_page_in_place_of_the_download_is_refused(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the log-in page of a network that has not let us in yet."""
    page = types.SimpleNamespace(content=b"<html>log in</html>", raise_for_status=lambda: None)
    monkeypatch.setattr(requests, "get", lambda url: page)
    with pytest.raises(UserError) as refusal:
        tiktoken_tokenizer("gpt2")
    assert_offline_advice(str(refusal.value), str(empty_cache))


def test_the_text_is_not_read_for_one_of_tiktokens(monkeypatch: pytest.MonkeyPatch) -> None:
    encoding = bare_encoding(["th"], endoftext=257).encoding
    monkeypatch.setattr(tiktoken, "get_encoding", lambda name: encoding)
    text = iter(["the text"])
    assert make_tokenizer("gpt2", None, text).encode("the") == [256, ord("e")]
    assert next(text) == "the text"


@pytest.fixture(scope="module")
def gpt2() -> Iterator[Tokenizer]:
    if "TIKTOKEN_CACHE_DIR" not in os.environ:
        pytest.skip("TIKTOKEN_CACHE_DIR is not set, and tests use no network")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(requests, "get", no_network)
        try:
            yield tiktoken_tokenizer("gpt2")
        except UserError:
            pytest.skip("gpt2 is not in TIKTOKEN_CACHE_DIR, and tests use no network")


def test_gpt2_gives_the_ids_of_gpt2(gpt2: Tokenizer) -> None:
    assert gpt2.encode("Hello world") == [15496, 995]
    assert (gpt2.vocab_size, gpt2.end_of_text) == (50257, 50256)


def test_gpt2_is_saved_and_read_by_us_and_by_others(gpt2: Tokenizer, tmp_path: Path) -> None:
    path = saved(gpt2, tmp_path)
    ours, theirs = load_tokenizer(path), tokenizers.Tokenizer.from_file(str(path))
    assert (ours.vocab_size, ours.end_of_text) == (50257, 50256)
    for text in [FABLE, *HARD_TEXTS.values()]:
        assert ours.encode(text) == gpt2.encode(text)
        if END_OF_TEXT not in text:
            assert theirs.encode(text).ids == gpt2.encode(text)
