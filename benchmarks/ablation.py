"""What each part of the recipe gains: the loss without it, after the same number of steps.

python benchmarks/ablation.py --shakespeare FILE [--help]. It trains on the tales of this
repository, on Shakespeare's plays, on Python sources of this machine, and on 100 KB of the tales.
The full recipe is what is planned for a minute (100 KB: half a minute) on a machine of a fixed
speed. Then one part after the other is left out: a setting has another value, or something simple
takes the place of a function. The number of steps stays, so that a busy machine changes no loss.

Each result goes at once to a line of the file --out; the same command continues a measurement that
was interrupted. At the end the table of docs/decisions.md is printed. --speed measures what a step
and the start of a training cost without each part, in pairs; for that the machine must be idle.
"""

import argparse
import contextlib
import io
import json
import math
import statistics
import sysconfig
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import minigpt
from minigpt.config import EARLY_UNTIL, PLANNED, Settings, TextConfig, TrainConfig
from minigpt.data import batches
from minigpt.data.batches import WindowBatches
from minigpt.data.source import find_source
from minigpt.model import GPT
from minigpt.recipe import beginning, induction
from minigpt.recipe.machine import Machine, Speed
from minigpt.recipe.plan import Planned, plan
from minigpt.recipe.text_stats import TextStats, measure_text
from minigpt.training import trainer
from minigpt.training.checkpoint import Learner, TrainingState
from minigpt.training.evaluation import Candidate, Validation
from minigpt.training.precision import choose_precision
from minigpt.training.step import GradientDescent, StartedStep
from minigpt.training.weights import WeightAverage

TALES = Path(__file__).parent.parent / "data/tales.txt"
RESULTS = Path(__file__).parent / "results"
MACHINE = Machine(
    Speed(flops=9e10, start=0.0095, num_workers=2), num_workers=2
)  # two cores of a usual one
SOURCES = 20_000_000  # characters of Python sources
PROSE = 100_000  # characters of a small text
EVAL_TOKENS = 65_536
STD = 0.02  # of random weights, as in GPT-2
PAYS = 0.3  # % of the loss: a part that gains less on every text does not pay
TIMED_STEPS = 20

Row = dict[str, Any]  # a result, as a line of JSON


# The texts


@dataclass(frozen=True)
class Text:
    """A text, and how it is trained on."""

    name: str
    file: Path
    minutes: float
    split: Literal["documents", "end"] = "documents"
    num_evals: int = 2

    @cached_property
    def planned(self) -> Planned:
        """The full recipe."""
        config = TextConfig(files=(str(self.file),), split=self.split)
        stats = measure_text(find_source(config), config, config.tokenizer, can_copy=True)
        return planned_for(stats, self.minutes)


def planned_for(stats: TextStats, minutes: float) -> Planned:
    """The plan of a training of so many minutes."""
    return plan(stats, MACHINE, Settings.given({"minutes": minutes}))


def all_texts(shakespeare: Path, folder: Path) -> list[Text]:
    """The texts, those that are made for this being written into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    python = folder / "python.txt"
    prose = folder / "prose.txt"
    if not python.exists():
        python.write_text(python_sources(), encoding="utf-8")

    tales = TALES.read_text(encoding="utf-8")
    end_of_paragraph = tales.rfind("\n\n", 0, PROSE)
    prose.write_text(tales[:end_of_paragraph] + "\n", encoding="utf-8")
    return [
        Text("tales", TALES, minutes=1.0),
        Text("shakespeare", shakespeare, minutes=1.0, split="end"),
        Text("python", python, minutes=1.0),
        Text("prose", prose, minutes=0.5, num_evals=4),
        Text("prose, longer", prose, minutes=2.0, num_evals=4),
    ]


def python_sources() -> str:
    """Python sources: the standard library, then the packages that are installed."""
    library, packages = (Path(sysconfig.get_path(name)) for name in ("stdlib", "platlib"))
    files = [file for file in sorted(library.rglob("*.py")) if "site-packages" not in file.parts]
    files += sorted(packages.rglob("*.py"))

    read: list[str] = []
    size = 0
    for file in files:
        read.append(file.read_text(encoding="utf-8", errors="ignore").replace("\0", ""))
        size += len(read[-1])
        if size >= SOURCES:
            break
    return "".join(read)[:SOURCES]


# The parts


Change = Callable[[Planned], dict[str, Any]]  # settings that differ from the plan's
Function = Callable[..., Any]
Replacement = tuple[object, Function, Function]  # where a function is known, it, and another one


def no_change(planned: Planned) -> dict[str, Any]:
    """The settings of the plan."""
    return {}


@dataclass(frozen=True)
class Part:
    """A part of the recipe, and how to train without it.

    Where `matters` says no, or the changed settings are the planned ones, a plan does without it.
    """

    name: str
    instead: str  # what takes its place
    lines: int  # of code that would go, counted by hand without comments and blank lines
    change: Change = no_change
    replacements: tuple[Replacement, ...] = ()
    matters: Callable[[Planned], bool] = lambda planned: True

    def differs(self, planned: Planned) -> bool:
        """Whether training without it differs from the full recipe."""
        usual = settings_of(planned)
        changed = any(usual.get(name) != value for name, value in self.change(planned).items())
        return self.matters(planned) and (changed or len(self.replacements) > 0)


def settings_of(planned: Planned) -> dict[str, Any]:
    """What `minigpt.train` is given, so that it trains as planned."""
    names = {*PLANNED, "max_characters"} - {"max_epochs", "num_evals"}
    return {name: planned.settings[name] for name in sorted(names)} | {"steps": planned.steps}


def shorter_context(planned: Planned) -> dict[str, Any]:
    """What is planned for a text that does not repeat itself far away."""
    if not planned.text.repeats_afar:
        return {}
    stats = replace(planned.text, repeats_afar=False)
    other = settings_of(planned_for(stats, minutes=1.0))
    return {**other, "max_characters": planned.settings["max_characters"]}


def random_vectors(tokens: Any, vocab_size: int, emb_dim: int, seed: int) -> Tensor:
    """In the place of `embedding_init`: ``(V, d)``."""
    generator = torch.Generator().manual_seed(seed)
    return STD * torch.randn(vocab_size, emb_dim, generator=generator)


def random_head(tokens: Any, inputs: Tensor) -> Tensor:
    """In the place of `head_init`: ``(V, d)``."""
    generator = torch.Generator().manual_seed(1)
    return STD * torch.randn(inputs.shape, generator=generator)


def none_reserved(*config: Any) -> int:
    """In the place of `induction.reserved_components`: the circuit fits into no model."""
    return 0


initialise_as_usual = GPT._initialise
groups_as_usual = GPT.parameter_groups


def initialise_projections(gpt: GPT) -> None:
    """In the place of `GPT._initialise`: output projections begin as in GPT-2."""
    initialise_as_usual(gpt)
    for name, parameter in gpt.named_parameters():
        if name.endswith("out_proj.weight"):
            nn.init.normal_(parameter, std=STD / math.sqrt(2 * gpt.config.num_layers))


def tables_keep_their_size(gpt: GPT, weight_decay: float) -> list[dict[str, Any]]:
    """In the place of `GPT.parameter_groups`: embedding and head do not decay."""
    matrices, tables, others = groups_as_usual(gpt, weight_decay)
    return [matrices, {**tables, "weight_decay": 0.0}, others]


def windows_anywhere(drawn: WindowBatches, epoch: int) -> NDArray[np.int64]:
    """In the place of `_draw_epoch`: windows overlap, and some places are left out."""
    draw = batches._random(drawn._seed, epoch)
    return draw.integers(drawn._places, size=drawn._in_epoch)


def no_average(average: WeightAverage) -> contextlib.AbstractContextManager[None]:
    """In the place of `WeightAverage.in_place`: the weights stay as they are."""
    return contextlib.nullcontext()


def always_the_average(learner: Learner, validation: Validation, state: TrainingState) -> Candidate:
    """In the place of `best_candidate`: the last weights are not tried."""
    with learner.average.in_place(learner.model):
        return Candidate(learner.average, validation.evaluate(state.eval_tokens))


FULL = Part("full recipe", "", 0)

PARTS = (
    Part("Muon", "AdamW", 63, lambda planned: {"optimizer": "adamw"}),
    Part(
        "Muon (half the rate)",
        "AdamW with half the learning rate",
        63,
        lambda planned: {
            "optimizer": "adamw",
            "learning_rate": planned.settings["learning_rate"] / 2,
        },
    ),
    Part(
        "average of weights",
        "the last weights",
        31,
        replacements=((WeightAverage, WeightAverage.in_place, no_average),),
    ),
    Part(
        "last weights where better",
        "always the average",
        2,
        replacements=((trainer, trainer.best_candidate, always_the_average),),
    ),
    Part(
        "embedding from the text",
        "random vectors",
        39,
        replacements=((beginning, beginning.embedding_init, random_vectors),),
    ),
    Part(
        "fitted head",
        "random head",
        52,
        replacements=((beginning, beginning.head_init, random_head),),
        matters=lambda planned: not planned.model.tie_embeddings,
    ),
    Part(
        "induction circuit",
        "random attention",
        73,
        replacements=((induction, induction.reserved_components, none_reserved),),
    ),
    Part(
        "all three at once",
        "all weights are random",
        184,
        lambda planned: {"embedding_init": "random"},
    ),
    Part("split tokens", "tokens as they are", 43, lambda planned: {"token_split_prob": 0.0}),
    Part(
        "short context first",
        "the whole context",
        17,
        lambda planned: {"warmup_context": planned.model.context_length},
    ),
    Part(
        "long context where a text repeats itself",
        "the usual context, width and batch, for the same time",
        24,
        shorter_context,
    ),
    Part(
        "one table or two",
        "the other one",
        3,
        lambda planned: {"tie_embeddings": not planned.model.tie_embeddings},
    ),
    Part("dropout by epochs", "none", 4, lambda planned: {"dropout": 0.0}),
    Part("weight decay by epochs", "0.1", 3, lambda planned: {"weight_decay": 0.1}),
    Part(
        "decay of embedding and head",
        "none",
        1,
        replacements=((GPT, GPT.parameter_groups, tables_keep_their_size),),
    ),
    Part(
        "output projections from zero",
        "small random numbers",
        1,
        replacements=((GPT, GPT._initialise, initialise_projections),),
    ),
    Part(
        "every window once an epoch",
        "windows anywhere",
        6,
        replacements=((WindowBatches, WindowBatches._draw_epoch, windows_anywhere),),
    ),
    Part(
        "learning rate by width",
        "that of width 128",
        2,
        lambda planned: {"learning_rate": TrainConfig.learning_rate},
    ),
    Part("warmup", "none", 3, lambda planned: {"warmup_ratio": 0.0}),
    Part("last rate above zero", "zero", 2, lambda planned: {"min_lr_ratio": 0.0}),
    Part("clipped gradients", "as they are", 2, lambda planned: {"grad_clip": 1e5}),
)


# Losses


def train_without(part: Part, text: Text, **settings: Any) -> list[Row]:
    """Train without a part; returns the rows of metrics.jsonl."""
    usual = {
        "init": "none",
        "split": text.split,
        "num_evals": text.num_evals,
        "eval_tokens": EVAL_TOKENS,
        "device": "cpu",
    }
    settings = usual | settings_of(text.planned) | part.change(text.planned) | settings
    with contextlib.ExitStack() as stack:
        for place, usual_one, other in part.replacements:
            stack.enter_context(patch.object(place, usual_one.__name__, other))
        silence = io.StringIO()
        stack.enter_context(contextlib.redirect_stdout(silence))
        stack.enter_context(contextlib.redirect_stderr(silence))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()), "run")

        minigpt.train(text.file, out=folder, **settings)
        lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def measure_losses(texts: Sequence[Text], given: argparse.Namespace, precision: str) -> None:
    """Train with every seed without every part on every text, and note each result at once."""
    known = {(row["text"], row["part"], row["seed"]) for row in losses(read_rows(given.out))}
    for seed in given.seeds:
        for part in (FULL, *PARTS):
            for text in texts:
                is_new = (text.name, part.name, seed) not in known
                if is_new and (part is FULL or part.differs(text.planned)):
                    row = loss_without(part, text, seed, precision)
                    note(row, given.out)


def loss_without(part: Part, text: Text, seed: int, precision: str) -> Row:
    """The lowest loss of a training without a part, and the loss of its last steps."""
    start = time.monotonic()
    rows = train_without(part, text, seed=seed, precision=precision)
    best = min(rows, key=lambda row: row["val_bits_per_byte"])
    return {
        "text": text.name,
        "part": part.name,
        "seed": seed,
        "bits_per_byte": best["val_bits_per_byte"],
        "best_step": best["step"],
        "steps": rows[-1]["step"],
        "train_loss": rows[-1]["train_loss"],
        "seconds": round(time.monotonic() - start, 1),
        "precision": precision,
    }


def losses(rows: Iterable[Row]) -> Iterator[Row]:
    """The results that tell a loss."""
    return (row for row in rows if "bits_per_byte" in row)


# Seconds


def measure_costs(texts: Sequence[Text], given: argparse.Namespace, precision: str) -> None:
    """Time short trainings with and without each part, in turn, on the first text where it
    matters."""
    for part in PARTS:
        text = next((text for text in texts if part.differs(text.planned)), None)
        if text is None:
            continue
        for number in range(given.pairs):
            step, start = timed(FULL, text, precision)
            step_without, start_without = timed(part, text, precision)
            row = {
                "text": text.name,
                "part": part.name,
                "pair": number,
                "step": step,
                "step_without": step_without,
                "start": start,
                "start_without": start_without,
                "precision": precision,
            }
            note(row, given.out)


def timed(part: Part, text: Text, precision: str) -> tuple[float, float]:
    """Seconds of a training step without a part, and seconds until the first one.

    Early steps, of which tokens are split and windows cut, count as often as in a whole training.
    """
    begun = time.perf_counter()
    starts: list[float] = []
    early: list[float] = []
    late: list[float] = []
    step_as_usual = GradientDescent.step

    def step(of: GradientDescent, state: TrainingState, done: float) -> StartedStep:
        starts.append(time.perf_counter())
        result = step_as_usual(of, state, done)
        seconds = early if done < EARLY_UNTIL else late
        seconds.append(time.perf_counter() - starts[-1])
        return result

    with patch.object(GradientDescent, "step", step):
        short = {"steps": TIMED_STEPS, "num_evals": 1, "eval_tokens": 1024}
        train_without(part, text, precision=precision, **short)
    seconds = EARLY_UNTIL * statistics.median(early) + (1 - EARLY_UNTIL) * statistics.median(late)
    return seconds, starts[0] - begun


# The file of results, and the table


def note(row: Row, file: Path) -> None:
    """Add a line to the results, and show it."""
    line = json.dumps(row)
    print(line, flush=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "a", encoding="utf-8") as out:
        out.write(line + "\n")


def read_rows(file: Path) -> list[Row]:
    """The results so far."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def show_table(texts: Sequence[Text], rows: Sequence[Row]) -> None:
    """The table of docs/decisions.md."""
    bits: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for row in losses(rows):
        bits[row["text"], row["part"]][row["seed"]] = row["bits_per_byte"]

    full = [f"{text.name} {mean(bits[text.name, FULL.name].values())}" for text in texts]
    print("full recipe, bits per byte: " + ", ".join(full))
    print("| part | lines | " + " | ".join(text.name for text in texts) + " | a step | the start |")
    print("|---" * (4 + len(texts)) + "|")
    for part in PARTS:
        gains = [gain(part, text, bits) for text in texts]
        does_pay = any(statistics.mean(found) >= PAYS for found in gains if found)
        name = part.name if does_pay else f"*{part.name}*"
        cells = [cell(part, text, found) for text, found in zip(texts, gains, strict=True)]
        timings = [row for row in rows if row["part"] == part.name and "step" in row]
        cells += costs(timings)
        print(f"| {name}: {part.instead} | {part.lines} | " + " | ".join(cells) + " |")


def gain(part: Part, text: Text, bits: dict[tuple[str, str], dict[int, float]]) -> list[float]:
    """By how many % the loss is higher without a part, seed by seed."""
    full = bits[text.name, FULL.name]
    without = bits[text.name, part.name]
    return [100 * (without[seed] / full[seed] - 1) for seed in sorted(full.keys() & without.keys())]


def cell(part: Part, text: Text, found: Sequence[float]) -> str:
    """A gain as the table shows it: the mean over the seeds, and half of what they lie apart if
    there are several."""
    if not part.differs(text.planned):
        return "same"
    if not found:
        return "?"
    middle = f"{statistics.mean(found):+.2f}"
    if len(found) == 1:
        return middle
    return f"{middle} ± {(max(found) - min(found)) / 2:.2f}"


def mean(values: Iterable[float]) -> str:
    """A mean with three digits, or a question mark."""
    found = list(values)
    return f"{statistics.mean(found):.3f}" if found else "?"


def costs(timings: Sequence[Row]) -> list[str]:
    """What a step costs without a part, in % of one with it, and what a start costs more or less,
    in seconds: medians over the pairs."""
    if not timings:
        return ["", ""]
    step = statistics.median(100 * (row["step_without"] / row["step"] - 1) for row in timings)
    start = statistics.median(row["start_without"] - row["start"] for row in timings)
    return [f"{step:+.0f}%", f"{start:+.1f} s"]


# The command


def main() -> None:
    """Measure what is not known yet, and print the table."""
    given = arguments()
    texts = all_texts(given.shakespeare, given.folder)
    chosen = [text for text in texts if text.name in given.texts]
    precision = choose_precision(given.precision, torch.device("cpu"))
    if given.speed:
        measure_costs(chosen, given, precision)
    elif not given.table:
        measure_losses(chosen, given, precision)
    show_table(chosen, read_rows(given.out))


def arguments() -> argparse.Namespace:
    """Which texts, and how often."""
    names = ["tales", "shakespeare", "python", "prose", "prose, longer"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shakespeare", type=Path, required=True, metavar="FILE")
    parser.add_argument(
        "--texts", nargs="+", choices=names, default=names[:4], help="only these (default: four)"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1], help="default: 0 1")
    parser.add_argument(
        "--out", type=Path, default=RESULTS / "ablation.jsonl", help="the file of results"
    )
    parser.add_argument(
        "--folder", type=Path, default=RESULTS / "ablation", help="for texts that are made"
    )
    parser.add_argument("--precision", choices=("auto", "float32", "bfloat16"), default="auto")
    parser.add_argument("--table", action="store_true", help="print the table of what is known")
    parser.add_argument("--speed", action="store_true", help="measure seconds instead of losses")
    parser.add_argument("--pairs", type=int, default=3, help="of timed trainings (default: 3)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
