"""The network is written three times, in torch, numpy and JavaScript, and computes the same.

The page's JavaScript runs in node here; test_engine.py runs it in a browser.
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt.config import GPTConfig
from minigpt.generation.torch_gpt import glass_of
from minigpt.generation.window import Array
from minigpt.model import GPT
from minigpt.page.build import page_config

from ..interop.examples import randomize, weights_of
from ..networks import COMBINATIONS, shapes

ENGINE = Path(__file__).parents[2] / "minigpt" / "page" / "model" / "engine.js"
# Reads a network and tokens from each line, writes the logits after each token and the attention
# weights of every head.
PROGRAM = """
import { createInterface } from "node:readline";
import { Engine, Reading } from "./engine.mjs";

for await (const line of createInterface({ input: process.stdin })) {
  const { config, weights, ids, cut, off = [] } = JSON.parse(line);
  const named = Object.entries(weights).map(([name, { data, rows, columns }]) => [
    name,
    { data: Float32Array.from(data), rows, columns },
  ]);
  const reading = new Reading(new Engine(config, new Map(named)), new Set(off));
  reading.read(ids.slice(0, cut));
  reading.read(ids.slice(cut));
  const logits = ids.map((_, t) => [...reading.logits(t)]);
  const heads = Array.from({ length: config.num_heads }, (_, h) => h);
  const attention = reading.layers.map((_, i) => heads.map((h) => [...reading.attention(i, h)]));
  console.log(JSON.stringify({ logits, attention }));
}
"""
Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def javascript(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """One process of node, which computes what it is asked for."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    folder = tmp_path_factory.mktemp("node")
    shutil.copy(ENGINE, folder / "engine.mjs")
    (folder / "program.mjs").write_text(PROGRAM)
    command = [node, str(folder / "program.mjs")]

    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None

        def ask(**question: Any) -> dict[str, Any]:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            answer: dict[str, Any] = json.loads(process.stdout.readline())
            return answer

        yield ask
        process.stdin.close()


def random_gpt(config: GPTConfig) -> GPT:
    torch.manual_seed(0)
    model = GPT(config)
    randomize(model)
    return model.eval()


def in_javascript(model: GPT) -> dict[str, Any]:
    """The weights as the page's engine has them."""
    return {
        name: {"data": array.flatten().tolist(), "rows": len(array), "columns": array.shape[-1]}
        for name, array in weights_of(model).items()
    }


def assert_close(ours: Any, theirs: Any) -> None:
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "parts", COMBINATIONS, ids=lambda parts: "-".join(map(str, parts.values()))
)
@given(shape=shapes(vocab_size=13), data=st.data())
@settings(max_examples=3, deadline=None)
@torch.no_grad()
def test_torch_numpy_and_javascript_compute_the_same(
    javascript: Ask, parts: dict[str, Any], shape: dict[str, Any], data: st.DataObject
) -> None:
    """Logits and attention weights, of a text that the page reads in two pieces."""
    config = GPTConfig(**shape, **parts)
    model = random_gpt(config)
    ids: Array = np.random.default_rng(0).integers(13, size=config.context_length)
    cut = data.draw(st.integers(0, len(ids)))

    glass = glass_of(model)
    logits = glass(ids[None])[0]
    page = javascript(
        config=page_config(config), weights=in_javascript(model), ids=ids.tolist(), cut=cut
    )
    assert_close(logits, model(torch.from_numpy(ids)[None])[0])
    assert_close(page["logits"], logits)

    T = len(ids)
    weights = np.reshape(page["attention"], (config.num_layers, config.num_heads, T, T))
    assert_close(weights, glass.record(ids).attention)


@given(shape=shapes(vocab_size=13), parts=st.sampled_from(COMBINATIONS), data=st.data())
@settings(max_examples=20, deadline=None)
def test_a_head_that_is_off_is_off_in_numpy_and_javascript(
    javascript: Ask, shape: dict[str, Any], parts: dict[str, Any], data: st.DataObject
) -> None:
    config = GPTConfig(**shape, **parts)
    model = random_gpt(config)
    glass = glass_of(model)
    ids = np.arange(config.context_length) % 13
    layers = st.integers(0, config.num_layers - 1)
    heads = st.integers(0, config.num_heads - 1)
    off = data.draw(st.sets(st.tuples(layers, heads), min_size=1))

    page = javascript(
        config=page_config(config),
        weights=in_javascript(model),
        ids=ids.tolist(),
        cut=0,
        off=[f"{layer}.{head}" for layer, head in off],
    )
    assert_close(page["logits"], glass.logits(glass.record(ids, off).residual[-1]))
