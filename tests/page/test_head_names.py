"""A model whose heads are known, because they were built, gets their names."""

from pathlib import Path

import numpy as np
import pytest

from minigpt.config import GPTConfig, named_shapes
from minigpt.generation.numpy_gpt import NumpyGPT
from minigpt.runs.read_model import FoundModel
from minigpt.tokenizer import make_tokenizer

from .conftest import Open, as_in_page, open_view

pytestmark = pytest.mark.page
V, C, D = 16, 8, 80  # tokens, places, components; a head has V


def built(folder: Path) -> FoundModel:
    """Components of a vector say which token it is, at which place, after which token; the other
    half of them is the same with the opposite sign, so that LayerNorm has nothing to centre."""
    unit = np.eye(D, dtype=np.float32)
    token, place, before = unit[:V], unit[V : V + C], unit[V + C : V + C + V]
    always, late = place.sum(axis=0), np.arange(C) / C @ place
    heads = [  # queries, and the keys that they look for: (layer, head, (V, D), (V, D))
        (0, 0, place[1:], place[:-1]),
        (0, 1, [always], [place[0]]),
        (0, 2, place, place),
        (0, 3, [*token[:-1], always], [*token[:-1], -late]),
        (1, 0, token, before),
    ]
    config = GPTConfig(V, "gpt2", C, emb_dim=D, num_layers=2, num_heads=5)
    weights = {
        name: np.full(shape, "norm.weight" in name, np.float32)
        for name, shape in named_shapes(config)
    }
    weights["token_embedding.weight"][:] = token - np.roll(token, D // 2, axis=1)
    weights["position_embedding.weight"][:] = place - np.roll(place, D // 2, axis=1)
    for layer, head, queries, keys in heads:
        for name, rows in (("W_query", 20 * np.array(queries)), ("W_key", keys)):
            start = V * head
            weights[f"blocks.{layer}.attention.{name}.weight"][start : start + len(rows)] = rows
    weights["blocks.0.attention.W_value.weight"][:V] = token
    written = before - np.roll(before, D // 2, axis=1)  # by the head that sees the token before
    weights["blocks.0.attention.out_proj.weight"][:, :V] = written.T
    tokenizer = make_tokenizer("char", None, ["abcdefghijklmno"])
    return as_in_page(FoundModel(folder, NumpyGPT(config, weights), tokenizer))


def test_heads_get_the_names_of_what_they_do(open_page: Open, tmp_path: Path) -> None:
    page = open_page(built(tmp_path), link="#prompt=abcdabcd")
    open_view(page, "attention")
    page.click("#panel-attention summary")
    page.wait_for_selector("#panel-attention .heads [title*='induction']")
    titles = [item.get_attribute("title") for item in page.locator(".heads button").all()]
    # The first token has none before it and writes its own: induction sees it twice, once in four.
    assert titles == [
        "Head 1.1: previous token (100 % of its attention in a test)",
        "Head 1.2: first token (100 % of its attention in a test)",
        "Head 1.3: itself (100 % of its attention in a test)",
        "Head 1.4: same token before (100 % of its attention in a test)",
        "Head 1.5",
        "Head 2.1: induction (87.5 % of its attention in a test)",
        "Head 2.2",
        "Head 2.3",
        "Head 2.4",
        "Head 2.5",
    ]
    roles = set(page.locator("#panel-attention .role").all_inner_texts())
    assert roles == {
        "previous token",
        "first token",
        "itself",
        "same token before",
        "induction",
        "",
    }
