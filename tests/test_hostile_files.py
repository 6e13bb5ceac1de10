"""Files are data: whatever is in a file that is read, the result is the right object or one
UserError; never another exception, a crash, a hang, or memory without end.

A valid file of each kind is damaged in every way we could think of. A few hundred cases run with
the other tests, 8,000 with `make test-fuzz`.
"""

import json
import random
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

import minigpt
from minigpt import UserError
from minigpt.config import TrainConfig
from minigpt.data.token_cache import open_dataset
from minigpt.runs.folder import WEIGHTS, read_metrics
from minigpt.runs.read_model import load_run
from minigpt.system.eight_bits import rounded
from minigpt.system.safetensors_files import read_weights, save_tensors
from minigpt.tokenizer import load_tokenizer, make_tokenizer
from minigpt.training.checkpoint import Learner, load_checkpoint
from minigpt.training.optimizer import make_optimizers

TEXT = "The fox asked the crow for bread, and the crow said no. \N{BREAD}\n" * 30
VALUES = [
    None, True, -1, 0, 1, 2**31, 2**63, 10**30, 1.5, 1e308, float("nan"), "", "x" * 5000, [], {},
    [[]], "../../etc/passwd", "(a+)+$", "(?:", [1, "a"], {"a": None},
]  # fmt: skip


class Kind(NamedTuple):
    """A file, and what reads it."""

    file: Path
    read: Callable[[], Any]


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Kind]:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "my.txt").write_text(TEXT)
    cache = folder / "cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINIGPT_CACHE", str(cache))
        run = minigpt.train(
            folder / "my.txt", out=folder / "run", steps=4, num_evals=2, emb_dim=8,
            num_layers=1, num_heads=1, context_length=8, batch_size=2, vocab_size=280,
            compile="off", precision="float32",
        )  # fmt: skip
    tokens = next(cache.rglob("meta.json")).parent

    def read_checkpoint() -> Any:
        """Load it and take a step, which must be possible with whatever was loaded."""
        model = load_run(run).model
        config = TrainConfig()
        optimizers = make_optimizers(model, config)
        state, _ = load_checkpoint(run, Learner.of(model, optimizers, config))
        model.loss(torch.tensor([[0, 1, 2]]), torch.tensor([[1, 2, 3]])).backward()
        for optimizer in optimizers:
            optimizer.step()
        return state

    characters = folder / "characters.json"
    characters.write_text(make_tokenizer("char", None, [TEXT]).to_json(), encoding="utf-8")

    eight_bits = shutil.copytree(run, folder / "eight-bits")
    save_tensors(rounded(read_weights(run / WEIGHTS)), eight_bits / WEIGHTS, {})

    (run / "checkpoint/previous.safetensors").unlink()  # or it would be read instead
    return {
        "config": Kind(run / "config.json", lambda: load_run(run)),
        "weights": Kind(run / "model.safetensors", lambda: load_run(run)),
        "weights in 8 bits": Kind(eight_bits / WEIGHTS, lambda: load_run(eight_bits)),
        "tokenizer": Kind(run / "tokenizer.json", lambda: load_run(run)),
        "characters": Kind(characters, lambda: load_tokenizer(characters)),
        "metrics": Kind(run / "metrics.jsonl", lambda: read_metrics(run / "metrics.jsonl")),
        "checkpoint": Kind(run / "checkpoint/last.safetensors", read_checkpoint),
        "token cache": Kind(tokens / "meta.json", lambda: open_dataset(tokens)),
        "token file": Kind(tokens / "train.bin", lambda: open_dataset(tokens)),
        "cached tokenizer": Kind(tokens / "tokenizer.json", lambda: open_dataset(tokens)),
    }


KINDS = [
    "config", "weights", "weights in 8 bits", "tokenizer", "metrics", "checkpoint", "token cache",
    "token file", "cached tokenizer", "characters",
]  # fmt: skip


def damaged(data: bytes, draw: random.Random) -> bytes:
    """`data`, changed in a random way."""
    way = draw.choice([truncated, flipped, swapped, lengthened, noisy, revalued, revalued, deep])
    return way(data, draw)


def truncated(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data))]


def flipped(data: bytes, draw: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.choice([1, 1, 4, 50])):
        changed[draw.randrange(min(len(data), draw.choice([16, 400, 10**9])))] ^= (
            1 << draw.randrange(8)
        )
    return bytes(changed)


def swapped(data: bytes, draw: random.Random) -> bytes:
    i, j = sorted(draw.randrange(len(data)) for _ in range(2))
    n = draw.randrange(1, 64)
    return data[:i] + data[j : j + n] + data[i + n : j] + data[i : i + n] + data[j + n :]


def lengthened(data: bytes, draw: random.Random) -> bytes:
    """A safetensors file begins with the length of its header, 8 bytes little-endian."""
    length = draw.choice([0, 1, 2**20, 2**31, 2**40, 2**63, 2**64 - 1, len(data)])
    return struct.pack("<Q", length) + data[8:]


def noisy(data: bytes, draw: random.Random) -> bytes:
    i = draw.randrange(len(data))
    return data[:i] + draw.randbytes(draw.randrange(1, 200)) + data[i:]


def deep(data: bytes, draw: random.Random) -> bytes:
    depth = draw.choice([100, 2000, 200_000])
    nested = draw.choice([b"[", b'{"a":']) * depth
    if data[:1] == b"{":
        return draw.choice([nested, b'{"model": ' + nested])
    return struct.pack("<Q", len(nested)) + nested


def revalued(data: bytes, draw: random.Random) -> bytes:
    """The JSON in the file, with one of its values replaced, removed or added."""
    start = 0 if data[:1] in b"{[" else 8
    end = len(data) if start == 0 else 8 + struct.unpack("<Q", data[:8])[0]
    try:
        tree = json.loads(data[start:end])
    except ValueError:
        return noisy(data, draw)
    place = tree
    while isinstance(place, dict | list) and len(place) > 0:
        key = draw.choice(list(place) if isinstance(place, dict) else range(len(place)))
        if draw.random() < 0.4 or not isinstance(place[key], dict | list) or not place[key]:
            change = draw.choice(["replace", "replace", "remove", "add"])
            if change == "replace":
                place[key] = draw.choice(VALUES)
            elif change == "remove":
                del place[key]
            elif isinstance(place, dict):
                place[draw.choice(["extra", "..", ""])] = draw.choice(VALUES)
            break
        place = place[key]
    body = json.dumps(tree).encode()
    return body if start == 0 else struct.pack("<Q", len(body)) + body + data[end:]


def assert_little_memory() -> None:
    """This process has never had more than 2 GB, where the system says so, in KB."""
    if sys.platform == "linux":
        import resource

        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2_000_000


def check(kind: Kind, count: int, seed: int) -> None:
    """Damage the file `count` times and read it."""
    kind.read()  # undamaged, it reads
    original, draw, refused = kind.file.read_bytes(), random.Random(seed), 0
    folder, before = kind.file.parent, {p.name for p in kind.file.parent.iterdir()}
    try:
        for _ in range(count):
            data = damaged(original, draw)
            kind.file.write_bytes(data)
            try:
                assert kind.read() is not None, data[:200]
            except UserError as error:
                assert "\n" not in str(error).strip()
                refused += 1
    finally:
        kind.file.write_bytes(original)
        for path in folder.iterdir():
            if path.name not in before:
                shutil.rmtree(path, ignore_errors=True)
    assert_little_memory()
    if kind.file.suffix != ".jsonl":  # bad lines of the metrics are passed over
        assert refused > count * 0.3
    kind.read()


@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_file_is_read_right_or_refused(name: str, kinds: dict[str, Kind]) -> None:
    check(kinds[name], 40, seed=1)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(2, 4))
@pytest.mark.parametrize("name", KINDS)
def test_thousands_of_damaged_files(name: str, seed: int, kinds: dict[str, Kind]) -> None:
    check(kinds[name], 520, seed)
