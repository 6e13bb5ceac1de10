"""What several processes send each other in a training step, and how fast they are together.

torchrun --nproc-per-node 2 benchmarks/distributed.py [--help], all on one machine. What is sent is
what Linux counts at the network interfaces (loopback is one), so nothing else should use the
network meanwhile. `python benchmarks/distributed.py` gives the speed of one process. The table goes
to benchmarks/results/distributed-N.json too, where N is the number of processes.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from minigpt.config import GPTConfig, TrainConfig, count_parameters
from minigpt.model import GPT
from minigpt.training import distributed
from minigpt.training.loss import Loss
from minigpt.training.optimizer import make_optimizers
from minigpt.training.weights import WeightAverage

RESULTS = Path(__file__).parent / "results"
KINDS: dict[str, dict[str, Any]] = {
    "DDP, AdamW": {"optimizer": "adamw"},
    "DDP, Muon": {"optimizer": "muon"},
}


def main() -> None:
    """Print the table."""
    given = arguments()
    model = GPTConfig(
        vocab_size=given.vocab_size,
        context_length=given.context_length,
        emb_dim=given.emb_dim,
        num_layers=given.num_layers,
        num_heads=given.num_heads,
    )
    with distributed.process_group():
        size, parameters = distributed.world_size(), count_parameters(model)
        print(
            f"{parameters / 1e6:.2f} M parameters, {size} processes of "
            f"{torch.get_num_threads()} threads; sent by each process in a step:"
        )
        print(f"{'':16}{'MB':>10}{'bytes a parameter':>20}{'tokens/s':>10}")
        rows = []
        for name, settings in KINDS.items():
            training = TrainConfig(batch_size=given.batch_size, **settings)
            sent, seconds = measured(training_step(model, training), given)
            row: dict[str, Any] = {
                "kind": name,
                "bytes_sent": sent / size,
                "bytes_per_parameter": sent / size / parameters,
                "tokens_per_second": training.batch_size * model.context_length / seconds,
            }
            rows.append(row)
            print(
                f"{name:16}{row['bytes_sent'] / 1e6:>10.2f}{row['bytes_per_parameter']:>20.2f}"
                f"{row['tokens_per_second']:>10,.0f}",
                flush=True,
            )
        if distributed.is_main():
            RESULTS.mkdir(exist_ok=True)
            file = RESULTS / f"distributed-{size}.json"
            file.write_text(json.dumps(rows, indent=2) + "\n")


def arguments() -> argparse.Namespace:
    """The model to train, and how long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-layers", type=int, default=4)
    parser.add_argument("--emb-dim", type=int, default=256)
    parser.add_argument("--num-heads", type=int, default=4)
    parser.add_argument("--context-length", type=int, default=128)
    parser.add_argument("--vocab-size", type=int, default=2048)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--steps", type=int, default=5)
    return parser.parse_args()


def training_step(model: GPTConfig, training: TrainConfig) -> Callable[[], None]:
    """A step of training on random tokens, warmed up."""
    torch.manual_seed(0)
    device = distributed.device_of_rank("auto")
    gpt = GPT(model).to(device)
    loss = distributed.synchronised(Loss(gpt))
    optimizers = make_optimizers(gpt, training)
    average = WeightAverage(gpt)
    rows = training.batch_size // distributed.world_size()
    tokens = torch.randint(model.vocab_size, (rows, model.context_length), device=device)  # (b, T)

    def step() -> None:
        loss(tokens, tokens)[0].backward()
        nn.utils.clip_grad_norm_(gpt.parameters(), training.grad_clip)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        average.update(step=0)

    for _ in range(2):  # the first ones connect, and make room
        step()
    return step


def measured(step: Callable[[], None], given: argparse.Namespace) -> tuple[float, float]:
    """Bytes that this machine sends, and seconds, in a step."""
    distributed.gather(None)  # all wait for one another
    start, before = time.monotonic(), interfaces_sent()
    for _ in range(given.steps):
        step()
    distributed.gather(None)
    seconds, sent = time.monotonic() - start, interfaces_sent() - before
    return sent / given.steps, seconds / given.steps


def interfaces_sent() -> int:
    """Bytes sent so far through all network interfaces, loopback among them."""
    lines = Path("/proc/net/dev").read_text(encoding="utf-8").splitlines()[2:]
    return sum(int(line.split(":")[1].split()[8]) for line in lines)


if __name__ == "__main__":
    main()
