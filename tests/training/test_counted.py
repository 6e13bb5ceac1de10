"""`--only`: the loss counts what one speaker says, and nothing else."""

from pathlib import Path

import numpy as np
import pytest
import torch

from minigpt import GPT, GPTConfig, UserError
from minigpt.config import TextConfig
from minigpt.data.batches import sample_batch
from minigpt.data.dialogue.counted import IGNORED, said_by
from minigpt.data.dialogue.dialogue import Dialogue
from minigpt.data.dialogue.layout import Layout
from minigpt.data.source import find_source
from minigpt.data.token_cache import prepare_tokens
from minigpt.tokenizer import CharacterTokenizer, Tokenizer, make_tokenizer
from minigpt.training.evaluation import evaluate_tokens
from minigpt.training.gradients import set_gradients
from minigpt.training.loss import Loss, token_cross_entropy

from ..data.dialogue.chats import some_chat

TALK = "Anna: hi Otto: no\n\nOtto: yes\nyes\n\nAnna: Otto\n\nOtto: I see\n\n"
DIALOGUE = Dialogue({"Otto": 2, "Anna": 2})
TOKENIZERS = [
    CharacterTokenizer(sorted(set(TALK))),
    make_tokenizer("bpe", 290, [TALK], has_turns=True),
    make_tokenizer("bpe", 290, [TALK]),
]


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_what_a_speaker_says_is_found_in_any_tokens(tokenizer: Tokenizer) -> None:
    ids = np.array(tokenizer.encode(TALK))
    counted = said_by(ids, tokenizer, DIALOGUE, "Otto")
    said = tokenizer.decode(ids[counted].tolist())
    assert said == " yes\nyes\n\n I see\n\n"


def test_a_turn_that_only_the_next_name_ends_is_found_whole() -> None:
    layout = Layout("{speaker}:\n{text}\n\n", ends_at_name=True)
    text = "Anna:\nhi\n\nOtto:\nyes\n\nyes\n\nAnna:\nOtto\n\nOtto:\nI see"
    tokenizer = CharacterTokenizer(sorted(set(text)))
    ids = np.array(tokenizer.encode(text))
    counted = said_by(ids, tokenizer, Dialogue({"Otto": 2, "Anna": 2}, layout), "Otto")
    assert tokenizer.decode(ids[counted].tolist()) == "yes\n\nyes\n\nI see"


def test_somebody_who_says_nothing_is_refused() -> None:
    ids = np.array(TOKENIZERS[0].encode("Anna: hi\n\n"))
    with pytest.raises(UserError, match="Otto says too little"):
        said_by(ids, TOKENIZERS[0], DIALOGUE, "Otto")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("only")
    (folder / "chat.txt").write_text(some_chat(200))
    return folder


def test_the_loss_and_its_gradients_are_those_of_one_speaker(folder: Path) -> None:
    text = TextConfig(files=(str(folder / "chat.txt"),), vocab_size=320, only="otto")
    dataset = prepare_tokens(find_source(text), text, cache=folder)
    assert dataset.marked_train is not None and dataset.marked_validation is not None

    inputs, targets = sample_batch(dataset.marked_train, 4, 32, seed=0, step=0)
    plain_inputs, plain_targets = sample_batch(dataset.train, 4, 32, seed=0, step=0)
    is_counted = targets != IGNORED
    assert torch.equal(inputs, plain_inputs)
    assert torch.equal(targets[is_counted], plain_targets[is_counted])
    assert 0.2 < is_counted.float().mean() < 0.6

    torch.manual_seed(0)
    model = GPT(GPTConfig(vocab_size=320, emb_dim=16, num_layers=1, num_heads=2, context_length=32))
    losses, _ = token_cross_entropy(model, plain_inputs, plain_targets)  # (b, T)
    byte_lengths = torch.tensor(dataset.tokenizer.byte_lengths())
    parts = [(inputs[:1], targets[:1]), (inputs[1:], targets[1:])]
    result = set_gradients(
        Loss(model, has_ignored=True),
        list(model.parameters()),
        parts,
        byte_lengths,
        grad_clip=1e9,
        precision=torch.float32,
    )
    assert result.loss == pytest.approx(losses[is_counted].mean().item(), rel=1e-5)
    size = byte_lengths[targets[is_counted]].sum().item()
    assert result.bytes_per_token == pytest.approx(size / is_counted.sum().item())

    found = model.head.weight.grad
    model.zero_grad()
    logits = model(plain_inputs)[is_counted]  # (n, vocab_size)
    torch.nn.functional.cross_entropy(logits, targets[is_counted]).backward()
    assert found is not None and model.head.weight.grad is not None
    assert torch.allclose(found, model.head.weight.grad, atol=1e-6)


def test_an_evaluation_is_of_the_same_tokens(folder: Path) -> None:
    text = TextConfig(files=(str(folder / "chat.txt"),), vocab_size=320, only="Anna")
    dataset = prepare_tokens(find_source(text), text, cache=folder)
    assert dataset.marked_validation is not None
    model = GPT(GPTConfig(vocab_size=320, emb_dim=16, num_layers=1, num_heads=2, context_length=32))
    byte_lengths = torch.tensor(dataset.tokenizer.byte_lengths())
    result = evaluate_tokens(
        model, dataset.marked_validation, byte_lengths, context_length=32, max_tokens=10_000
    )
    assert dataset.origin.dialogue is not None
    counted = said_by(dataset.validation, dataset.tokenizer, dataset.origin.dialogue, "Anna")
    assert result.tokens == counted[1:].sum()
