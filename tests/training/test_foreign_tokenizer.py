"""A run whose tokens are those of somebody else's tokenizer, which its folder cannot hold."""

from pathlib import Path

import pytest
import torch

from minigpt import GPT, GPTConfig, TrainConfig, Trainer, UserError, load
from minigpt.config import TextConfig
from minigpt.data.source import find_source
from minigpt.data.token_cache import prepare_tokens
from minigpt.runs.folder import TOKENIZER
from minigpt.tokenizer import same_tokenizer
from tests.conftest import some_text
from tests.tokenizer.words import Words


def test_it_is_trained_and_says_by_name_which_tokenizer_it_needs(tmp_path: Path) -> None:
    text = some_text(400)
    file = tmp_path / "a.txt"
    file.write_text(text)
    config = TextConfig((str(file),))
    words = Words(text)
    data = prepare_tokens(find_source(config), config, tokenizer=words, cache=tmp_path / "cache")

    torch.manual_seed(0)
    model = GPT(
        GPTConfig(words.vocab_size, context_length=16, emb_dim=16, num_layers=1, num_heads=2)
    )
    out = tmp_path / "run"
    settings = TrainConfig(steps=2, batch_size=2, num_evals=1, device="cpu")
    Trainer(model, data, settings, out=out).train()

    with pytest.raises(UserError, match=r"a tokenizer of your own, Words, .*tokenizer=\.\.\."):
        load(out)
    assert same_tokenizer(out / TOKENIZER, Words(text)).vocab_size == words.vocab_size
