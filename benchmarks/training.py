"""Training speed: tokens/s, GFLOP/s, and their share of what this machine reaches at most.

python benchmarks/training.py [--help]. The variants are timed in turn, for several rounds. The
table shows medians, with the slowest and fastest round, and goes to
benchmarks/results/training.json too. With --busy N other programs use N cores meanwhile.
"""

import argparse
import json
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from minigpt.config import PRESETS, GPTConfig, TrainConfig, count_parameters
from minigpt.model import GPT, flops_per_token
from minigpt.training import workers
from minigpt.training.compilation import compile_loss
from minigpt.training.loss import Loss
from minigpt.training.optimizer import make_optimizers
from minigpt.training.precision import autocast, matmul_seconds
from minigpt.training.weights import WeightAverage

RESULTS = Path(__file__).parent / "results"
CORES = torch.get_num_threads()
VARIANTS = {  # name: (precision, compiled, workers)
    "float32": (torch.float32, False, CORES),
    "float32, torch": (torch.float32, False, 1),
    "bfloat16": (torch.bfloat16, False, CORES),
    "bfloat16, compiled": (torch.bfloat16, True, 1),
}


def main() -> None:
    """Print the table."""
    given = arguments()
    config = GPTConfig(
        vocab_size=given.vocab_size,
        architecture=given.architecture,
        context_length=given.context_length,
        emb_dim=given.emb_dim,
        num_layers=given.num_layers,
        num_heads=given.num_heads,
        dropout=given.dropout,
    )
    batch = given.batch_size
    steps = {name: training_step(config, batch, *v[:2]) for name, v in VARIANTS.items()}
    loop = ["sh", "-c", "while :; do :; done"]
    others = [subprocess.Popen(["taskset", "-c", str(i), *loop]) for i in range(given.busy)]
    peaks: dict[torch.dtype, list[float]] = {torch.float32: [], torch.bfloat16: []}
    seconds: dict[str, list[float]] = {name: [] for name in VARIANTS}
    for _ in range(given.rounds):
        for dtype, peak in peaks.items():
            peak.append(matmul_gflops(dtype))
        for name, step in steps.items():
            with workers.team(VARIANTS[name][2]):
                seconds[name].append(timed(step, given.steps))
    for other in others:
        other.kill()
    print(
        f"{config.architecture}, {config.num_layers} layers, width {config.emb_dim}, "
        f"{config.num_heads} heads, context {config.context_length}, batch {given.batch_size}, "
        f"vocabulary {config.vocab_size}: {count_parameters(config) / 1e6:.2f} M parameters, "
        f"{flops_per_token(config) / 1e6:.2f} MFLOP a token; {torch.get_num_threads()} threads"
    )
    rows = [
        row(name, config, given.batch_size, seconds[name], statistics.median(peaks[v[0]]))
        for name, v in VARIANTS.items()
    ]
    print(f"{'':20}{'tokens/s':>10}{'(min - max)':>20}{'GFLOP/s':>9}{'peak':>8}{'share':>7}")
    for r in rows:
        span = f"({r['slowest']:,.0f} - {r['fastest']:,.0f})"
        print(
            f"{r['variant']:20}{r['tokens_per_second']:>10,.0f}{span:>20}"
            f"{r['gflops']:>9.0f}{r['peak_gflops']:>8.0f}{r['share_of_peak']:>7.0%}"
        )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "training.json").write_text(json.dumps(rows, indent=2) + "\n")


def arguments() -> argparse.Namespace:
    """The model to time, and how long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--architecture", default="qwen3", choices=tuple(PRESETS))
    parser.add_argument("--num-layers", type=int, default=4)
    parser.add_argument("--emb-dim", type=int, default=128)
    parser.add_argument("--num-heads", type=int, default=4)
    parser.add_argument("--context-length", type=int, default=256)
    parser.add_argument("--vocab-size", type=int, default=1024)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--steps", type=int, default=10, help="training steps in a round")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--busy", type=int, default=0, help="cores that other programs use")
    return parser.parse_args()


def training_step(
    config: GPTConfig, batch_size: int, precision: torch.dtype, compile: bool
) -> Callable[[], None]:
    """A step on one random batch: forward, backward, clip, update. It is already warmed up."""
    torch.manual_seed(0)
    model = GPT(config)
    training = TrainConfig()
    optimizers = make_optimizers(model, training)
    average = WeightAverage(model)
    shape = (batch_size, config.context_length)
    inputs, targets = (torch.randint(config.vocab_size, shape) for _ in range(2))
    loss_of = Loss(model)
    if compile:

        def try_out() -> None:
            loss, _ = loss_of(inputs, targets)
            loss.backward()

        with autocast(torch.device("cpu"), precision):
            compile_loss(loss_of, try_out)

    def part_loss(part: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor]:
        with autocast(torch.device("cpu"), precision):
            loss, _ = loss_of(*part)
            return (loss * (len(part[0]) / batch_size),)

    def step() -> None:
        each = -(-batch_size // workers.count())
        parts = list(zip(inputs.split(each), targets.split(each), strict=True))
        workers.backward(part_loss, list(model.parameters()), parts)
        nn.utils.clip_grad_norm_(model.parameters(), training.grad_clip)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        average.update(step=0)

    timed(step, 3)
    return step


def matmul_gflops(dtype: torch.dtype) -> float:
    """Measured speed of a large square matrix product, in 10⁹ operations a second."""
    size = 2048
    return 2 * size**3 / matmul_seconds(dtype, size, repeat=6) / 1e9


def timed(step: Callable[[], None], count: int) -> float:
    """Seconds a step."""
    start = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - start) / count


def row(
    name: str, config: GPTConfig, batch_size: int, seconds: list[float], peak: float
) -> dict[str, str | float]:
    """One line of the table."""
    tokens = batch_size * config.context_length
    speed = tokens / statistics.median(seconds)
    gflops = speed * flops_per_token(config) / 1e9
    return {
        "variant": name,
        "tokens_per_second": speed,
        "slowest": tokens / max(seconds),
        "fastest": tokens / min(seconds),
        "gflops": gflops,
        "peak_gflops": peak,
        "share_of_peak": gflops / peak,
    }


if __name__ == "__main__":
    main()
