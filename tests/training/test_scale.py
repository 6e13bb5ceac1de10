"""The formulas of memory and of what is sent; docs/scale.md holds what they give."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from minigpt.config import GPTConfig, TrainConfig
from minigpt.model import GPT, count_parameters
from minigpt.training.compilation import Loss
from minigpt.training.device import autocast
from minigpt.training.optimizer import make_optimizer
from minigpt.training.scale import Memory, bytes_sent, memory

DOCS = (Path(__file__).parents[2] / "docs" / "scale.md").read_text()
SMALL: dict[str, Any] = {
    "vocab_size": 512, "emb_dim": 128, "num_layers": 2, "num_heads": 2, "context_length": 64
}  # fmt: skip
GPT2: dict[str, Any] = {"vocab_size": 50257, "architecture": "gpt2", "context_length": 1024}
QWEN3_8B: dict[str, Any] = {
    "vocab_size": 151936, "emb_dim": 4096, "num_layers": 36, "num_heads": 32, "num_kv_heads": 8,
    "head_dim": 128, "hidden_dim": 12288, "tie_embeddings": False, "context_length": 4096,
}  # fmt: skip
MODELS = {
    "GPT-2 small": GPTConfig(**GPT2, emb_dim=768, num_layers=12, num_heads=12),
    "GPT-2 medium": GPTConfig(**GPT2, emb_dim=1024, num_layers=24, num_heads=16),
    "GPT-2 large": GPTConfig(**GPT2, emb_dim=1280, num_layers=36, num_heads=20),
    "GPT-2 XL": GPTConfig(**GPT2, emb_dim=1600, num_layers=48, num_heads=25),
    "Qwen3-8B": GPTConfig(**QWEN3_8B),
}


def measured(config: GPTConfig, training: TrainConfig) -> int:
    """Bytes of all tensors at the worst moment of a training step."""
    precision = torch.bfloat16 if training.precision == "bfloat16" else torch.float32
    model = GPT(config)
    optimizer, loss_of = make_optimizer(model, training, precision), Loss(model)
    rows = training.micro_batch_size or training.batch_size
    tokens = torch.randint(config.vocab_size, (rows, config.context_length))  # (b, T)

    def step() -> None:
        for _ in range(training.batch_size // rows):
            with autocast(tokens.device, precision):
                loss = loss_of(tokens, tokens)
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    step()
    kept = [*model.parameters(), *optimizer.state().values()]
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        step()
    allocated = highest = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            allocated += event.nbytes()
            highest = max(highest, allocated)
    return sum(tensor.nbytes for tensor in kept) + highest


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("architecture", ["qwen3", "gpt2"])
@pytest.mark.parametrize(("batch_size", "dropout"), [(1, 0.0), (8, 0.1)])
def test_memory_is_within_10_percent_of_what_a_step_takes(
    batch_size: int, dropout: float, architecture: str, precision: str
) -> None:
    """Mostly parameters and what belongs to them, or mostly activations."""
    config = GPTConfig(**SMALL, architecture=architecture, dropout=dropout)
    training = TrainConfig(
        optimizer="adamw",
        batch_size=2 * batch_size,
        micro_batch_size=batch_size,
        precision=precision,
    )
    assert memory(config, training).total == pytest.approx(measured(config, training), rel=0.1)


def test_what_is_shared_out_adds_up() -> None:
    """Sharded among many, a process holds next to nothing but what it gathers."""
    config = MODELS["GPT-2 XL"]
    one = memory(config, TrainConfig(optimizer="adamw", batch_size=64))
    many = memory(config, TrainConfig(optimizer="adamw", batch_size=64, shard=True), processes=64)
    assert many.optimizer * 64 == one.optimizer and many.activations * 64 == one.activations
    in_parts = memory(config, TrainConfig(optimizer="adamw", batch_size=64, micro_batch_size=1))
    assert in_parts.activations == many.activations
    muon = [memory(config, TrainConfig(batch_size=64, optimizer="muon"), n) for n in (1, 64)]
    assert one.optimizer > muon[0].optimizer > muon[1].optimizer


def test_one_process_sends_nothing_and_parts_cost_only_a_sharded_model() -> None:
    config = MODELS["GPT-2 small"]
    parts: dict[str, Any] = {"batch_size": 64, "micro_batch_size": 2}
    assert bytes_sent(config, TrainConfig(optimizer="muon"), 1) == 0
    whole = bytes_sent(config, TrainConfig(optimizer="adamw", batch_size=64), 8)
    assert bytes_sent(config, TrainConfig(optimizer="adamw", **parts), 8) == whole
    assert whole == 2 * 4 * count_parameters(config) * 7 / 8
    sharded = bytes_sent(config, TrainConfig(optimizer="adamw", batch_size=64, shard=True), 8)
    assert bytes_sent(config, TrainConfig(optimizer="adamw", **parts, shard=True), 8) == 4 * sharded


def gigabytes(needed: Memory) -> str:
    return f"{needed.total / 1e9:.1f}"


@pytest.mark.parametrize("name", MODELS)
def test_the_table_of_the_documentation_is_what_the_formula_gives(name: str) -> None:
    model = MODELS[name]
    row = [name, f"{count_parameters(model) / 1e6:,.0f} M"]
    for precision in ("float32", "bfloat16"):
        alone = TrainConfig(optimizer="adamw", batch_size=1, precision=precision)
        row.append(gigabytes(memory(model, alone)))
    for processes in (8, 64):
        sharded = TrainConfig(
            optimizer="adamw", batch_size=processes, precision="bfloat16", shard=True
        )
        row.append(gigabytes(memory(model, sharded, processes)))
    for shard in (False, True):
        training = TrainConfig(optimizer="adamw", batch_size=8, shard=shard)
        row.append(f"{bytes_sent(model, training, 8) / 1e9:.1f}")
    line = f"| {' | '.join(row)} |"
    assert line in DOCS, line
