"""A tokenizer that was learned from conversations: tokens around each turn."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer as LibraryTokenizer

from minigpt import UserError
from minigpt.cli import main
from minigpt.data.token_splitting import TokenSplitter
from minigpt.tokenizer import (
    END_OF_TURN,
    SPEAKER,
    BytePairTokenizer,
    encode_in_pieces,
    load_tokenizer,
    make_tokenizer,
    train_bpe,
)

from ..data.chats.made import some_chat

TALK = "Anna: Did you feed the cat?\n\nOtto: Twice.\nShe was hungry.\n\n"


@pytest.fixture(scope="module")
def tokenizer() -> BytePairTokenizer:
    learned = make_tokenizer("bpe", 290, [TALK * 20], has_turns=True)
    assert isinstance(learned, BytePairTokenizer)
    return learned


def test_each_turn_is_between_two_tokens_of_its_own(tokenizer: BytePairTokenizer) -> None:
    begin, end = tokenizer.speaker, tokenizer.end_of_turn
    anna = tokenizer.encoding.encode_ordinary("Anna: Did you feed the cat?")
    otto = tokenizer.encoding.encode_ordinary("Otto: Twice.\nShe was hungry.")
    assert tokenizer.vocab_size == 290
    assert tokenizer.encode(TALK) == [begin, *anna, end, begin, *otto, end]
    assert tokenizer.encode("") == []


@pytest.mark.parametrize(("has_turns", "fewest"), [(True, 259), (False, 257)])
def test_a_vocabulary_has_room_for_every_byte_and_what_stands_between(
    has_turns: bool, fewest: int
) -> None:
    for size in (fewest, fewest + 1):
        assert train_bpe([TALK * 20], size, has_turns=has_turns).vocab_size == size
    with pytest.raises(UserError, match=f"at least {fewest}, got {fewest - 1}"):
        train_bpe([TALK * 20], fewest - 1, has_turns=has_turns)


def test_a_command_for_a_chat_refuses_a_vocabulary_without_room(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINIGPT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("chat.txt").write_text(some_chat(60))
    assert main(["train", "chat.txt", "--vocab-size", "258", "--steps", "1"]) == 2
    assert "of conversations must be at least 259, got 258" in capsys.readouterr().err


@pytest.mark.parametrize("text", [TALK, "Anna:", "\n\nAnna", "a\n\n\nb", "\n\n\n\n", "<|turn|>"])
def test_decoding_gives_back_the_text(tokenizer: BytePairTokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert sum(tokenizer.byte_lengths()[i] for i in ids) == len(text.encode())


def test_its_file_is_read_again(tokenizer: BytePairTokenizer, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text(tokenizer.to_json(), encoding="utf-8")
    again = load_tokenizer(file)
    assert again.encode(TALK) == tokenizer.encode(TALK)
    assert (again.speaker, again.end_of_turn) == (tokenizer.speaker, tokenizer.end_of_turn)
    assert again.to_json() == tokenizer.to_json()


def test_the_library_gives_the_same_ids_where_the_tokens_are_written_out(
    tokenizer: BytePairTokenizer,
) -> None:
    library = LibraryTokenizer.from_str(tokenizer.to_json())
    anna, otto, _ = TALK.split("\n\n")
    written = f"{SPEAKER}{anna}{END_OF_TURN}{SPEAKER}{otto}{END_OF_TURN}"
    assert library.encode(written).ids == tokenizer.encode(TALK)
    added = {token["content"]: token for token in json.loads(tokenizer.to_json())["added_tokens"]}
    assert added[END_OF_TURN]["special"] and added[SPEAKER]["special"]


@pytest.mark.parametrize("size", [1, 10, 60, 1000])
def test_pieces_of_a_text_give_the_ids_of_the_whole(
    tokenizer: BytePairTokenizer, size: int
) -> None:
    text = TALK * 5 + "a\n\n\n\nb\n\n"
    pieces = encode_in_pieces(tokenizer, [(False, text[:77]), (False, text[77:])], size)
    assert np.concatenate([ids for _, ids in pieces]).tolist() == tokenizer.encode(text)


def test_the_end_of_a_turn_is_never_split(tokenizer: BytePairTokenizer) -> None:
    ids = torch.tensor([tokenizer.encode(TALK * 4)])  # (1, n)
    first_pairs = torch.zeros(2, *ids.shape)
    (split,) = TokenSplitter(tokenizer)(ids, 1.0, first_pairs).tolist()
    (line_end,) = tokenizer.encoding.encode_ordinary("\n")
    assert tokenizer.end_of_turn in split
    assert (line_end, line_end) not in pairwise(split)
