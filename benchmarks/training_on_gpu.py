"""Training speed on a GPU: tokens/s, TFLOP/s, and their share of what the GPU reaches at most.

python benchmarks/training_on_gpu.py [--help]. A step is that of the trainer: it draws a batch of
random tokens, computes gradients in parts that fit, and updates the weights and their average. The
share is the model FLOPs utilisation: the operations that the model needs, by those of a large
matrix product in bfloat16, measured on the same GPU. The variants are timed one after the other,
for several rounds. The table shows medians, with the slowest and fastest round, and goes to
benchmarks/results/training_on_gpu-SIZE.json too.
"""

import argparse
import gc
import json
import statistics
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import torch

from minigpt import UserError
from minigpt.config import GPTConfig, TrainConfig, count_parameters
from minigpt.data.batches import Dataset, make_batches
from minigpt.devices.memory import is_out_of_memory
from minigpt.model import GPT, flops_per_token
from minigpt.training.checkpoint import Learner, TrainingState
from minigpt.training.optimizer import chosen_optimizers
from minigpt.training.precision import Precision
from minigpt.training.step import GradientDescent

RESULTS = Path(__file__).parent / "results"
SHAPES: dict[str, dict[str, Any]] = {
    "124M": {
        "vocab_size": 50304, "context_length": 1024, "emb_dim": 768, "num_layers": 12,
        "num_heads": 12,
    },
    "7.5M": {
        "vocab_size": 4096, "context_length": 256, "emb_dim": 256, "num_layers": 8, "num_heads": 4,
    },
    "tiny": {
        "vocab_size": 300, "context_length": 16, "emb_dim": 16, "num_layers": 1, "num_heads": 2,
    },
}  # fmt: skip
BATCHES = {"124M": (32, 8), "7.5M": (256, 256), "tiny": (4, 2)}  # and at once in float32
VARIANTS: dict[str, tuple[Precision, Literal["on", "off"]]] = {  # name: (precision, compile)
    "bfloat16": ("bfloat16", "off"),
    "bfloat16, compiled": ("bfloat16", "on"),
    "float32": ("float32", "off"),
}
WARM_UP = 6  # steps: the first ones load libraries, then one may be recorded as a graph


def main() -> None:
    """Print the table."""
    given = arguments()
    device = torch.device(given.device)
    shape = GPTConfig(architecture=given.architecture, **SHAPES[given.size])
    batch_size, at_once = BATCHES[given.size]
    peak = matmul_tflops(device, size=given.matmul)
    print(
        f"{name_of(device)}, torch {torch.__version__}: {peak:,.1f} TFLOP/s in a matrix product of "
        f"bfloat16\n{shape.architecture}, {count_parameters(shape) / 1e6:.1f} M parameters, "
        f"context {shape.context_length:,}, batch {batch_size}, vocabulary {shape.vocab_size:,}: "
        f"{flops_per_token(shape) / 1e6:,.1f} MFLOP a token; {given.optimizer}"
    )
    print(f"{'':20}{'tokens/s':>12}{'(min - max)':>26}{'TFLOP/s':>10}{'share':>8}{'GB':>7}")

    rows = []
    for name in given.variants:
        precision, compile = VARIANTS[name]
        training = TrainConfig(
            steps=1,
            batch_size=batch_size,
            micro_batch_size=at_once if precision == "float32" else None,
            optimizer=given.optimizer,
            learning_rate=3e-4,
            precision=precision,
            compile=compile,
            device=given.device,
        )
        try:
            seconds = measured(shape, training, device, given)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            print(f"{name:20}out of memory", flush=True)
            continue
        except UserError as problem:  # it cannot be compiled here
            print(f"{name:20}{problem}", flush=True)
            continue

        row = row_of(name, shape, training, seconds, peak, device)
        rows.append(row)
        span = f"({row['slowest']:,.0f} - {row['fastest']:,.0f})"
        print(
            f"{name:20}{row['tokens_per_second']:>12,.0f}{span:>26}{row['tflops']:>10.1f}"
            f"{row['share_of_peak']:>8.1%}{row['gigabytes']:>7.1f}",
            flush=True,
        )

        RESULTS.mkdir(exist_ok=True)
        made = RESULTS / f"training_on_gpu-{given.size}.json"
        made.write_text(json.dumps(rows, indent=2) + "\n")


def arguments() -> argparse.Namespace:
    """The model to time, and how long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--size", default="124M", choices=tuple(SHAPES))
    parser.add_argument("--architecture", default="gpt2", choices=("gpt2", "qwen3"))
    parser.add_argument("--optimizer", default="adamw", choices=("adamw", "muon"))
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=tuple(VARIANTS))
    parser.add_argument("--steps", type=int, default=10, help="training steps in a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--matmul", type=int, default=8192, help="rows of the matrix product")
    return parser.parse_args()


def measured(
    shape: GPTConfig, training: TrainConfig, device: torch.device, given: argparse.Namespace
) -> list[float]:
    """Seconds of a step in each round. The first steps, which are not timed, warm up."""
    torch.manual_seed(0)
    if device.type == "cuda":
        gc.collect()  # a compiled loss and what it holds refer to each other
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    model = GPT(shape).to(device)
    tokens = 20 * shape.context_length * training.batch_size
    dataset = random_dataset(shape.vocab_size, tokens)
    descent = GradientDescent(
        Learner.of(model, chosen_optimizers(None, model, training), training),
        make_batches(dataset, training, shape.context_length),
        training,
        loss=None,
        byte_lengths=torch.ones(shape.vocab_size, dtype=torch.int64),
    )
    state = TrainingState()
    with descent.under_way():
        seconds_of_step(descent, state, device, count=WARM_UP)
        return [seconds_of_step(descent, state, device, given.steps) for _ in range(given.rounds)]


def random_dataset(vocab_size: int, tokens: int) -> Dataset:
    """Tokens from which nothing can be learned; of their tokenizer only the size is known."""
    draw = np.random.default_rng(0)
    ids = draw.integers(vocab_size, size=tokens, dtype=np.uint16)
    tokenizer: Any = SimpleNamespace(vocab_size=vocab_size)
    return Dataset(tokenizer, train=ids, validation=ids)


def seconds_of_step(
    descent: GradientDescent, state: TrainingState, device: torch.device, count: int
) -> float:
    """Seconds a step, from an idle GPU to an idle GPU."""
    wait_for(device)
    start = time.perf_counter()
    for _ in range(count):
        descent.step(state, done=0.5, is_unchanged=True)
    wait_for(device)
    return (time.perf_counter() - start) / count


def matmul_tflops(device: torch.device, size: int) -> float:
    """The highest speed of a square matrix product in bfloat16, in 10¹² operations a second."""
    a, b = torch.randn(2, size, size, device=device).bfloat16()
    fastest = 0.0
    for _ in range(5):
        wait_for(device)
        start = time.perf_counter()
        for _ in range(10):
            a @ b
        wait_for(device)
        fastest = max(fastest, 10 * 2 * size**3 / (time.perf_counter() - start) / 1e12)
    return fastest


def wait_for(device: torch.device) -> None:
    """Until a GPU has computed all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def name_of(device: torch.device) -> str:
    """What the device calls itself."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def row_of(
    name: str,
    shape: GPTConfig,
    training: TrainConfig,
    seconds: list[float],
    peak: float,
    device: torch.device,
) -> dict[str, Any]:
    """One line of the table."""
    tokens = training.batch_size * shape.context_length
    speed = tokens / statistics.median(seconds)
    tflops = speed * flops_per_token(shape) / 1e12
    peak_bytes = torch.cuda.max_memory_allocated() if device.type == "cuda" else 0
    return {
        "variant": name,
        "device": name_of(device),
        "tokens_per_second": speed,
        "slowest": tokens / max(seconds),
        "fastest": tokens / min(seconds),
        "tflops": tflops,
        "peak_tflops": peak,
        "share_of_peak": tflops / peak,
        "gigabytes": peak_bytes / 1e9,
    }


if __name__ == "__main__":
    main()
