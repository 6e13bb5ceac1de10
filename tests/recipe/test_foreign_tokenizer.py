"""A run whose tokens are those of somebody else's tokenizer, which its folder cannot hold."""

from pathlib import Path
from typing import Any

import pytest
from torch import Tensor, nn

import minigpt
from minigpt import TrainConfig, UserError
from minigpt.cli import main
from tests.conftest import TINY, some_text
from tests.tokenizer.words import Words, WordsAndEnd

TEXT = some_text(400)


class Bigram(nn.Module):
    """The logits of the next token are a row of a table."""

    def __init__(self, vocab_size: int):
        super().__init__()
        self.table = nn.Embedding(vocab_size, vocab_size)

    def forward(self, token_ids: Tensor) -> Tensor:
        logits: Tensor = self.table(token_ids)
        return logits


def train(out: Path, **settings: Any) -> minigpt.Run:
    tiny = {name: value for name, value in TINY.items() if name != "vocab_size"}
    return minigpt.train([TEXT], tokenizer=Words(TEXT), out=out, **tiny | settings)


def test_a_model_is_trained_and_writes_with_an_object_as_its_tokenizer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    run = train(out)
    said = capsys.readouterr().err
    assert f"minigpt.load({str(out)!r}, tokenizer=...).generate(" in said

    writer = minigpt.load(run, tokenizer=Words(TEXT))
    text = writer.generate("", max_new_tokens=5, seed=0)
    assert len(Words(TEXT).encode(text)) == 5

    with pytest.raises(UserError, match=r"WordsAndEnd has other tokens than .*tokenizer\.json"):
        minigpt.load(run, tokenizer=WordsAndEnd(TEXT))


def test_whatever_reads_the_run_says_by_name_which_tokenizer_it_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(train(tmp_path / "run"))
    needed = "with a tokenizer of your own, Words, which its folder does not hold"
    with pytest.raises(UserError, match=needed):
        minigpt.load(run)
    out = str(tmp_path / "out")
    for command in (
        ["generate", "A", "--run", run],
        ["page", run, "--out", out],
        ["export", run, "--out", out],
    ):
        assert main(command) == 2
        assert needed in capsys.readouterr().err


def test_a_network_and_a_tokenizer_of_ones_own_go_together(tmp_path: Path) -> None:
    data = minigpt.prepare([TEXT], tokenizer=Words(TEXT))
    size = data.tokenizer.vocab_size
    settings = TrainConfig(steps=2, batch_size=2, num_evals=1, device="cpu")

    model = Bigram(size)
    minigpt.Trainer(model, data, settings, out=tmp_path / "run", context_length=8).train()
    writer = minigpt.load(tmp_path / "run", model=Bigram(size), tokenizer=Words(TEXT))
    assert writer.generate("", max_new_tokens=3, seed=0)
