"""Memory that a training step with AdamW needs: by formula for known models, and measured.

python benchmarks/memory.py [--help] prints the table of docs/scale.md. Then it measures a small
model on the CPU, without torch.compile (which needs less), and compares it with the formula.
"""

import argparse
from dataclasses import replace

import torch
from torch import nn

from minigpt.config import GPTConfig, TrainConfig, count_parameters
from minigpt.model import GPT
from minigpt.training.loss import Loss
from minigpt.training.optimizer import make_optimizers
from minigpt.training.precision import autocast
from minigpt.training.weights import WeightAverage

GPT2 = GPTConfig(50257, "gpt2", context_length=1024, emb_dim=768, num_layers=12, num_heads=12)
MODELS = {
    "GPT-2 small": GPT2,
    "GPT-2 medium": replace(GPT2, emb_dim=1024, num_layers=24, num_heads=16),
    "GPT-2 large": replace(GPT2, emb_dim=1280, num_layers=36, num_heads=20),
    "GPT-2 XL": replace(GPT2, emb_dim=1600, num_layers=48, num_heads=25),
    "Qwen3-8B": GPTConfig(
        vocab_size=151936,
        context_length=4096,
        emb_dim=4096,
        num_layers=36,
        num_heads=32,
        num_kv_heads=8,
        head_dim=128,
        hidden_dim=12288,
        tie_embeddings=False,
    ),
}
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}

# Bytes that the backward pass keeps of a block for each token: per component of the residual
# stream, of the queries, of the keys (values included), and of the hidden layer. These are measured
# slopes of a step's peak, since the code does not show what autograd keeps.
BYTES_OF_A_BLOCK = {
    ("qwen3", "float32"): (24.5, 20, 16, 16),
    ("qwen3", "bfloat16"): (26.5, 14, 12, 8),
    ("gpt2", "float32"): (32.4, 0, 0, 8),  # queries and keys are as wide as the residual stream
    ("gpt2", "bfloat16"): (24.4, 0, 0, 4),
}
BYTES_OF_A_LOGIT = 12  # the logit, its softmax and its gradient


def memory(model: GPTConfig, precision: str, sequences: int = 1) -> float:
    """Bytes that each process needs at the peak of a step, beside what torch itself takes.

    P parameters take 4 P bytes, their gradients 4 P, AdamW's two averages 8 P and the average of
    the weights 4 P. bfloat16 adds a copy of 2 bytes for each parameter.

    Args:
        model: its shape.
        precision: "float32" or "bfloat16".
        sequences: computed at once by each process.
    """
    parameters = count_parameters(model)
    kept = (22 if precision == "bfloat16" else 20) * parameters
    return kept + sequences * model.context_length * activations(model, precision)


def activations(model: GPTConfig, precision: str) -> float:
    """Bytes that the backward pass keeps for each token."""
    stream, query, key, hidden = BYTES_OF_A_BLOCK[model.architecture, precision]
    d, h = model.emb_dim, model.head_size
    block = stream * d + query * model.num_heads * h + key * model.kv_heads * h
    block += hidden * model.ff_dim
    if model.dropout:
        block += 2 * d * (4 if precision == "float32" else 2)
    return model.num_layers * block + BYTES_OF_A_LOGIT * model.vocab_size


def measured(model: GPTConfig, precision: str, sequences: int) -> int:
    """Bytes of all tensors at the peak of a training step of two micro-batches."""
    gpt = GPT(model)
    optimizers = make_optimizers(gpt, TrainConfig(optimizer="adamw"), PRECISIONS[precision])
    average = WeightAverage(gpt)
    loss_of = Loss(gpt)
    tokens = torch.randint(model.vocab_size, (sequences, model.context_length))  # (b, T)

    def step() -> None:
        for _ in range(2):
            with autocast(tokens.device, PRECISIONS[precision]):
                loss, _ = loss_of(tokens, tokens)
            loss.backward()
        nn.utils.clip_grad_norm_(gpt.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        average.update(step=0)

    step()  # the first step makes what optimizers keep
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=cpu, profile_memory=True) as profile:
        step()
    allocated = peak = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            allocated += event.nbytes()
            peak = max(peak, allocated)
    return 16 * count_parameters(model) + peak  # parameters and averages were there before


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--emb-dim", type=int, default=128, help="width of the small model")
    parser.add_argument("--num-layers", type=int, default=2)
    given = parser.parse_args()
    print("| model | parameters | float32 | bfloat16 |")
    print("|---|---|---|---|")
    for name, model in MODELS.items():
        sizes = [memory(model, precision) for precision in PRECISIONS]
        cells = [name, f"{count_parameters(model) / 1e6:,.0f} M"]
        print("|", " | ".join(cells + [f"{size / 1e9:.1f}" for size in sizes]), "|")
    print("\nMB at the peak of a step         formula  measured  formula / measured")
    for architecture in ("qwen3", "gpt2"):
        for precision in PRECISIONS:
            for sequences, dropout in ((1, 0.0), (8, 0.1)):
                small = GPTConfig(
                    512, architecture, 64, given.emb_dim, given.num_layers, 2, dropout=dropout
                )  # fmt: skip
                formula = memory(small, precision, sequences)
                peak = measured(small, precision, sequences)
                print(
                    f"{architecture}, {precision}, batch 2 x {sequences:<5}"
                    f"{formula / 1e6:>9.2f}{peak / 1e6:>10.2f}{formula / peak:>10.3f}"
                )


if __name__ == "__main__":
    main()
