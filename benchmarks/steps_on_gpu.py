"""Milliseconds of a training step of narrow models on a GPU, beside what a plan expects of them.

python benchmarks/steps_on_gpu.py [--help]. First the card is measured as it is before a plan, then
steps of models that are planned for small texts, with the recipe's optimizers. The table goes to
benchmarks/results/steps_on_gpu.json too.
"""

import argparse
import json
import time

import torch
from training_on_gpu import RESULTS, measured

from minigpt.config import GPTConfig, TrainConfig
from minigpt.recipe import speed as measuring
from minigpt.training.precision import choose_precision

SHAPES = {  # layers and width, sequences of 256 tokens: what was measured on one H200
    (6, 192): (4, 16, 64),
    (8, 256): (4, 32, 256),
    (8, 384): (16, 128),
}
TINY = {(1, 64): (1,)}
MADE = RESULTS / "steps_on_gpu.json"


def main() -> None:
    """Print the table."""
    given = arguments()
    device = torch.device(given.device)
    precision = choose_precision("auto", device)
    if given.tiny:
        measuring.SHAPE_ON_GPU = GPTConfig(
            64, context_length=8, emb_dim=16, num_layers=1, num_heads=1
        )
        measuring._PRODUCT = 8

    begun = time.perf_counter()
    speed = measuring._of_gpu(device, getattr(torch, precision), time.perf_counter)
    took = time.perf_counter() - begun
    words = (
        f"{speed.flops / 1e12:,.0f} TFLOP/s, {1000 * speed.start:.2f} ms a block of width 128, "
        f"{1e12 * speed.transfer:.0f} ps for each component, busy with {speed.busy:,} tokens"
    )
    print(f"{words}; measured in {took:.1f} s\n{'':24}{'ms':>8}{'expected':>10}", flush=True)

    steps = []
    for (num_layers, emb_dim), sizes in (TINY if given.tiny else SHAPES).items():
        for batch_size in sizes:
            shape = GPTConfig(
                2048,
                context_length=256,
                emb_dim=emb_dim,
                num_layers=num_layers,
                num_heads=emb_dim // 64,
                dropout=0.1,
            )
            training = TrainConfig(
                steps=1,
                batch_size=batch_size,
                learning_rate=3e-4,
                precision=precision,
                compile="off",
                device=given.device,
            )
            seconds = min(measured(shape, training, device, given))
            expected = speed.seconds(shape, batch_size * shape.context_length)
            name = f"{num_layers} x {emb_dim}, {batch_size} x 256"
            steps.append({"name": name, "seconds": seconds, "expected": expected})
            print(f"{name:24}{1000 * seconds:8.2f}{1000 * expected:10.2f}", flush=True)
            keep({"speed": words, "took": took, "steps": steps})


def keep(found: dict[str, object]) -> None:
    """Write what was found so far."""
    RESULTS.mkdir(exist_ok=True)
    MADE.write_text(json.dumps(found, indent=2) + "\n")


def arguments() -> argparse.Namespace:
    """The device, and how long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=30, help="training steps in a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tiny", action="store_true", help="try the program")
    given = parser.parse_args()
    if given.tiny:
        given.steps = given.rounds = 1
    return given


if __name__ == "__main__":
    main()
