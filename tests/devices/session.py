"""What a person does with a GPU, done on the device `far`: trainings of every kind, and all that
writes, evaluates and exports with a model that lies there.

A process of its own runs it, in a folder with my.txt and chat.txt. It prints one line of JSON: the
operations that `far` was asked for, how the same training ended on `far` and on the CPU, and what
`far` said when it was asked for what a GPU refuses.
"""

import io
import json
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import minigpt
from minigpt.attention import fused
from minigpt.cli import main
from minigpt.config import GPTConfig, TrainConfig
from minigpt.data.batches import WindowBatches
from minigpt.devices.check import why_wrong
from minigpt.recipe import run, speed
from minigpt.recipe import texts_while_learning as samples
from minigpt.runs.folder import METRICS, read_metrics
from minigpt.runs.read_model import load_run
from minigpt.training.captured import CapturedStep
from minigpt.training.checkpoint import Learner, TrainingState
from minigpt.training.optimizer import chosen_optimizers
from minigpt.training.reports import Picture
from minigpt.training.step import GradientDescent

from . import far
from .waiting import noting_waits

SHAPE = "--num-layers 1 --emb-dim 16 --num-heads 2 --context-length 16 --batch-size 4 --init none"
SHORT = "--steps 2 --num-evals 1 --eval-tokens 32 --vocab-size 300 --precision float32"


def command(line: str) -> None:
    """A command as it is typed, which must succeed."""
    assert main(line.split()) == 0, line


def the_commands() -> None:
    """Plan for the device, which is measured, train, go on, and use the run."""
    command("train my.txt --plan --minutes 99999 --device far")
    command(f"train my.txt --out runs/far {SHAPE} {SHORT} --device far")
    command("train --resume --out runs/far --steps 3 --device far")
    command("evaluate runs/far my.txt --stride 8 --batch-size 4 --device far")
    command("generate the --run runs/far --max-new-tokens 20 --samples 2 --device far")
    command("generate the --run runs/far --max-new-tokens 3 --precision bfloat16 --device far")

    sys.stdin = io.TextIOWrapper(io.BytesIO(b"the\n/again\n"))
    command("generate --interactive --run runs/far --max-new-tokens 3 --device far")
    command("export runs/far --out exported")
    command("generate the --run exported --max-new-tokens 3 --device far")


def other_trainings() -> None:
    """What a usual training does not do: other parts, dropout, a batch in parts, weights of an
    earlier run, turns of one speaker. They have attention as on MPS, without a fused kernel."""
    fused._EXPLICIT_ON = ("far",)
    parts = "--architecture gpt2 --optimizer adamw --dropout 0.1 --attention-dropout 0.1 "
    parts += "--embedding-init random"
    command(f"train my.txt --out runs/gpt2 {SHAPE} {SHORT} {parts} --device far")
    tuning = "--init runs/far --interpolate --micro-batch-size 2 --batch-size 4 --eval-tokens 32"
    command(f"train my.txt --out runs/tuned {tuning} --steps 1 --precision float32 --device far")
    chat = f"{SHAPE} {SHORT} --eval-tokens 512 --only Otto"
    command(f"train chat.txt --out runs/chat {chat} --device far")


class Bigrams(nn.Module):
    """A network of somebody's own: each token's logits for the next one."""

    def __init__(self, vocab_size: int):
        super().__init__()
        self.table = nn.Embedding(vocab_size, vocab_size)

    def forward(self, token_ids: Tensor) -> Tensor:
        return self.table(token_ids)


def own_parts() -> None:
    """A network, a loss and an optimizer of somebody's own."""
    dataset = minigpt.prepare("my.txt", vocab_size=300)

    def squared(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
        return nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten()) ** 2

    network = Bigrams(dataset.tokenizer.vocab_size)
    config = TrainConfig(steps=2, num_evals=1, batch_size=4, device="far")
    trainer = minigpt.Trainer(
        network,
        dataset,
        config,
        out="runs/own",
        loss=squared,
        optimizers=lambda model: [torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)],
    )
    trainer.train()
    again = Bigrams(dataset.tokenizer.vocab_size)
    minigpt.load("runs/own", "far", model=again).generate("the", max_new_tokens=3)


def waits() -> dict[str, list[str]]:
    """What a step on `far` waits for: it takes windows from the tokens there, computes, and changes
    the weights and their average. And what waits when its figures are fetched, and where a loss
    looks at a number."""
    dataset = minigpt.prepare("my.txt", vocab_size=300)
    config = TrainConfig(batch_size=4, micro_batch_size=3, precision="float32", device="far")
    sizes = {"context_length": 16, "emb_dim": 16, "num_layers": 1, "num_heads": 2}
    found: dict[str, list[str]] = {}

    def looking(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
        logits = model(inputs).flatten(0, 1)
        is_first = targets.flatten() == targets[0, 0]
        return nn.functional.cross_entropy(logits[is_first], targets.flatten()[is_first])

    device = torch.device("far")
    windows = WindowBatches(dataset, batch_size=4, context_length=16, seed=0, device=device)
    for name, loss in {"usual": None, "looking": looking}.items():
        model = minigpt.GPT(minigpt.GPTConfig(300, dropout=0.1, **sizes)).to("far")
        learner = Learner.of(model, chosen_optimizers(None, model, config), config)
        descent = GradientDescent(
            learner,
            windows,
            config,
            loss=loss,
            byte_lengths=torch.tensor(dataset.tokenizer.byte_lengths()),
        )
        with descent.under_way():
            step = CapturedStep(descent.update, descent._plain_loss, learner.optimizers)
            descent._captured = step
            with noting_waits() as found[name]:
                started = descent.step(TrainingState(), done=0.0)
    with noting_waits() as found["fetched"]:
        started.result()
    return found


def checks() -> list[str | None]:
    """What a program finds out of `far` before it takes it: as it is, and with a wrong kernel."""
    right = why_wrong(torch.device("far"))
    far.spoiled.add("aten._softmax.default")
    far.spoiled.add("aten._safe_softmax.default")
    why_wrong.cache_clear()
    wrong = why_wrong(torch.device("far"))
    far.spoiled.clear()
    return [right, wrong]


def refusals() -> dict[str, str]:
    """What is said of each error that a program for several devices may have."""
    errors: dict[str, Callable[[], Any]] = {
        "mixed": lambda: torch.ones(2, device="far") + torch.ones(2),
        "an index on far": lambda: torch.ones(2)[torch.tensor([0, 1]).to("far")],
        "float64": lambda: torch.ones(2, device="far").double(),
        "a double of numpy": lambda: torch.ones(2, dtype=torch.float64).to("far"),
        "a generator": lambda: torch.rand(2, device="far", generator=torch.Generator()),
        "numpy": lambda: torch.ones(2, device="far").numpy(),
        "none": lambda: torch.ones(2, device="far") * torch.tensor(2.0),
    }
    said = dict[str, str]()
    for name, error in errors.items():
        try:
            error()
            said[name] = ""
        except (RuntimeError, TypeError) as refused:
            said[name] = str(refused)
    return said


def last_loss(folder: str) -> float:
    return float(read_metrics(Path(folder) / METRICS)[-1]["val_loss"])


def measured_speed() -> float:
    """Operations a second."""
    return speed.measure_speed(torch.device("far"), torch.float32).flops


def save_time() -> None:
    """Leave out what takes time and has nothing to do with a device, write short samples, and
    measure a small model."""
    samples._TOKENS = 4
    run.say_copied = lambda *_: None
    speed.SHAPE_ON_GPU = GPTConfig(64, context_length=8, emb_dim=16, num_layers=1, num_heads=1)
    speed._ENOUGH = 1e-3
    speed._PRODUCT = 8
    Picture.on_evaluation = lambda *_: None  # type: ignore[method-assign]


def session() -> dict[str, Any]:
    save_time()
    with far.Far():
        the_commands()
        other_trainings()
        own_parts()
        flops = measured_speed()
        seen = sorted(far.seen)
        waited = waits()
        checked = checks()
        refused = refusals()
    command(f"train my.txt --out runs/cpu {SHAPE} {SHORT} --device cpu")
    command("train --resume --out runs/cpu --steps 3 --device cpu")

    ids = torch.arange(12)[None]
    with torch.no_grad():
        on_far, on_cpu = (load_run(Path("runs") / name, None).model(ids) for name in ("far", "cpu"))
    return {
        "seen": seen,
        "refused": refused,
        "checked": checked,
        "flops": flops,
        "waited": waited,
        "losses": {name: last_loss(f"runs/{name}") for name in ("far", "cpu")},
        "difference": float((on_far - on_cpu).abs().max()),
    }


if __name__ == "__main__":
    far.set_up()
    with redirect_stdout(sys.stderr):
        found = session()
    print(json.dumps(found))
