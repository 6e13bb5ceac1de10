"""Tokenizers that others made: byte-level BPE gives the same ids here, another kind is refused."""

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    pre_tokenizers,
    processors,
    trainers,
)

import minigpt
from minigpt import UserError
from minigpt.interop import huggingface
from minigpt.interop.huggingface import read_tokenizer, write_folder
from minigpt.tokenizer import END_OF_TEXT, UnknownCharacter, encode_in_pieces, load_tokenizer
from minigpt.tokenizer.bpe import bytes_to_printable

from ..lazy import Lazy
from .examples import HARD_TEXT, TRAINING_TEXT, byte_pairs, random_model, weights_of, with_gaps

transformers = Lazy("transformers")


def trained_elsewhere(end_first: bool = False) -> Tokenizer:
    """A byte-level BPE as the tokenizers library trains it, with its own merges."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[END_OF_TEXT] if end_first else [],
        show_progress=False,
    )
    text = TRAINING_TEXT + "aaaa aaaaaaa bananas ananas 1001 10101 ... ...... \n\n\n\n" * 3
    tokenizer.train_from_iterator([text, HARD_TEXT], trainer)
    tokenizer.add_special_tokens([END_OF_TEXT])
    return tokenizer


THEIRS = trained_elsewhere()
THEIRS.encode_special_tokens = True  # the name of a special token in a text is text


def content(tokenizer: Tokenizer = THEIRS) -> dict[str, Any]:
    """The content of its tokenizer.json."""
    return json.loads(tokenizer.to_str())


def read(folder: Path, data: dict[str, Any], vocab_size: int | None = None) -> Any:
    (folder / "tokenizer.json").write_text(json.dumps(data))
    return read_tokenizer(folder, vocab_size or THEIRS.get_vocab_size())


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return read(tmp_path_factory.mktemp("ours"), content())


def test_transformers_own_gpt2_tokenizer_is_read(tmp_path: Path) -> None:
    data = content(trained_elsewhere(end_first=True))
    merges = [tuple(pair) for pair in data["model"]["merges"]]
    theirs = transformers.GPT2Tokenizer(vocab=data["model"]["vocab"], merges=merges)
    theirs.save_pretrained(tmp_path)
    ours = read_tokenizer(tmp_path, len(theirs))
    text = HARD_TEXT.replace(END_OF_TEXT, "")
    assert ours.encode(text) == theirs(text)["input_ids"]
    assert ours.decode(ours.encode(text)) == text
    assert ours.end_of_text == theirs.eos_token_id == 0


def test_gpt2_without_tokenizer_files_takes_tiktokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface, "tiktoken_tokenizer", lambda name: name)
    assert read_tokenizer(tmp_path, 50_257) == "gpt2"  # type: ignore[comparison-overlap]
    with pytest.raises(UserError, match=r"has no tokenizer\.json.*save_pretrained"):
        read_tokenizer(tmp_path, 50_256)


def test_the_first_tokenizer_files_are_read(tmp_path: Path, ours: Any) -> None:
    """They name no type, as GPT-2's own, and have both parts of a merge in one string."""
    data = content()
    del data["model"]["type"]
    data["model"]["merges"] = [" ".join(pair) for pair in data["model"]["merges"]]
    assert read(tmp_path, data).encode(HARD_TEXT) == ours.encode(HARD_TEXT)


def test_a_vocabulary_larger_than_its_tokenizer_is_filled_up(tmp_path: Path, ours: Any) -> None:
    """Embeddings are often padded to a round number of rows."""
    padded = read(tmp_path, content(), vocab_size=512)
    assert padded.vocab_size == 512 and padded.token_bytes(511) == b""
    assert padded.encode(HARD_TEXT) == ours.encode(HARD_TEXT)
    (tmp_path / "again.json").write_text(padded.to_json())
    assert load_tokenizer(tmp_path / "again.json").vocab_size == 512


def test_a_tokenizer_larger_than_the_vocabulary_is_refused(tmp_path: Path) -> None:
    size = THEIRS.get_vocab_size()
    with pytest.raises(UserError, match=rf"{size} tokens but the model's vocab_size is {size - 1}"):
        read(tmp_path, content(), vocab_size=size - 1)


# SmolLM's kind: a digit at a time, and a vocabulary that lacks some bytes


def like_smollm(alphabet: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    specials = [END_OF_TEXT, "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        initial_alphabet=alphabet,
        special_tokens=specials,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TRAINING_TEXT + "in 1984  or 2 \n\n " * 5], trainer)
    tokenizer.encode_special_tokens = True
    return tokenizer


PLAIN = [bytes_to_printable(bytes([byte])) for byte in [*range(9, 14), *range(32, 127), 0xC3, 0xA9]]
SMOLLM = {
    "all bytes": like_smollm(pre_tokenizers.ByteLevel.alphabet()),
    "few bytes": like_smollm(PLAIN),
}
plain_words = ["the crow", " ", "  ", "\n", "1", "42", "½", "'s", "'", "é", "!?", "\r\n", "\t", "x"]


@pytest.mark.long
@pytest.mark.parametrize("kind", SMOLLM)
@given(words=st.lists(st.sampled_from(plain_words) | st.text(max_size=3), max_size=12))
@example(words=["a  1", " 2 ", "3\n", "\n4 's 5's"])
@settings(max_examples=100, deadline=None)
def test_any_text_has_the_ids_of_smollms_tokenizer_or_an_unknown_character(
    kind: str, words: list[str]
) -> None:
    theirs, text = SMOLLM[kind], "".join(words)
    ours = tokenizer_of(theirs)
    known = theirs.get_vocab()
    unknown = [
        c for c in text if any(bytes_to_printable(bytes([b])) not in known for b in c.encode())
    ]
    if unknown:
        with pytest.raises(UnknownCharacter, match="is not in the vocabulary") as error:
            ours.encode(text)
        assert error.value.character == unknown[0]
        return

    ids = theirs.encode(text).ids
    assert ours.encode(text) == ids and ours.decode(ids) == text
    pieces = encode_in_pieces(ours, [(False, text)], 3)
    assert [i for _, part in pieces for i in part.tolist()] == ids


def tokenizer_of(theirs: Tokenizer) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return read(Path(folder), content(theirs), theirs.get_vocab_size())


# Qwen3's kind: NFC, Qwen2's pattern, special tokens and others that are matched in any text

ADDED = ["<think>", "</think>", "<think>ing", "日記"]


@cache
def like_qwen3() -> Any:
    """transformers' own tokenizer of the kind, with a small vocabulary."""
    empty = transformers.Qwen2Tokenizer().backend_tokenizer
    learned = Tokenizer(models.BPE())
    learned.normalizer, learned.pre_tokenizer = empty.normalizer, empty.pre_tokenizer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    learned.train_from_iterator(
        [TRAINING_TEXT, HARD_TEXT * 3, "I'LL thé'Se 1234\n\n " * 5], trainer
    )
    model = content(learned)["model"]
    merges = [tuple(pair) for pair in model["merges"]]
    tokenizer = transformers.Qwen2Tokenizer(
        vocab=model["vocab"], merges=merges, split_special_tokens=True
    )
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
    tokenizer.add_tokens([AddedToken(name, normalized=False) for name in ADDED])
    return tokenizer


PARTS = [*ADDED, END_OF_TEXT, *"<|im_end|> <|im_ <think > \u0338 e\u0301 ᄒ ᅡ".split()]
WORDS = ["the", " the", " crow", "I'LL", "'ſe", "12", "  ", "\r\n", " \n", "é", "...", "日", "\t"]
qwen3_texts = st.lists(
    st.sampled_from(PARTS + WORDS) | st.characters(exclude_categories=["Cs"])
).map("".join)


@pytest.fixture(scope="module")
def qwen3_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("qwen3")
    like_qwen3().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def qwen3(qwen3_folder: Path) -> Any:
    return read_tokenizer(qwen3_folder, len(like_qwen3()))


@pytest.fixture(scope="module")
def qwen3_exported(qwen3: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("exported")
    model = random_model("qwen3", vocab_size=qwen3.vocab_size)
    write_folder(folder, model.config, weights_of(model), qwen3)
    return transformers.AutoTokenizer.from_pretrained(folder)


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(text=qwen3_texts)
@example(text=HARD_TEXT)
@example(text="<think>".join(HARD_TEXT))
def test_any_text_has_the_ids_of_qwens_tokenizer(
    qwen3: Any, qwen3_exported: Any, text: str
) -> None:
    ids = qwen3.encode(text)
    assert ids == like_qwen3()(text)["input_ids"] == qwen3_exported(text)["input_ids"]
    assert qwen3.decode(ids) == like_qwen3().decode(ids) == qwen3_exported.decode(ids)


def test_added_tokens_are_matched_in_a_text_and_special_ones_are_not(qwen3: Any) -> None:
    names = like_qwen3().get_vocab()
    think, thinking = names["<think>"], names["<think>ing"]
    assert qwen3.encode("<think><think>ing<think") == [think, thinking, *qwen3.encode("<think")]
    assert qwen3.decode([think, names["<|im_end|>"], *qwen3.encode("a")]) == "<think>a"
    assert names["<|im_end|>"] not in qwen3.encode("<|im_end|>")
    assert qwen3.byte_lengths()[names["日記"]] == 6


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(
    texts=st.lists(st.lists(st.sampled_from(PARTS + WORDS)).map("".join), max_size=6),
    size=st.integers(1, 40),
)
@example(texts=["你好日記。你好日記。"], size=1)
def test_pieces_give_the_ids_of_the_whole(qwen3: Any, texts: list[str], size: int) -> None:
    pieces = encode_in_pieces(qwen3, ((False, text) for text in texts), size)
    assert [i for _, ids in pieces for i in ids.tolist()] == qwen3.encode("".join(texts))


@pytest.mark.parametrize("flag", ["lstrip", "rstrip", "single_word", "a space in its name"])
def test_an_added_token_that_looks_at_its_neighbours_is_never_cut_off(
    tmp_path: Path, flag: str
) -> None:
    token = AddedToken("bb", **{flag: True}) if flag in dir(AddedToken) else AddedToken("b b")
    theirs = trained_elsewhere()
    theirs.add_tokens([token])
    ours = read(tmp_path, content(theirs), theirs.get_vocab_size())
    text = "a bb b b abb bb bba"
    pieces = encode_in_pieces(ours, [(False, text)], 1)
    assert [i for _, ids in pieces for i in ids.tolist()] == theirs.encode(text).ids


def test_a_tokenizer_comes_back_from_its_file(qwen3: Any, tmp_path: Path) -> None:
    """With its normalizer and added tokens; with unused ids and special tokens among them."""
    file = tmp_path / "tokenizer.json"
    text = f"<think>e\u0301{END_OF_TEXT}"
    for tokenizer in (qwen3, with_gaps()):
        file.write_text(tokenizer.to_json(), encoding="utf-8")
        for again in (load_tokenizer(file), read_tokenizer(tmp_path, tokenizer.vocab_size)):
            assert type(again) is type(tokenizer)
            assert again.to_json() == tokenizer.to_json()
            assert again.encode(text) == tokenizer.encode(text)
            assert again.byte_lengths() == tokenizer.byte_lengths()
            assert again.end_of_text == tokenizer.end_of_text


def test_a_token_added_to_a_tokenizer_of_ours_is_text_that_is_matched_whole(tmp_path: Path) -> None:
    theirs = Tokenizer.from_str(byte_pairs().to_json())
    theirs.add_tokens([AddedToken("<think>", normalized=False)])
    size = theirs.get_vocab_size()
    ours = read(tmp_path, content(theirs), size)
    assert ours.encode("a<think>b") == theirs.encode("a<think>b").ids
    assert ours.token_bytes(size - 1) == b"<think>"


def _with(**changes: Any) -> dict[str, Any]:
    return content() | changes


def _with_model(**changes: Any) -> dict[str, Any]:
    data = content()
    return data | {"model": data["model"] | changes}


BEGINS = processors.TemplateProcessing(
    single=f"{END_OF_TEXT} $A", special_tokens=[(END_OF_TEXT, THEIRS.get_vocab_size() - 1)]
)
SHORT = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}


@pytest.mark.parametrize(
    "data",
    [
        _with(post_processor=json.loads(BEGINS.__getstate__())),
        _with(truncation=SHORT),
        _with_model(dropout=0.5),
    ],
    ids=["a token before every text", "cut off", "dropout"],
)
def test_a_text_has_all_its_ids_and_no_others(tmp_path: Path, data: Any, ours: Any) -> None:
    assert read(tmp_path, data).encode(HARD_TEXT) == ours.encode(HARD_TEXT)


def test_a_model_whose_tokenizer_cuts_off_or_fills_up_reads_a_text_whole(
    tmp_path: Path, ours: Any
) -> None:
    """As those of programs that read texts in batches; it is a text longer than theirs."""
    model = random_model("qwen3", vocab_size=ours.vocab_size)
    write_folder(tmp_path, model.config, weights_of(model), ours)
    text = HARD_TEXT * 9
    size = len(ours.encode(text))
    padding = {"strategy": {"Fixed": size + 9}, "direction": "Right", "pad_to_multiple_of": None}
    padding |= {"pad_id": 0, "pad_type_id": 0, "pad_token": END_OF_TEXT}
    for change in ({"truncation": SHORT | {"max_length": size - 9}}, {"padding": padding}):
        (tmp_path / "tokenizer.json").write_text(json.dumps(_with(**change)))
        assert minigpt.load(tmp_path).tokenizer.encode(text) == ours.encode(text)


SPACE_FIRST = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (_with(normalizer={"type": "NFKC"}), "does not come back"),
        (_with(normalizer={"type": "Lowercase"}), "does not come back"),
        (_with(pre_tokenizer={"type": "Whitespace"}), "does not come back"),
        (_with(pre_tokenizer=SPACE_FIRST), "does not come back"),
        (_with(added_tokens=[]), "has no <|endoftext|>"),
        (_with_model(type="Unigram"), "Unigram"),
        (_with_model(type="WordPiece"), "WordPiece"),
        (_with_model(vocab=content()["model"]["vocab"] | {"▁the": 999}), "'▁the' is not written"),
        (_with_model(merges=[["no", "such"]]), "out of vocabulary"),
        (_with_model(vocab={"a": 0}, merges=[]), "lacks some single bytes"),
        ([], "not supported"),
    ],
)
def test_a_tokenizer_of_another_kind_is_refused(tmp_path: Path, data: Any, words: str) -> None:
    with pytest.raises(UserError, match=words) as error:
        read(tmp_path, data)
    assert "\n" not in str(error.value) and "tokenizer.json" in str(error.value)
