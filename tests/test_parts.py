"""What a stranger touches for a norm or a kind of positions of their own: a class, its entry in the
table of that file, and its name. All else follows from it.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from minigpt.config.parts import NormName, PositionsName
from minigpt.config.parts.norms import NORMS
from minigpt.config.parts.positions import POSITIONS

from .sources import PACKAGE

# Each vector is divided by its largest number, and then scaled.
NORM = """
@functools.cache  # one class, however often it is asked for
def torch_largest():
    import torch

    class TorchLargest(torch.nn.Module):
        def __init__(self, width, eps):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.empty(width))
            self.eps = eps

        def forward(self, x):
            return x / (x.abs().amax(-1, keepdim=True) + self.eps) * self.scale

    return TorchLargest


class NumpyLargest:
    bias = None

    def __init__(self, scale, eps):
        self.scale = scale
        self.eps = np.float32(eps)

    def __call__(self, x):
        return x / (np.abs(x).max(-1, keepdims=True) + self.eps) * self.scale


class Largest:
    gguf_epsilon = ""

    def shapes(self, width, bias):
        return {"scale": (width,)}

    def torch_form(self, width, eps, bias):
        return torch_largest()(width, eps)

    def numpy_form(self, weights, name, eps):
        return NumpyLargest(weights[f"{name}.scale"], eps)


"""
# A learned direction, times the position, is added to each token; queries and keys grow with it.
KIND_OF_POSITIONS = """
@functools.cache
def torch_forms():
    import torch

    class Line(torch.nn.Module):
        def __init__(self, emb_dim):
            super().__init__()
            self.direction = torch.nn.Parameter(torch.empty(emb_dim))

        def forward(self, positions):
            return positions[:, None] * self.direction

    class Growth(torch.nn.Module):
        def forward(self, x, start=0):
            positions = torch.arange(start, start + x.shape[-2])
            return x * (1 + 0.1 * positions[:, None])

    return Line, Growth


class NumpyGrowth(NamedTuple):
    factors: Any

    def at(self, positions):
        return NumpyGrowth(self.factors[positions])

    def __call__(self, x):
        return x * self.factors


class Growing(Positions):
    def shapes(self, network):
        return {"position_embedding.direction": (network.emb_dim,)}

    def vectors(self, network):
        Line, _ = torch_forms()
        return Line(network.emb_dim)

    def in_attention(self, network):
        _, Growth = torch_forms()
        return {"rotary": Growth()}

    def numpy_form(self, network, weights):
        positions = np.arange(network.context_length, dtype=np.float32)
        growth = NumpyGrowth(1 + np.float32(0.1) * positions[:, None, None])
        vectors = positions[:, None] * weights["position_embedding.direction"]
        return NumpyPositions(vectors, growth)


"""
PROGRAM = """
import numpy as np, torch
from minigpt import GPT, GPTConfig
from minigpt.config import count_parameters
from minigpt.generation.numpy_gpt import NumpyGPT
from minigpt.generation.torch_gpt import TorchGPT, engine_of
from minigpt.generation.window import Window

parts = {"norm": "largest", "positions": "growing"}
config = GPTConfig(11, context_length=8, emb_dim=8, num_heads=2, **parts)
model = GPT(config)
optimizer = torch.optim.SGD(model.parameter_groups(0.0), lr=0.1)
ids = torch.arange(16).view(2, 8) % 11
loss = model.loss(ids[:, :-1], ids[:, 1:])
loss.backward()
optimizer.step()
assert model.loss(ids[:, :-1], ids[:, 1:]) < loss
assert sum(p.numel() for p in model.parameters()) == count_parameters(config)

for parameter in model.parameters():
    torch.nn.init.normal_(parameter, std=0.5)
model.eval()
glass = engine_of(model)
assert isinstance(glass, NumpyGPT)
windows = [Window(engine, [3, 1, 4], samples=2) for engine in (glass, TorchGPT(model))]
for new in range(9):
    by_glass, by_torch = (window.next_logits() for window in windows)
    np.testing.assert_allclose(by_glass, by_torch, rtol=1e-4, atol=1e-4)
    for window in windows:
        window.append(np.array([new, 10 - new]))
"""


@pytest.mark.long
def test_a_norm_and_a_kind_of_positions_of_a_strangers_own(tmp_path: Path) -> None:
    """They train a step, write the same with torch and with the glass engine, past the end of the
    context too, and count their parameters."""
    package = tmp_path / "minigpt"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    edits = {
        "__init__.py": [
            ('"layer"]', '"layer", "largest"]'),
            ('"learned"]', '"learned", "growing"]'),
        ],
        "norms.py": [
            ("import math\n", "import functools\nimport math\n"),
            ("NORMS: ", NORM + "NORMS: "),
            ("LayerNorm()}", 'LayerNorm(), "largest": Largest()}'),
        ],
        "positions.py": [
            ("from typing", "import functools\nfrom typing"),
            ("POSITIONS: ", KIND_OF_POSITIONS + "POSITIONS: "),
            ("Learned()}", 'Learned(), "growing": Growing()}'),
        ],
    }
    for name, changes in edits.items():
        file = package / "config" / "parts" / name
        text = file.read_text()
        for old, new in changes:
            assert text.count(old) == 1
            text = text.replace(old, new)
        file.write_text(text)

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()


def test_the_names_are_those_of_the_tables() -> None:
    assert get_args(NormName) == tuple(NORMS)
    assert get_args(PositionsName) == tuple(POSITIONS)
