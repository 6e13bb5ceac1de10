"""What benchmarks/results.py measures on a GPU, the most important first.

`make bench-gpu TEXTS=FOLDER` measures all of it: the targets in about ten minutes, and in three
more what may improve the plan. A part that this card has measured today is left out, so that it
goes on where it was cut off; each is kept as soon as it is measured. The folder holds
shakespeare.txt, which is tinyshakespeare. The other texts are made there, so that the same ones can
be taken to another machine: `--measure beside-gpu`, which is of a processor, makes them too. What
was measured on a lent machine comes home as the file of `--copy`, which `--take` reads: between two
loans, too, so that the second goes on. `--gpu cpu --tiny` tries the program itself in a few
minutes, and keeps nothing.
"""

import argparse
import datetime
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ablation import TALES, python_sources
from generation import SIZES as MODELS
from generation import make_models
from measuring import (
    benchmark,
    best_evaluation,
    losses,
    measured,
    run,
    shown_lines,
    workplace,
)
from results_of_base import shown_command
from results_pages import Section, read

from minigpt.runs.folder import JOURNAL, METRICS, PLAN, STATE, STEPS, read_metrics, read_steps

PROSE = {"prose-100": 100_000, "prose-1400": 1_400_000}  # characters of the tales
BEFORE = ("reading", "planning", "tokens")  # phases before the first step
TINY = 0.1  # times the minutes
_BESIDES = 120  # seconds that a training may take beyond its minutes, or it is left out
_AT_MOST = 300  # seconds that another benchmark may take


@dataclass(frozen=True)
class Training:
    """A command that trains on the GPU, and the heading of what it shows."""

    title: str
    text: str
    minutes: float
    init: str = ""  # the option; none where the plan chooses


TRAININGS = {
    "gpu-half-a-minute": Training(
        "Half a minute of a GPU on Shakespeare", "shakespeare", 0.5, "--init none"
    ),
    "gpu-minute": Training("A minute of a GPU on Shakespeare", "shakespeare", 1, "--init none"),
    "gpu-with-base": Training("A minute of a GPU with the base", "shakespeare", 1, "--init base"),
    "gpu-three-minutes": Training(
        "Three minutes of a GPU on Shakespeare", "shakespeare", 3, "--init none"
    ),
    "gpu-prose-100": Training("A minute of a GPU on 100 KB of prose", "prose-100", 1),
    "gpu-prose-1400": Training("A minute of a GPU on 1.4 MB of prose", "prose-1400", 1),
    "gpu-sources": Training("A minute of a GPU on 20 MB of Python", "sources", 1),
}
# Where there is more computation than text: settings beside the plan's, of three minutes on
# Shakespeare, from nothing and with the base.
_8_LAYERS = "--init none --num-layers 8 --max-epochs 20"
TRIED = {
    "as planned": "--init none",
    "decay 3": "--init none --weight-decay 3",
    "30 readings, dropout 0.25": "--init none --max-epochs 30 --dropout 0.25",
    "8 x 256, dropout 0.3": f"{_8_LAYERS} --emb-dim 256 --dropout 0.3",
    "8 x 256, dropout 0.3, decay 3": f"{_8_LAYERS} --emb-dim 256 --dropout 0.3 --weight-decay 3",
    "8 x 384, dropout 0.4, decay 3": f"{_8_LAYERS} --emb-dim 384 --dropout 0.4 --weight-decay 3",
    "16 x 256 tokens a step": "--init none --batch-size 16",
    "the base": "--init base",
    "the base, 15 readings, dropout 0.3": "--init base --max-epochs 15 --dropout 0.3",
}
BESIDE = ("prose-100", "prose-1400", "sources")  # on which two cores train for three minutes
NOTES = {
    "shakespeare": "Its last tenth is ASCII, so that a character is a byte.",
    "prose-100": "The first 100 KB of the tales.",
    "prose-1400": "The first 1.4 MB of the tales.",
    "sources": "The first 20 MB of the .py files of Python and its packages on one machine.",
}
SHAPES = {
    "124M": "A GPT-2 with a context of 1,024, batches of 32",
    "7.5M": "A GPT-2 with a context of 256, batches of 256",
}


# The texts and the card


def text_file(name: str, given: argparse.Namespace) -> Path:
    """A text of the folder, made if it is not there yet."""
    file: Path = given.texts / f"{name}.txt"
    if file.exists():
        return file
    if name == "sources":
        text = python_sources()
    elif name in PROSE:
        text = TALES.read_text(encoding="utf-8")[: PROSE[name]]
    else:
        raise SystemExit(f"{file} is not there: put tinyshakespeare into it")
    file.write_text(text, encoding="utf-8")
    return file


def card(given: argparse.Namespace) -> str:
    """The GPU in words, and what it is in."""
    import torch

    if given.gpu == "cpu":
        return "the processor"
    found = torch.cuda.get_device_properties(given.gpu)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    version = torch.__version__.partition("+")[0]
    return (
        f"{found.name} ({found.total_memory / 1e9:.0f} GB), {cores} cores of a shared server; "
        f"torch {version} with CUDA {torch.version.cuda}"
    )


def of_card(section: Section, given: argparse.Namespace) -> Section:
    """A section that was measured on the GPU."""
    return replace(section, machine=card(given))


def measured_today(title: str, given: argparse.Namespace) -> Section | None:
    """A section, if this card has measured it today."""
    today = datetime.date.today().isoformat()
    same = (title, card(given), today)
    found = [known for known in read() if (known.title, known.machine, known.date) == same]
    return found[0] if found else None


def is_measured(title: str, given: argparse.Namespace) -> bool:
    """Whether this card has measured a section today."""
    return measured_today(title, given) is not None


# Trainings


def trained(name: str, given: argparse.Namespace) -> Iterator[Section]:
    """A training on the GPU: its loss, when the first step was over, what came before."""
    training = TRAININGS[name]
    if is_measured(training.title, given):
        return
    command, figures, output = train(
        training.text, training.minutes, given, device=given.gpu, init=training.init
    )
    note = NOTES[training.text]
    section = measured(training.title, command, figures, output=output, note=note)
    yield of_card(section, given)


def more_computation(given: argparse.Namespace) -> Iterator[Section]:
    """What other settings than the plan's reach, a row for each, kept at once."""
    title = "More computation than text"
    known = measured_today(title, given)
    figures = {} if known is None else dict(known.figures)
    for name, options in TRIED.items():
        if f"{name} | bits per byte" in figures:
            continue
        command, found, _ = train("shakespeare", 3, given, device=given.gpu, init=options)
        row = {f"{name} | {column}": figure for column, figure in found.items()}
        figures = figures | row
        note = "Settings beside those of the plan. The command is that of the last row."
        yield of_card(measured(title, command, figures, note=note), given)


def beside_gpu(given: argparse.Namespace) -> Iterator[Section]:
    """Three minutes of this machine's processor on the texts on which a minute of a GPU is to be no
    worse: not beside the GPU, but on the machine that the other figures are of."""
    figures: dict[str, str] = {}
    for text in BESIDE:
        _, found, _ = train(text, 3, given, device="cpu")
        figures |= {f"{text} | {name}": figure for name, figure in found.items()}
    command = "python train.py prose-100.txt --split end --minutes 3 --device cpu"
    note = "The same of prose-1400.txt and sources.txt; a minute of a GPU is to be no worse."
    yield measured("Three minutes beside a minute of a GPU", command, figures, note=note)


def train(
    text: str, minutes: float, given: argparse.Namespace, *, device: str, init: str = ""
) -> tuple[str, dict[str, str], str]:
    """Train as a user does. Returns the command, what came of it, and the plan with the lines of
    the training that tell most."""
    if given.tiny:
        minutes *= TINY
    words = ["python train.py", f"{text}.txt", init, "--split end", f"--minutes {minutes:g}"]
    command = " ".join([*filter(None, words), f"--device {device}"])

    with workplace() as place:
        os.symlink(text_file(text, given).resolve(), Path(place, f"{text}.txt"))
        made = Path(place, "runs", text)
        (made / JOURNAL).mkdir(parents=True)  # then the journal tells of the reading, too
        (made / JOURNAL / "benchmark").touch()
        timeout = 60 * minutes + _BESIDES
        ran = run(f"{command} --out runs/{text}", Path(place), timeout)

        figures = losses(made)
        if text == "shakespeare":
            bits = best_evaluation(made)["val_bits_per_byte"]
            figures["nats a character"] = f"{bits * math.log(2):.3f}"
        figures |= seconds_of(made)
        reasons = json.loads((made / PLAN).read_text(encoding="utf-8"))["reasons"]
        output = "\n".join(["```", *reasons, shown_lines(ran), "```"])
    return command, figures, output


def seconds_of(made: Path) -> dict[str, str]:
    """When the first step of a run was over, what took how long before, how fast the last ones
    were."""
    first = read_steps(made / STEPS)[0]
    last = read_metrics(made / METRICS)[-1]
    took = json.loads((made / JOURNAL / STATE).read_text(encoding="utf-8"))["took"]
    before = [f"{phase} {took[phase]:.1f}" for phase in BEFORE if phase in took]
    return {
        "first step after, s": f"{first['seconds']:.1f}",
        "of these, s": ", ".join(before),
        "tokens/s at the end": f"{last['tokens_per_second']:,.0f}",
    }


# Steps


def steps_of_gpt(size: str, given: argparse.Namespace) -> Iterator[Section]:
    """Tokens a second of a model's steps, and their share of what the card reaches."""
    title = f"On a GPU, {size.removesuffix('M')} million parameters"
    if is_measured(title, given):
        return
    used = "tiny" if given.tiny else size
    options = ["--size", used, "--steps", "10", "--rounds", "3", "--device", given.gpu]
    options += ["--variants", "bfloat16", *([] if given.tiny else ["bfloat16, compiled"])]
    if given.tiny:
        options += ["--matmul", "64"]

    leaves = f"training_on_gpu-{used}"
    rows = benchmark("training_on_gpu", *options, leaves=leaves, timeout=_AT_MOST)
    figures = {}
    for row in rows:
        name = row["variant"]
        figures[f"{name} | tokens/s"] = f"{row['tokens_per_second']:,.0f}"
        span = f"{row['slowest']:,.0f} - {row['fastest']:,.0f}"
        figures[f"{name} | slowest and fastest round"] = span
        figures[f"{name} | TFLOP/s"] = f"{row['tflops']:.1f}"
        figures[f"{name} | share of the card's"] = f"{row['share_of_peak']:.1%}"
        figures[f"{name} | GB"] = f"{row['gigabytes']:.1f}"
    note = (
        f"The share is that of {rows[0]['peak_tflops']:.0f} TFLOP/s, a matrix product of 8,192 x "
        f"8,192 in bfloat16 on the same card.\n{SHAPES[size]}, AdamW."
    )
    command = shown_command("training_on_gpu", options)
    yield of_card(measured(title, command, figures, note=note), given)


def short_steps(given: argparse.Namespace) -> Iterator[Section]:
    """Milliseconds of steps of narrow models, beside what a plan expects of them."""
    title = "Short steps on a GPU"
    if is_measured(title, given):
        return
    options = ["--device", given.gpu, *(["--tiny"] if given.tiny else [])]
    found = benchmark("steps_on_gpu", *options, timeout=_AT_MOST)
    figures = {}
    for row in found["steps"]:
        figures[f"{row['name']} | ms"] = f"{1000 * row['seconds']:.2f}"
        figures[f"{row['name']} | expected by a plan"] = f"{1000 * row['expected']:.2f}"
    note = f"A plan knows {found['speed']}, measured in {found['took']:.1f} s."
    command = shown_command("steps_on_gpu", options)
    yield of_card(measured(title, command, figures, note=note), given)


# Writing


def forty_texts(given: argparse.Namespace) -> Iterator[Section]:
    """Forty texts at once, by torch on the GPU and by the glass engine beside it."""
    title = "Forty texts at once on a GPU"
    if is_measured(title, given):
        return
    sizes = ["1M"] if given.tiny else ["1M", "12M", "124M"]
    tokens = 8 if given.tiny else 100
    figures = {}
    for size in sizes:
        with workplace() as place:
            make_models(Path(place, size), MODELS[size])
            for name, device in (("the GPU", given.gpu), ("the glass engine", "cpu")):
                speed = tokens_a_second(Path(place, size, "run"), device, tokens)
                figures[f"{size} | {name}, tokens/s"] = f"{speed:,.0f}"
    note = f"{tokens} tokens of each, with random weights."
    command = "python benchmarks/results.py --measure gpu-forty-texts"
    yield of_card(measured(title, command, figures, note=note), given)


def tokens_a_second(folder: Path, device: str, tokens: int) -> float:
    """How fast forty texts are written, of so many tokens each."""
    import minigpt

    writer = minigpt.load(folder, device=device)
    prompt = chr(0x20003)  # a token of its own in these models
    writer.samples(prompt, samples=40, max_new_tokens=4, seed=0)
    begun = time.perf_counter()
    written = writer.samples(prompt, samples=40, max_new_tokens=tokens, seed=0)
    seconds = time.perf_counter() - begun
    return sum(len(sample.token_ids) for sample in written) / seconds


Measurement = Callable[[argparse.Namespace], Iterator[Section]]
of_training = {name: partial(trained, name) for name in TRAININGS}

# The most important first: a machine may be lent for less than all of it takes.
ON_A_GPU: dict[str, Measurement] = {
    "gpu-half-a-minute": of_training["gpu-half-a-minute"],
    "gpu-minute": of_training["gpu-minute"],
    "gpu-124M": partial(steps_of_gpt, "124M"),
    "gpu-short-steps": short_steps,
    "gpu-with-base": of_training["gpu-with-base"],
    "gpu-7.5M": partial(steps_of_gpt, "7.5M"),
    "gpu-prose-1400": of_training["gpu-prose-1400"],
    "gpu-sources": of_training["gpu-sources"],
    "gpu-prose-100": of_training["gpu-prose-100"],
    "gpu-three-minutes": of_training["gpu-three-minutes"],
    "gpu-forty-texts": forty_texts,
    "gpu-more-computation": more_computation,
}
# On the machine of the other figures, which a GPU's machine is to be compared with.
BESIDE_A_GPU: dict[str, Measurement] = {"beside-gpu": beside_gpu}


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of what is measured on a GPU."""
    group = parser.add_argument_group("on a GPU; --measure gpu is all of it, in this order")
    group.add_argument("--texts", type=Path, metavar="FOLDER", help="holds shakespeare.txt")
    group.add_argument("--gpu", default="cuda", metavar="NAME", help="the device (default: cuda)")
    group.add_argument("--tiny", action="store_true", help="try the program, and keep nothing")
    group.add_argument(
        "--copy", type=Path, metavar="FOLDER", help="keep docs/results.json there too"
    )
