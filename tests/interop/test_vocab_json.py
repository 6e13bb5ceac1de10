"""The vocab.json and merges.txt of older GPT-2 models: the same ids, and what is said of others."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt import UserError, load_tokenizer
from minigpt.interop.huggingface import read_tokenizer
from minigpt.tokenizer import END_OF_TEXT

from ..lazy import Lazy
from .examples import HARD_TEXT
from .test_tokenizer_import import trained_elsewhere

transformers = Lazy("transformers")


def save(folder: Path, prefix: str | None = None) -> Path:
    """Write the two files as the tokenizers library does, with <|endoftext|> in the vocabulary."""
    theirs = trained_elsewhere(end_first=True)
    files = theirs.model.save(str(folder), prefix)
    return Path(files[0])


@pytest.fixture(scope="module")
def vocab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("gpt2"))


@pytest.mark.long
@given(text=st.text() | st.text(HARD_TEXT))
@settings(max_examples=100, deadline=None)
def test_any_text_has_the_ids_that_transformers_gives(vocab: Path, text: str) -> None:
    ours = load_tokenizer(vocab)
    merges = vocab.with_name("merges.txt").read_text().splitlines()[1:]
    theirs: Any = transformers.GPT2Tokenizer(
        vocab=json.loads(vocab.read_text()), merges=[tuple(pair.split()) for pair in merges]
    )
    if END_OF_TEXT not in text:
        assert ours.encode(text) == theirs(text)["input_ids"]
    assert ours.decode(ours.encode(text)) == text
    assert ours.end_of_text == theirs.eos_token_id == 0


def test_the_file_its_folder_and_a_model_s_folder_give_the_same(vocab: Path) -> None:
    by_file = load_tokenizer(vocab)
    by_folder = load_tokenizer(str(vocab.parent))
    of_model = read_tokenizer(vocab.parent, by_file.vocab_size + 3)  # with rows that are not used
    assert by_folder.to_json() == by_file.to_json()
    assert of_model.encode(HARD_TEXT) == by_file.encode(HARD_TEXT)
    assert of_model.vocab_size == by_file.vocab_size + 3


def test_what_it_is_written_as_comes_back(vocab: Path, tmp_path: Path) -> None:
    ours = load_tokenizer(vocab)
    (tmp_path / "tokenizer.json").write_text(ours.to_json(), encoding="utf-8")
    again = load_tokenizer(tmp_path)
    assert again.to_json() == ours.to_json()
    assert again.encode(HARD_TEXT) == ours.encode(HARD_TEXT)


def test_files_may_have_a_name_before_theirs(tmp_path: Path) -> None:
    vocab = save(tmp_path, "gpt2")
    assert vocab.name == "gpt2-vocab.json"
    assert load_tokenizer(vocab).end_of_text == 0


def test_a_tokenizer_json_beside_them_says_more_and_is_read(vocab: Path, tmp_path: Path) -> None:
    save(tmp_path)
    other = trained_elsewhere()
    (tmp_path / "tokenizer.json").write_text(other.to_str())
    assert load_tokenizer(tmp_path).end_of_text == other.token_to_id(END_OF_TEXT) != 0


def without(name: str, token: str) -> Callable[[Path], None]:
    """Take a token out of vocab.json."""

    def damage(folder: Path) -> None:
        tokens = json.loads((folder / name).read_text())
        del tokens[token]
        (folder / name).write_text(json.dumps(tokens))

    return damage


def written(name: str, content: bytes) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / name).write_bytes(content)

    return damage


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "merges.txt").unlink(), r"cannot read .*merges\.txt: No such"),
        (written("vocab.json", b"{"), r"vocab\.json is damaged: it is not JSON"),
        (written("vocab.json", b"5"), r"vocab\.json is damaged"),
        (written("vocab.json", b'["<|endoftext|>"]'), r"vocab\.json is damaged"),
        (without("vocab.json", END_OF_TEXT), r"vocab\.json .*it has no <\|endoftext\|>"),
        (without("vocab.json", "Ġt"), r"vocab\.json is damaged .*Ġt.* out of vocabulary"),
        (written("merges.txt", b"#version: 0.2\nno such\n"), r"out of vocabulary"),
        (written("merges.txt", b"#version: 0.2\none\n"), r"vocab\.json .*[Mm]erges"),
        (written("merges.txt", b"\xff"), r"vocab\.json .*merges\.txt beside it is not UTF-8"),
        (written("added_tokens.json", b"{}"), r"added_tokens\.json is beside it.*transformers"),
    ],
)
def test_damaged_and_mismatched_files_are_refused_in_one_line(
    damage: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    save(tmp_path)
    damage(tmp_path)
    with pytest.raises(UserError, match=message) as refused:
        load_tokenizer(tmp_path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["tokenizer.model", "spiece.model"])
def test_the_sentencepiece_kind_is_refused_by_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"\n\x0e\n\x05<unk>")
    with pytest.raises(UserError, match=rf"{name} is of the SentencePiece kind"):
        load_tokenizer(tmp_path)


def test_a_bpe_of_the_sentencepiece_kind_is_refused_by_name(tmp_path: Path) -> None:
    """As Llama 2 has it: characters with bytes to fall back on."""
    data = json.loads(trained_elsewhere().to_str())
    data["model"]["byte_fallback"] = True
    (tmp_path / "tokenizer.json").write_text(json.dumps(data))
    with pytest.raises(UserError, match="it is a BPE of the SentencePiece kind"):
        load_tokenizer(tmp_path)
