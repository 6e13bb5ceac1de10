"""Embedding and head from the text: neighbours, counted as Levy and Goldberg do, and followers."""

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from minigpt.config import GPTConfig
from minigpt.model import GPT
from minigpt.recipe.embedding_init import embedding_init, head_init
from minigpt.runs.folder import METRICS, read_metrics
from minigpt.tokenizer import make_tokenizer

from ..conftest import train_tiny

pytestmark = pytest.mark.long


def some_tokens(count: int = 300, vocab_size: int = 12) -> np.ndarray:
    return np.random.default_rng(0).integers(0, vocab_size, count).astype(np.uint16)


def cosines(vectors: Tensor) -> Tensor:
    """Of all pairs: ``(V, V)``."""
    unit = F.normalize(vectors, dim=1)
    return unit @ unit.T


def test_tokens_among_the_same_neighbours_are_alike() -> None:
    """1 and 2 stand between 0 and 3, 5 and 6 between 4 and 7."""
    draw = np.random.default_rng(0)
    words = [
        (0, draw.choice([1, 2]), 3) if draw.random() < 0.5 else (4, draw.choice([5, 6]), 7)
        for _ in range(500)
    ]
    alike = cosines(embedding_init(np.concatenate(words), 8, emb_dim=4, seed=0))
    assert alike[1, 2] > 0.95 and alike[5, 6] > 0.95
    assert max(alike[1, 5], alike[1, 6], alike[2, 5], alike[2, 6]) < 0.5


def information(tokens: list[int], size: int, neighbours: list[int], step: int) -> Tensor:
    """By definition: of each token and the neighbours before (step -1) or after (1) it."""
    counts = [[0.0] * len(neighbours) for _ in range(size)]
    for i, token in enumerate(tokens):
        for distance in range(1, 13):
            j = i + step * distance
            if 0 <= j < len(tokens) and tokens[j] in neighbours:
                counts[token][neighbours.index(tokens[j])] += 1 / distance
    often = [sum(column) ** 0.75 for column in zip(*counts, strict=True)]
    found = torch.zeros(size, len(neighbours))
    for i, row in enumerate(counts):
        for j, count in enumerate(row):
            if count > 0:
                found[i, j] = max(0.0, math.log(count / sum(row) / (often[j] / sum(often))))
    return found


@pytest.mark.parametrize("neighbours", [12, 5])
def test_they_factor_the_information_about_neighbours(
    neighbours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """About all of them, or the five most frequent."""
    monkeypatch.setattr("minigpt.recipe.embedding_init._CELLS", 12 * neighbours)
    monkeypatch.setattr("minigpt.recipe.embedding_init._FEWEST", 1)
    size = 12
    tokens = np.concatenate([some_tokens(), np.repeat(np.arange(5), 30)])
    columns = list(range(neighbours))
    both = [information(tokens.tolist(), size, columns, step) for step in (-1, 1)]
    left, values, _ = torch.linalg.svd(torch.cat(both, dim=1), full_matrices=False)
    found = embedding_init(tokens, size, emb_dim=32, seed=3)
    torch.testing.assert_close(cosines(found), cosines(left * values.sqrt()), atol=1e-3, rtol=0)


def test_a_long_text_is_counted_in_all_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minigpt.recipe.embedding_init._TOKENS", 1600)
    ends = np.concatenate([some_tokens(20_000, 6), 6 + some_tokens(20_000, 6)])
    alike = cosines(embedding_init(ends, 12, emb_dim=12, seed=0))
    assert alike[:6, 6:].max() < alike[:6, :6].min()


@pytest.mark.parametrize(("count", "size", "emb_dim"), [(300, 12, 8), (2, 300, 16), (40, 5, 64)])
def test_all_are_equally_long_and_a_seed_decides(count: int, size: int, emb_dim: int) -> None:
    """Also those of tokens that do not occur; in few dimensions or more than there are tokens."""
    tokens = some_tokens(count, min(size, 12))
    state = torch.get_rng_state()
    vectors = embedding_init(tokens, size, emb_dim, seed=1)
    assert vectors.shape == (size, emb_dim)
    length = min(0.06, math.log(size) / emb_dim) * emb_dim**0.5
    torch.testing.assert_close(vectors.norm(dim=1), torch.full((size,), length))
    assert torch.equal(vectors, embedding_init(tokens, size, emb_dim, seed=1))
    assert not torch.equal(vectors, embedding_init(tokens, size, emb_dim, seed=2))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(("vocab_size", "emb_dim"), [(65, 128), (1024, 512)])
def test_a_model_that_starts_from_them_does_not_just_repeat_its_input(
    vocab_size: int, emb_dim: int
) -> None:
    """Its loss is near that of guessing, ln V; 2 nats above that a training counts as diverged."""
    config = GPTConfig(vocab_size, emb_dim=emb_dim, num_layers=1, num_heads=1)
    tokens, model = some_tokens(5000, vocab_size), GPT(config)
    vectors = embedding_init(tokens, vocab_size, emb_dim, seed=0)
    model.token_embedding.load_state_dict({"weight": vectors})
    ids = torch.from_numpy(tokens[:257].astype(np.int64)).unsqueeze(0)  # (1, 257)
    assert model.loss(ids[:, :-1], ids[:, 1:]) < math.log(vocab_size) + 1.5


def test_a_run_that_starts_from_them_learns_sooner(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Than from chance, and than from the same vectors for other tokens."""

    def rolled(made: Callable[..., Tensor], *given: Any) -> Tensor:
        return made(*given).roll(1, dims=0)

    def trained(**changes: Any) -> float:
        run = train_tiny(steps=20, num_evals=1, **changes)
        return read_metrics(run / METRICS)[-1]["val_loss"]

    for made, is_tied in ((embedding_init, True), (head_init, False)):
        found = trained(tie_embeddings=is_tied)
        assert found < trained(tie_embeddings=is_tied, embedding_init="random") - 0.02
        with monkeypatch.context() as patch:
            patch.setattr(f"minigpt.recipe.beginning.{made.__name__}", partial(rolled, made))
            assert found < trained(tie_embeddings=is_tied) - 0.02


@pytest.mark.parametrize("most", [12, 5])
def test_the_head_predicts_what_follows_each_token_in_the_text(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 100 more tokens drawn from the text. Of a large vocabulary, for the most frequent."""
    monkeypatch.setattr("minigpt.recipe.embedding_init._CELLS", 12 * most)
    monkeypatch.setattr("minigpt.recipe.embedding_init._FEWEST", 0)
    draw = np.random.default_rng(0)
    likely = draw.dirichlet(np.full(12, 0.3), size=12)  # after each token
    tokens = [0]
    for _ in range(4000):
        tokens.append(draw.choice(12, p=likely[tokens[-1]]))
    inputs = torch.randn(12, 16, generator=torch.Generator().manual_seed(0))
    predicted = (inputs @ head_init(np.array(tokens), inputs).T).softmax(dim=1)
    frequency = torch.tensor([(tokens.count(t) + 0.5) / (len(tokens) + 6) for t in range(12)])
    for token in frequency.topk(most).indices:
        followers = [b for a, b in pairwise(tokens) if a == token]
        counts = torch.tensor([float(followers.count(t)) for t in range(12)])
        wanted = (counts + 100 * frequency) / (len(followers) + 100)
        torch.testing.assert_close(predicted[token], wanted, atol=0.01, rtol=0.0)


def song(times: int) -> str:
    """A text so regular that the next token is nearly always sure."""
    lines = (
        "Row, row, row your boat",
        "Gently down the stream",
        "Merrily, merrily, merrily, merrily",
        "Life is but a dream",
    )
    return "\n".join(lines * times)


REGULAR = {
    "a song": song(100),
    "a line repeated": "the quick brown fox jumps over the lazy dog\n" * 300,
    "a table": "".join(f"{i},{i * i},{i % 3},{'yes' if i % 2 else 'no'}\n" for i in range(700)),
    "numbered lines": "".join(f"Line {i}: the same words again and again.\n" for i in range(350)),
    "a word repeated": "word " * 3000,
    "a letter repeated": "a\n" * 2500,
}


@pytest.mark.parametrize("name", REGULAR)
@pytest.mark.parametrize("kind", ["bpe", "char"])
def test_a_head_predicts_a_regular_text_no_worse_than_frequencies_or_guessing(
    kind: str, name: str
) -> None:
    """In a text so regular L-BFGS overshoots, unless a line search keeps it from that."""
    text = REGULAR[name]
    tokenizer = make_tokenizer(kind, 1024, [text])
    V = tokenizer.vocab_size
    tokens = np.array(tokenizer.encode(text)).astype(np.uint16)
    ids = torch.from_numpy(tokens.astype(np.int64))  # (n,)
    vectors = embedding_init(tokens, V, emb_dim=64, seed=0)
    inputs = F.rms_norm(vectors, (64,))  # (V, 64)
    assert vectors.isfinite().all()

    head = head_init(tokens, inputs)
    loss = F.cross_entropy(inputs[ids[:-1]] @ head.T, ids[1:])
    share = ids.bincount(minlength=V) / len(ids)  # (V,)
    loss_by_frequency = torch.special.entr(share).sum()
    few = 0.05  # that the 100 tokens drawn from the whole text take away
    assert loss < loss_by_frequency + few
    assert loss < math.log(V)


@pytest.mark.parametrize("kind", ["bpe", "char"])
def test_a_run_on_a_regular_text_learns_it(kind: str, workplace: Path) -> None:
    Path("song.txt").write_text(song(100))
    run = train_tiny("song.txt", emb_dim=64, tokenizer=kind, tie_embeddings=False)
    first, last = (row["val_loss"] for row in read_metrics(run / METRICS))
    assert last < first < 1.5
